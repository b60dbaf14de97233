# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Six languages, and Jupyter kernels by their names."""

import json

import pytest
from harness import got
from interpreter.client import LANGUAGES, client, needs_routing_headers, printed, run, succeed  # noqa: F401

pytestmark = [needs_routing_headers, pytest.mark.limit(120)]

# How each language says: what is set, what it is, where it is, the end of its process.
_SET = {
    "python": "x = 20",
    "javascript": "var x = 20",
    "typescript": "let x: number = 20",
    "r": "x <- 20",
    "java": "int x = 20;",
    "bash": "x=20",
}
_SHOW = {
    "python": "print(x + 1, end='')",
    "javascript": "process.stdout.write(String(x + 1))",
    "typescript": "process.stdout.write(String((x as number) + 1))",
    "r": "cat(x + 1)",
    "java": "System.out.print(x + 1)",
    "bash": "printf %s $((x + 1))",
}
_CWD = {
    "python": "import os; print(os.getcwd(), end='')",
    "javascript": "process.stdout.write(process.cwd())",
    "typescript": "process.stdout.write(process.cwd() as string)",
    "r": "cat(getwd())",
    "java": 'System.out.print(System.getProperty("user.dir"))',
    "bash": "printf %s \"$PWD\"",
}
_DIE = {
    "python": "import os; os._exit(3)",
    "javascript": "process.kill(process.pid, 'SIGKILL'); for (;;) {}",
    "typescript": "const p: number = process.pid; process.kill(p, 'SIGKILL'); for (;;) {}",
    "r": "tools::pskill(Sys.getpid(), 9)",
    "java": "Runtime.getRuntime().halt(3)",
    "bash": "kill -9 $$",
}
_FAIL = {
    "python": ("1 / 0", "ZeroDivisionError", "division by zero"),
    "javascript": ("null.x", "TypeError", "Cannot read properties of null (reading 'x')"),
    "typescript": ("const n: any = null; n.x", "TypeError", "Cannot read properties of null (reading 'x')"),
    "r": ("stop('oops')", "ERROR", "Error: oops\n"),
    "java": ("int z = 0; 1 / z", "ArithmeticException", "/ by zero"),
    "bash": ("false", "ExitStatus", "1"),
}


@pytest.mark.parametrize("language", LANGUAGES)
async def test_state_directory_and_count(sandbox, language):
    assert (await succeed(sandbox, _SET[language], language=language)).execution_count == 1
    assert await printed(sandbox, _SHOW[language], language=language) == "21"
    assert await printed(sandbox, _CWD[language], language=language) == "/home/user"
    assert (await succeed(sandbox, _SHOW[language], language=language)).execution_count == 4


@pytest.mark.parametrize("language", LANGUAGES)
async def test_errors_leave_the_state(sandbox, language):
    code, name, value = _FAIL[language]
    await succeed(sandbox, _SET[language], language=language)
    execution = await run(sandbox, code, language=language)
    assert (execution.error.name, execution.error.value) == (name, value)
    assert name in execution.error.traceback or value in execution.error.traceback
    assert await printed(sandbox, _SHOW[language], language=language) == "21"


@pytest.mark.parametrize("language", LANGUAGES)
async def test_contexts_have_their_own_state_and_directory(sandbox, language):
    await succeed(sandbox, _SET[language], language=language)
    context = await got(sandbox.create_code_context(language=language, cwd="/tmp"))
    assert (context.language, context.cwd) == (language, "/tmp")
    assert await printed(sandbox, _CWD[language], context=context) == "/tmp"
    assert await printed(sandbox, _SHOW[language], language=language) == "21"
    other = await run(sandbox, _SHOW[language], context=context)
    assert other.error is not None or "".join(other.logs.stdout) == "1"


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_kernel_that_ends_is_replaced(sandbox, language):
    context = await got(sandbox.create_code_context(language=language, cwd="/tmp"))
    await succeed(sandbox, _SET[language], context=context)
    execution = await run(sandbox, _DIE[language], context=context)
    assert (execution.error.name, execution.error.value) == ("ContextRestarting", "Context was restarted")
    # The same context, in its directory, without its state.
    assert (await succeed(sandbox, _SET[language], context=context)).execution_count == 1
    assert await printed(sandbox, _CWD[language], context=context) == "/tmp"
    assert context.id in [entry.id for entry in await got(sandbox.list_code_contexts())]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_restart(sandbox, language):
    context = await got(sandbox.create_code_context(language=language, cwd="/tmp"))
    await succeed(sandbox, _SET[language], context=context)
    await got(sandbox.restart_code_context(context))
    other = await run(sandbox, _SHOW[language], context=context)
    assert other.error is not None or "".join(other.logs.stdout) == "1"
    assert await printed(sandbox, _CWD[language], context=context) == "/tmp"


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "for i in range(100_000): print(i)"),
        ("javascript", "for (let i = 0; i < 100_000; i++) console.log(i)"),
        ("r", "for (i in 0:99999) cat(i, '\\n', sep = '')"),
        ("java", "for (int i = 0; i < 100_000; i++) System.out.println(i);"),
        ("bash", "seq 0 99999"),
    ],
)
async def test_no_line_is_lost(sandbox, language, code):
    text = await printed(sandbox, code, language=language)
    if language == "r":
        # R writes numbers from 100,000 on as 1e+05.
        assert text.count("\n") == 100_000
    else:
        assert text == "".join(f"{n}\n" for n in range(100_000))


async def test_javascript_prints_and_returns(sandbox):
    execution = await succeed(sandbox, 'console.log("Hello, World!")', language="js")
    assert (execution.logs.stdout, execution.results) == (["Hello, World!\n"], [])
    assert (await succeed(sandbox, "[1, 2].map((n) => n * 2)", language="javascript")).text == "[ 2, 4 ]"
    assert (await succeed(sandbox, "'a' + 'b'", language="js")).text == "ab"
    execution = await succeed(sandbox, "console.error('e'); console.log('o')", language="js")
    assert (execution.logs.stdout, execution.logs.stderr) == (["o\n"], ["e\n"])


async def test_javascript_modules_and_await(sandbox):
    code = 'import { readFileSync } from "fs"\nconsole.log(typeof readFileSync)'
    assert await printed(sandbox, code, language="js") == "function\n"
    code = "async function hello() {\n  return 'Hello World!'\n}\nawait hello()"
    assert (await succeed(sandbox, code, language="js")).text == "Hello World!"
    await succeed(sandbox, "const later = await Promise.resolve(41); class Two { n = 2 }", language="js")
    assert (await succeed(sandbox, "later + new Two().n - 1", language="js")).text == "42"
    assert (await succeed(sandbox, "Promise.resolve('of a promise')", language="js")).text == "of a promise"
    assert (await succeed(sandbox, "(await import('node:path')).sep", language="js")).text == "/"
    assert (await succeed(sandbox, "require('os').EOL.length", language="js")).text == "1"


async def test_javascript_names_may_be_declared_again(sandbox):
    await succeed(sandbox, "const a = 1; let b = 2; class C {}", language="js")
    assert (await succeed(sandbox, "const a = 5; let b = 6; class C {}; a + b", language="js")).text == "11"


async def test_typescript(sandbox):
    execution = await succeed(sandbox, 'const message: string = "Hello, World!"; console.log(message)', language="ts")
    assert execution.logs.stdout == ["Hello, World!\n"]
    code = """
import type { Stats } from 'node:fs'
interface Point { x: number; y?: number }
enum Colour { Red = 1, Blue }
namespace Util { export const twice = (n: number): number => 2 * n }
abstract class Base<T> { constructor(protected readonly value: T) {} }
class Leaf extends Base<number> { get(): number { return this.value } }
const p = { x: Util.twice(10) } satisfies Point
const answer = (new Leaf(p.x).get() + Colour.Blue) as number
await Promise.resolve(answer!)
"""
    assert (await succeed(sandbox, code, language="typescript")).text == "22"
    assert (await succeed(sandbox, "Colour.Blue + answer", language="ts")).text == "24"
    # JavaScript, too: comparisons.
    assert (await succeed(sandbox, "new Leaf<number>(5).get() + new Set<string>(['a']).size", language="ts")).text == "6"
    # Its own process, its own globals; and types are understood under `js` too.
    assert (await run(sandbox, "answer", language="js")).error.name == "ReferenceError"
    assert (await succeed(sandbox, "const n: number = 5; n", language="js")).text == "5"


async def test_r(sandbox):
    execution = await succeed(sandbox, 'print("Hello, World!")', language="r")
    assert execution.logs.stdout == ['[1] "Hello, World!"\n']
    execution = await succeed(sandbox, 'x <- "bar"\nx', language="r")
    # Values of R are displays, as its kernel says.
    assert (execution.text, execution.results[0].text) == (None, '[1] "bar"')
    assert {"html", "markdown", "latex"} <= set(execution.results[0].formats())
    execution = await succeed(sandbox, "plot(1:10)", language="R")
    assert execution.results[0].png.startswith("iVBOR")
    execution = await succeed(sandbox, "message('to stderr'); warning('careful')", language="r")
    assert "to stderr" in "".join(execution.logs.stderr) and "careful" in "".join(execution.logs.stderr)
    # Nobody is there to answer: R takes it for an empty line.
    assert await printed(sandbox, "cat(nchar(readline('')))", language="r") == "0"


async def test_java(sandbox):
    execution = await succeed(sandbox, 'System.out.println("Hello, World!")', language="java")
    assert execution.logs.stdout == ["Hello, World!", "\n"]
    assert (await succeed(sandbox, "record P(int x, int y) {}\nvar p = new P(1, 2);\np.x() + p.y()", language="java")).text == "3"
    execution = await run(sandbox, "int twice(int n) { return 2 * m; }\ntwice(1)", language="java")
    assert "m" in execution.error.value
    assert (await succeed(sandbox, "int m = 4;\ntwice(1)", language="java")).text == "8"


async def test_bash(sandbox):
    execution = await run(sandbox, "echo out; echo err >&2; (exit 3)", language="bash")
    assert (execution.logs.stdout, execution.logs.stderr, execution.error.value) == (["out\n"], ["err\n"], "3")
    assert await printed(sandbox, "echo $?", language="bash") == "3\n"
    await succeed(sandbox, "cd /tmp; f() { echo \"f $1\"; }; shopt -s nullglob; export OUT=1", language="bash")
    assert await printed(sandbox, "f x; pwd; sh -c 'echo $OUT'; echo /nowhere/*", language="bash") == "f x\n/tmp\n1\n\n"
    assert (await run(sandbox, "exit 5", language="bash")).error.value == "5"
    assert (await run(sandbox, "if then", language="bash")).error.name == "ExitStatus"
    assert await printed(sandbox, "f y", language="bash") == "f y\n"


async def test_a_jupyter_kernel_by_its_name(sandbox):
    spec = {"argv": ["R", "--slave", "-e", "IRkernel::main()", "--args", "{connection_file}"], "display_name": "Mine", "language": "R"}
    await got(sandbox.files.write("/root/.local/share/jupyter/kernels/mine/kernel.json", json.dumps(spec), user="root"))
    execution = await succeed(sandbox, "cat(6 * 7)", language="mine")
    assert execution.logs.stdout == ["42"]
    context = await got(sandbox.create_code_context(language="Mine", cwd="/tmp"))
    assert (context.language, context.cwd) == ("mine", "/tmp")
    assert await printed(sandbox, "cat(getwd())", context=context) == "/tmp"


async def test_a_kernel_that_cannot_start_says_why(sandbox):
    spec = {"argv": ["/bin/sh", "-c", "echo no such luck >&2; exit 1"], "display_name": "Broken", "language": "broken"}
    await got(sandbox.files.write("/root/.local/share/jupyter/kernels/broken/kernel.json", json.dumps(spec), user="root"))
    before = [context.id for context in await got(sandbox.list_code_contexts())]
    with pytest.raises(Exception, match="Failed to create context"):
        await got(sandbox.create_code_context(language="broken"))
    assert [context.id for context in await got(sandbox.list_code_contexts())] == before

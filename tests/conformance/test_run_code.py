# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""run_code: values, output, errors, the count of executions, callbacks; in Python."""

import re
import time
import uuid

import pytest
from e2b import InvalidArgumentException, SandboxException
from harness import eventually, got, raises, requires, to_sandbox
from interpreter.client import client, needs_routing_headers, printed, run, start, succeed  # noqa: F401

pytestmark = needs_routing_headers

# 2.9.1 knows no reason phrase.
_OLD_ERRORS = requires(2, 55, why="its exceptions have no reason phrase")


@pytest.mark.smoke
async def test_the_last_expression_is_the_result(sandbox):
    execution = await succeed(sandbox, "x =1; x")
    assert execution.text == "1"
    assert [(result.is_main_result, result.text, result.extra) for result in execution.results] == [(True, "1", {})]
    assert (execution.logs.stdout, execution.logs.stderr) == ([], [])


@pytest.mark.smoke
async def test_state_lives_on(sandbox):
    await succeed(sandbox, "x = 1\nimport math")
    assert (await succeed(sandbox, "x += 1; math.factorial(x)")).text == "2"


async def test_executions_count_even_those_that_fail(sandbox):
    # In a fresh sandbox: nothing of the server's own has counted.
    first = await run(sandbox, "this is no Python")
    assert (first.error.name, first.execution_count) == ("SyntaxError", 1)
    assert (await succeed(sandbox, "1")).execution_count == 2
    # Nothing to run: the next number, not used up.
    for empty in ("", "  \n\t\n"):
        execution = await succeed(sandbox, empty)
        assert (execution.execution_count, execution.results, execution.logs.stdout) == (3, [], [])
    assert (await succeed(sandbox, "# a comment")).execution_count == 3
    assert (await succeed(sandbox, "2")).execution_count == 4


@pytest.mark.parametrize("code", ["1;", "None", "x = 5", "def f(): pass", "for i in range(3): i"])
async def test_code_without_a_result(sandbox, code):
    assert (await succeed(sandbox, code)).results == []


async def test_an_evenly_indented_cell_runs(sandbox):
    assert (await succeed(sandbox, "\n    x = 1\n    if x:\n        x = 7\n    x\n")).text == "7"


async def test_stdout_and_stderr(sandbox):
    execution = await succeed(sandbox, "import sys\nprint('out 😀')\nprint('err', file=sys.stderr)\n5")
    assert (execution.logs.stdout, execution.logs.stderr, execution.text) == (["out 😀\n"], ["err\n"], "5")


async def test_consecutive_prints_are_put_together(sandbox):
    execution = await succeed(sandbox, "for i in range(10_000): print(i)")
    assert "".join(execution.logs.stdout) == "".join(f"{i}\n" for i in range(10_000))
    assert len(execution.logs.stdout) < 1000


async def test_callbacks_come_once(sandbox):
    seen = []
    options = {f"on_{kind}": lambda what, kind=kind: seen.append((kind, what)) for kind in ("stdout", "stderr", "result", "error")}
    code = "import sys\nprint('o'); sys.stdout.flush()\nprint('e', file=sys.stderr); sys.stderr.flush()\ndisplay(5)\nundefined"
    execution = await run(sandbox, code, **options)
    kinds = {kind: what for kind, what in seen}
    assert sorted(kind for kind, _ in seen) == ["error", "result", "stderr", "stdout"]
    assert (kinds["stdout"].line, kinds["stdout"].error) == ("o\n", False)
    assert (kinds["stderr"].line, kinds["stderr"].error) == ("e\n", True)
    for kind in ("stdout", "stderr"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", kinds[kind].timestamp)
    assert kinds["result"].text == "5"
    assert (kinds["error"].name, kinds["error"].value) == ("NameError", "name 'undefined' is not defined")
    assert execution.error == kinds["error"]


async def test_output_streams_while_the_code_runs(sandbox):
    arrivals = []
    code = "import time\nfor i in range(3):\n    print(i)\n    time.sleep(0.7)"
    await got(sandbox.run_code(code, on_stdout=lambda message: arrivals.append((message.line, time.monotonic()))))
    assert [line for line, _ in arrivals] == ["0\n", "1\n", "2\n"]
    gaps = [after[1] - before[1] for before, after in zip(arrivals, arrivals[1:])]
    assert all(gap > 0.4 for gap in gaps), gaps


async def test_text_without_a_line_break_streams(sandbox):
    seen = []
    code = "import os, time\nfor token in 'abc': print(token, end='')\nwhile not os.path.exists('/tmp/seen'): time.sleep(0.05)\n"
    task = start(sandbox, code + "print('last', 'words', end='')\nos.abort()", on_stdout=lambda message: seen.append(message.line))
    assert await eventually(lambda: "".join(seen) == "abc", within=20)
    await got(sandbox.files.write("/tmp/seen", ""))
    # The code dies with no flush.
    execution = await task
    assert execution.error.name == "ContextRestarting"
    assert "".join(execution.logs.stdout) == "abclast words"


async def test_a_line_printed_in_pieces_is_one_event(sandbox):
    code = "import sys\nprint('a', 'b', 'c')\nsys.stderr.write('d'); sys.stderr.write('e\\n')"
    execution = await succeed(sandbox, code)
    assert execution.logs.stdout == ["a b c\n"]
    assert execution.logs.stderr == ["de\n"]


async def test_output_and_displays_keep_their_order(sandbox):
    seen = []
    code = "for i in range(100):\n    print(i)\n    display(i)"
    options = {"on_stdout": lambda message: seen.append(message.line), "on_result": lambda result: seen.append(result.text)}
    await got(sandbox.run_code(code, **options))
    assert seen == [text for i in range(100) for text in (f"{i}\n", f"{i}")]


async def test_displays_come_before_the_value_in_order(sandbox):
    execution = await succeed(sandbox, "display('first')\nprint('p')\ndisplay('second')\n'third'")
    assert [(result.text, result.is_main_result) for result in execution.results] == [
        ("first", False),
        ("second", False),
        ("third", True),
    ]
    assert execution.text == "third"


async def test_errors_have_name_value_and_traceback(sandbox):
    execution = await run(sandbox, "def divide(n):\n    return 1 / n\n\ndivide(0)")
    error = execution.error
    assert (error.name, error.value) == ("ZeroDivisionError", "division by zero")
    # The pieces are joined, without colours; lines are those of the cell.
    assert "\x1b" not in error.traceback
    assert re.search(r"-+> 2\s+return 1 / n", error.traceback), error.traceback
    assert re.search(r"-+> 4\s+divide\(0\)", error.traceback), error.traceback
    assert error.traceback.rstrip().endswith("ZeroDivisionError: division by zero")
    # What came before the error is there, and the kernel goes on.
    execution = await run(sandbox, "print('before')\ndisplay(1)\nraise ValueError('ünï')")
    assert (execution.logs.stdout, execution.results[0].text, execution.error.value) == (["before\n"], "1", "ünï")
    assert (await succeed(sandbox, "divide(4)")).text == "0.25"


async def test_exit_ends_the_cell_and_not_the_kernel(sandbox):
    await succeed(sandbox, "x = 5")
    execution = await run(sandbox, "import sys\nsys.exit(3)")
    assert (execution.error.name, execution.error.value) == ("SystemExit", "3")
    assert (await run(sandbox, "exit()")).error.name == "SystemExit"
    assert (await succeed(sandbox, "x")).text == "5"


async def test_input_is_refused(sandbox):
    for code in ("input('name? ')", "import getpass; getpass.getpass()"):
        error = (await run(sandbox, code)).error
        assert error.name == "StdinNotImplementedError", error
        assert "does not support input requests" in error.value


async def test_await_at_the_top(sandbox):
    code = "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 6\nvalue = await f()\nvalue"
    assert (await succeed(sandbox, code)).text == "6"
    assert (await succeed(sandbox, "value * 7")).text == "42"


async def test_shell_commands_and_magics(sandbox):
    execution = await succeed(sandbox, "!pwd")
    assert execution.logs.stdout == ["/home/user\r\n"]
    assert (await succeed(sandbox, "files = !echo one; echo two\nlist(files)")).text == "['one', 'two']"
    assert await printed(sandbox, "%%bash\nfor i in 1 2; do echo $i; done") == "1\n2\n"
    assert "pip 2" in "".join((await succeed(sandbox, "%pip --version")).logs.stdout)
    assert await printed(sandbox, "name = 'you'\n!echo hello {name}") == "hello you\r\n"


async def test_output_of_processes_is_captured(sandbox):
    code = "import os, subprocess\nsubprocess.run(['echo', 'child'])\nos.system('echo more >&2')\nos.write(1, b'raw\\n');"
    execution = await succeed(sandbox, code)
    assert ("".join(execution.logs.stdout), "".join(execution.logs.stderr)) == ("child\nraw\n", "more\n")


async def test_kernels_are_root_at_home_of_the_user(sandbox):
    assert await printed(sandbox, "import os\nprint(os.getuid(), os.getcwd(), os.environ['HOME'])") == "0 /home/user /root\n"
    assert (await got(sandbox.commands.run("id -un"))).stdout == "user\n"


async def test_strings_of_every_kind_survive(sandbox):
    odd = "ünï 日本 😀 \u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e\x7f\u200b \"q\" \\ \x00 tab\t"
    execution = await succeed(sandbox, f"s = {odd!r}\nprint(s, end='')\nlen(s)")
    assert ("".join(execution.logs.stdout), execution.text) == (odd, str(len(odd)))
    # The same characters inside the code itself; of some of them IPython warns.
    source = odd.replace("\x00", "").replace('"', "'").replace("\\", "")
    assert (await succeed(sandbox, f'len("""{source}""")')).text == str(len(source))
    # What is no Unicode is shown, not lost.
    execution = await succeed(sandbox, "import sys\nprint('\\ud800')\nsys.stdout.buffer.write(b'\\xff\\n');")
    assert "".join(execution.logs.stdout) == "\\ud800\n\ufffd\n"


async def test_large_code_and_large_results(sandbox):
    text = "x" * 5_000_000
    assert (await succeed(sandbox, f"s = '{text}'\nlen(s)")).text == "5000000"
    assert (await succeed(sandbox, "'y' * 5_000_000")).text == "y" * 5_000_000


async def test_language_and_context_exclude_each_other(sandbox):
    context = await got(sandbox.create_code_context())
    with raises(InvalidArgumentException, "You can provide context or language, but not both at the same time."):
        await run(sandbox, "1", language="python", context=context)


@_OLD_ERRORS
async def test_refusals_reach_the_caller(sandbox):
    with raises(SandboxException) as info:
        await run(sandbox, "1", language="cobol")
    assert str(info.value) == "500 Internal Server Error: Failed to create context: No such kernel: cobol"


async def test_secure_sandbox_with_private_traffic(make_sandbox):
    sandbox = await make_sandbox(secure=True, network={"allow_public_traffic": False})
    assert (await succeed(sandbox, "x = 1; x")).text == "1"
    context = await got(sandbox.create_code_context(language="python", cwd="/root"))
    assert [entry.id for entry in await got(sandbox.list_code_contexts())][-1] == context.id
    await succeed(sandbox, "y = 2", context=context)
    await got(sandbox.restart_code_context(context))
    assert (await run(sandbox, "y", context=context)).error.name == "NameError"
    await got(sandbox.remove_code_context(context))
    assert context.id not in [entry.id for entry in await got(sandbox.list_code_contexts())]
    # Without the token nothing gets through.
    for method, path in (("GET", "/contexts"), ("GET", "/health"), ("POST", "/execute")):
        assert to_sandbox(method, path, sandbox.sandbox_id, 49999).status == 403


async def test_a_sandbox_without_tokens(make_sandbox):
    sandbox = await make_sandbox(secure=False, envs={"FROM_CREATE": "yes"})
    assert await printed(sandbox, "import os; print(os.environ['FROM_CREATE'])") == "yes\n"


@pytest.mark.smoke
async def test_reconnect(client, sandbox):  # noqa: F811
    token = uuid.uuid4().hex
    await succeed(sandbox, f"token = '{token}'")
    again = await got(client.Sandbox.connect(sandbox.sandbox_id))
    assert (await succeed(again, "token")).text == token


async def test_users_work_with_files_of_kernels(sandbox):
    await got(sandbox.files.write("/home/user/data.csv", "a,b\n1,2\n3,4\n"))
    assert (await succeed(sandbox, "import csv\nlist(csv.reader(open('data.csv')))[2]")).text == "['3', '4']"
    await succeed(sandbox, "open('out.txt', 'w').write('made');")
    assert await got(sandbox.files.read("/home/user/out.txt")) == "made"

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The JavaScript and TypeScript runner, one test per behaviour."""

import os

import pytest
from interpreter.driver import RunnerDied


@pytest.fixture
def js(start_runner):
    return start_runner("node", "javascript")


@pytest.fixture
def ts(start_runner):
    return start_runner("node", "typescript")


def test_last_expression_is_the_result(js):
    assert js.run("let x = 1; x").text == "1"
    assert js.run("x += 1; x").text == "2"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("'Hello'", "'Hello'"),
        ("({a: 1, b: [1, 2]})", "{ a: 1, b: [ 1, 2 ] }"),
        ("1n", "1n"),
        ("null", "null"),
        ("-0", "-0"),
        ("NaN", "NaN"),
        ("Symbol('s')", "Symbol(s)"),
        ("new Map([[1, 2]])", "Map(1) { 1 => 2 }"),
        ("class A {}; new A", "A {}"),
        ("Promise.resolve('later')", "'later'"),
        ("await Promise.resolve('now')", "'now'"),
        ("undefined", None),
        ("const q = 5", None),
        ("'\\ud800x'.length", "2"),
    ],
)
def test_results(js, code, text):
    done = js.run(code)
    assert done.error is None
    assert done.text == text


def test_declarations_live_on_and_may_be_repeated(js):
    js.run("const a = 1; let b = 2; var c = 3; function f() { return a + b + c } class K { m() { return 7 } }")
    assert js.run("[f(), new K().m()]").text == "[ 6, 7 ]"
    assert js.run("const a = 10; let b = 20; class K {}; f()").text == "33"
    assert js.run("const broken = null.x").error["name"] == "TypeError"
    assert js.run("const broken = 5; broken").text == "5"


def test_top_level_await_keeps_its_variables(js):
    done = js.run("async function hello() { return 'Hello World!' }\nconst v = await hello();\nv")
    assert done.text == "'Hello World!'"
    assert js.run("v").text == "'Hello World!'"


def test_one_write_per_console_call(js):
    done = js.run("console.log('Hello, World!')")
    assert (done.stdout, done.stderr, done.text) == ("Hello, World!\n", "", None)
    done = js.run("console.error('bad %d', 5); console.log({a: 1}); process.stdout.write('raw')")
    assert (done.stdout, done.stderr) == ("{ a: 1 }\nraw", "bad 5\n")


def test_output_of_children_is_in_order(js):
    code = "console.log('a'); require('child_process').execSync('echo b; ls /proc/self/fd', {stdio: 'inherit'}); console.log('c')"
    lines = js.run(code).stdout.split()
    assert lines[:2] == ["a", "b"]
    assert lines[-1] == "c"
    # The protocol's socket is not for children; the last one is the directory that ls reads.
    assert lines[2:-1] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("import fs from 'fs'\ntypeof fs.readFileSync", "'function'"),
        ("import { readFileSync, writeFileSync as w } from 'node:fs';\n[typeof readFileSync, typeof w]", "[ 'function', 'function' ]"),
        ("import * as path from 'path'; path.basename('/a/b')", "'b'"),
        ("import os, { cpus } from 'os'; os.cpus === cpus", "true"),
        ("import url, * as all from 'url'; all.default === url", "true"),
        ("import 'fs'; 5", "5"),
        ("import {\n  join, // of paths\n  sep as s,\n} from\n  'path'\njoin('a', s)", "'a/'"),
        ("import data from './data.json' with { type: 'json' }; data.n", "5"),
        ("import { twice } from './own.mjs'; twice(4)", "8"),
        ("import greet from 'pkg'; greet('you')", "'hi you'"),
        ("(await import('path')).basename('/a/c')", "'c'"),
        ("import('pkg').then((m) => m.default('me'))", "'hi me'"),
        ("const {twice} = await import('./own.mjs'); twice(2)", "4"),
        ("'import x from \"y\"; import(1)'", "'import x from \"y\"; import(1)'"),
        ("`\nimport a from 'b'\nimport(c)`", "\"\\nimport a from 'b'\\nimport(c)\""),
        ("/import\\(/.test('import(')", "true"),
        ("const o = { import(x) { return x } }; o.import(3)", "3"),
        ("require('pkg')('r')", "'hi r'"),
        ("require('./data.json').n", "5"),
        ("if (require.main === module) 'main'", "'main'"),
        ("export const w = 8; export default 3; w", "8"),
    ],
)
def test_modules(start_runner, tmp_path, code, text):
    (tmp_path / "own.mjs").write_text("export const twice = (n) => 2 * n")
    (tmp_path / "data.json").write_text('{"n": 5}')
    package = tmp_path / "node_modules" / "pkg"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "pkg", "main": "index.js"}')
    (package / "index.js").write_text("module.exports = (who) => `hi ${who}`")
    done = start_runner("node", "javascript").run(code)
    assert done.error is None
    assert done.text == text


def test_global_packages_are_found(start_runner, tmp_path):
    package = tmp_path / "global" / "far"
    package.mkdir(parents=True)
    (package / "index.js").write_text("module.exports = 'far'")
    js = start_runner("node", "javascript", environ={"NODE_PATH": str(tmp_path / "global")})
    assert js.run("import far from 'far'; far").text == "'far'"
    assert js.run("require('far')").text == "'far'"
    error = js.run("import nothing from 'no-such-package'").error
    assert error["name"] == "Error"
    assert "no-such-package" in error["value"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("const message: string = 'Hello, World!'; message", "'Hello, World!'"),
        ("interface P { x: number }\nconst p: P = { x: 1 } as P;\np!.x", "1"),
        ("enum Color { Red, Green = 5 }\nColor.Green", "5"),
        ("namespace N { export const v = 3 }\nN.v", "3"),
        ("class A { constructor(private n: number) {} get() { return this.n } }\nnew A(4).get()", "4"),
        ("function id<T>(x: T): T { return x }\nid<number>(5)", "5"),
        ("import type { Stats } from 'fs';\nimport { type Dirent, existsSync } from 'fs';\nconst f: (s: string) => boolean = existsSync; f('/')", "true"),
        ("const t: number = await Promise.resolve(6); t", "6"),
        ("const m = await import('path') as any; m.sep", "'/'"),
    ],
)
@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_typescript(start_runner, language, code, text):
    done = start_runner("node", language).run(code)
    assert done.error is None
    assert (done.text, done.stderr) == (text, "")


def test_typescript_state_lives_on(js):
    js.run("enum E { A = 1 }\nlet total: number = 5")
    assert js.run("total + E.A").text == "6"


_DECLARED = """
interface User { name: string }
enum Level { Low = 1, High }
namespace Util { export const twice = <T>(x: T): T[] => [x, x] }
class Box<T> { constructor(public value: T) {} }
function id<T>(x: T): T { return x }
async function load<T>(x: T): Promise<T> { return x }
let a = 1, b = 2, c = 3, d = 0
const both = (...values: unknown[]) => values.length
"""


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ('new Set<string>(["a"])', "Set(1) { 'a' }"),
        ("const p = new Promise<string>((r)=>r(1)); await p", "1"),
        ("id<number>(5)", "5"),
        ("await load<User>({ name: 'n' })", "{ name: 'n' }"),
        ("new Box<User>({ name: 'n' }).value", "{ name: 'n' }"),
        ("Util.twice<Level>(Level.High)", "[ 2, 2 ]"),
        ("const m = new Map<string, number>([['a', 1]])\nm.get('a')", "1"),
        # This is a call with two types, as tsc has it.
        ("const pick = <A, B>(x: number) => x\nboth(pick < Level, User > (d))", "1"),
        # And these are comparisons.
        ("[a < b, c > d]", "[ true, true ]"),
        ("a < b && b > d", "true"),
        # Only JavaScript has these.
        ("010", "8"),
        ("with ({ z: 4 }) { z }", "4"),
    ],
)
def test_types_are_stripped_before_anything_runs(ts, code, text):
    assert ts.run(_DECLARED).error is None
    done = ts.run(code)
    assert done.error is None
    assert (done.text, done.stderr) == (text, "")


def test_javascript_keeps_its_comparisons(js):
    js.run("let a = 1, b = 2, c = 3, d = 0; const both = (...values) => values.length")
    assert js.run("both(a < b, c > (d))").text == "2"
    assert js.run("a < b > (d)").text == "true"
    assert js.run("const n: number = both(a < b, c > d); n").text == "2"


def test_errors_of_typescript_are_about_typescript(ts):
    error = ts.run("const ok: number = 1\nlet ok = 2").error
    assert (error["name"], error["value"]) == ("SyntaxError", "Identifier 'ok' has already been declared")
    assert error["traceback"][0].startswith("cell-1:2\nlet ok = 2\n")
    error = ts.run("enum E {\n  A,\n}\nlet x = 1\nlet x = 2").error
    assert (error["name"], error["value"]) == ("SyntaxError", "Identifier 'x' has already been declared")
    assert error["traceback"][0].startswith("cell-2:5\nlet x = 2\n")
    error = ts.run("let x = ;").error
    assert (error["name"], error["value"]) == ("SyntaxError", "Unexpected token ';'")


def test_cells_have_no_arguments(ts):
    assert ts.run("process.argv.slice(2)").text == "[]"


def test_errors_have_name_value_and_lines_of_the_cell(js):
    error = js.run("\n\nfunction bad() {\n  throw new TypeError('no good')\n}\nbad()").error
    assert (error["name"], error["value"]) == ("TypeError", "no good")
    assert error["traceback"] == ["TypeError: no good\n    at bad (cell-1:4:9)\n    at cell-1:6:1"]
    error = js.run("let ok = 1;\nlet x = ;").error
    assert (error["name"], error["value"]) == ("SyntaxError", "Unexpected token ';'")
    assert error["traceback"] == ["cell-2:2\nlet x = ;\n        ^\nSyntaxError: Unexpected token ';'"]
    assert js.run("ok").error["name"] == "ReferenceError"
    error = js.run("throw 5").error
    assert (error["name"], error["value"]) == ("number", "5")
    error = js.run("await Promise.reject(new RangeError('late'))").error
    assert (error["name"], error["value"]) == ("RangeError", "late")
    error = js.run("JSON.parse('{')").error
    assert error["name"] == "SyntaxError"


def test_lines_of_compiled_typescript_are_those_of_the_cell(js):
    code = "interface Long {\n  a: number\n  b: number\n}\nenum E { A }\n\nfunction f(x: Long) {\n  throw new Error('here')\n}\nf({a: 1, b: 2})"
    assert "at f (cell-1:8" in js.run(code).error["traceback"][0]


def test_hostile_throws_do_not_break_the_runner(js):
    for code in [
        "throw {get name() { throw 1 }, get message() { throw 2 }, get stack() { throw 3 }}",
        "throw null",
        "throw undefined",
        "throw new Proxy({}, {get() { throw 1 }})",
        "({[Symbol.for('nodejs.util.inspect.custom')]() { throw new Error('inspect') }})",
    ]:
        assert js.run(code).error is not None
    assert js.run("1").text == "1"


def test_counts(js):
    assert js.run("1").count == 1
    assert js.run("let x = ;").count == 2
    assert js.run("  \n").count == 3
    assert js.run("1").count == 3


def test_variables_of_one_run(start_runner):
    js = start_runner("node", "javascript", environ={"KEEP": "old"})
    show = "[process.env.KEEP, process.env.NEW]"
    value = "it's \"quoted\"\n${x} `y` \\ é"
    assert js.run(f"process.env.NEW === {value!r}", env={"NEW": value}).text == "true"
    assert js.run(show, env={"KEEP": "1", "NEW": "2"}).text == "[ '1', '2' ]"
    assert js.run(show).text == "[ 'old', undefined ]"
    assert js.run("null.x", env={"NEW": "3"}).error
    assert js.run(show).text == "[ 'old', undefined ]"


def test_directory(start_runner, tmp_path):
    js = start_runner("node", "javascript")
    assert js.run("process.cwd()").text == f"'{tmp_path}'"


@pytest.mark.parametrize(
    "code",
    [
        "console.log('go'); while (true) {}",
        "console.log('go'); await new Promise((r) => setTimeout(r, 100000))",
        "await new Promise((r) => setTimeout(r, 10)); console.log('go'); while (true) {}",
        "console.log('go'); setTimeout(() => { while (true) {} }, 0); await new Promise((r) => setTimeout(r, 100000))",
        "console.log('go'); while (true) { try { while (true) {} } catch {} finally { } }",
        "console.log('go'); for (;;) await null",
        "console.log('go'); require('child_process').execSync('sleep 100')",
        "({[Symbol.for('nodejs.util.inspect.custom')]() { console.log('go'); while (true) {} }})",
        "console.log('go'); for (;;) console.log('x'.repeat(10000))",
    ],
)
def test_interrupts_keep_state(js, code):
    js.run("let kept = 5")
    begun = js.begin(code)
    js.wait_for_output(begun, "go")
    js.interrupt()
    assert js.finish(begun).error["name"] == "KeyboardInterrupt"
    for _ in range(3):
        assert js.run("kept").text == "5"
    assert js.run("await new Promise((r) => setTimeout(() => r('timers work'), 5))").text == "'timers work'"


def test_interrupted_loop_does_not_go_on(js):
    begun = js.begin("let n = 0; console.log('go'); for (;;) { n++; await new Promise((r) => setTimeout(r, 1)) }")
    js.wait_for_output(begun, "go")
    js.interrupt()
    js.finish(begun)
    before = js.run("n").text
    js.run("await new Promise((r) => setTimeout(r, 50))")
    assert js.run("n").text == before


_WAITING_LOOPS = {
    "timers/promises": "const { setTimeout: nap } = require('timers/promises'); go(); for (;;) { n++; await nap(1) }",
    "promisified": "const later = require('util').promisify(setTimeout); go(); for (;;) { n++; await later(1) }",
    "interval": "const { setInterval: ticks } = require('timers/promises'); go(); for await (const t of ticks(1)) n++",
    "files": "const files = require('fs/promises'); go(); for (;;) { n++; await files.readFile('/etc/hostname') }",
    "fetch": "go(); for (;;) { n++; await (await fetch(url)).text() }",
    "callbacks in promises": "go(); for (;;) { n++; await new Promise((r) => require('fs').stat('/', r)) }",
    "tasks": "const loop = async () => { for (;;) { n++; await new Promise((r) => setTimeout(r, 1)) } }; go(); await Promise.all([loop(), loop()])",
    "caught": "const { setTimeout: nap } = require('timers/promises'); go(); for (;;) try { n++; await nap(1) } catch {} finally { n++ }",
    "immediate": "go(); for (;;) { n++; await new Promise((r) => setImmediate(r)) }",
}


@pytest.mark.parametrize("way", _WAITING_LOOPS)
def test_nothing_of_an_interrupted_cell_goes_on(js, way):
    js.run("var n = 0, go = () => setTimeout(() => console.log('go'), 20), kept = 5")
    js.run("const server = require('http').createServer((q, a) => a.end('x')); server.listen(0); await require('events').once(server, 'listening')")
    js.run("var url = `http://127.0.0.1:${server.address().port}/`")
    begun = js.begin(_WAITING_LOOPS[way])
    js.wait_for_output(begun, "go")
    js.interrupt()
    assert js.finish(begun).error["name"] == "KeyboardInterrupt"
    before = js.run("n").text
    assert int(before) > 0
    js.run("await new Promise((r) => setTimeout(r, 100))")
    assert js.run("n").text == before
    # Neither the server, which is of an earlier cell, nor new cells are hurt.
    assert js.run("[kept, await (await fetch(url)).text()]").text == "[ 5, 'x' ]"


def test_what_is_behind_an_await_never_comes_after_an_interrupt(js):
    begun = js.begin("var late = 0; console.log('go'); await require('timers/promises').setTimeout(300); late = 1; console.log('late')")
    js.wait_for_output(begun, "go")
    js.interrupt()
    js.finish(begun)
    done = js.run("await new Promise((r) => setTimeout(r, 600)); late")
    assert (done.text, done.stdout) == ("0", "")


def test_a_module_whose_import_was_interrupted_can_be_imported(js, tmp_path):
    (tmp_path / "slow.mjs").write_text("await new Promise((r) => setTimeout(r, 300)); export const n = 5")
    begun = js.begin("console.log('go'); await import('./slow.mjs'); console.log('late')")
    js.wait_for_output(begun, "go")
    js.interrupt()
    js.finish(begun)
    done = js.run("import { n } from './slow.mjs'; n")
    assert (done.text, done.stdout) == ("5", "")


@pytest.mark.parametrize(
    "chain",
    [
        "(function again() { ticks++; setTimeout(again, 2) })()",
        "(async () => { for (;;) { ticks++; await new Promise((r) => setTimeout(r, 2)) } })()",
        "(async () => { for (;;) { ticks++; await require('timers/promises').setTimeout(2) } })()",
        "setInterval(() => { ticks++; setImmediate(() => { ticks++ }) }, 2)",
    ],
)
def test_what_earlier_cells_started_survives_an_interrupt(js, chain):
    js.run(f"var ticks = 0; {chain}; 1")
    for waiting in ("await new Promise((r) => setTimeout(r, 100000))", "for (;;) await require('timers/promises').setTimeout(1)"):
        begun = js.begin(f"console.log('go'); {waiting}")
        js.wait_for_output(begun, "go")
        js.interrupt()
        assert js.finish(begun).error["name"] == "KeyboardInterrupt"
        js.run("ticks = 0; await new Promise((r) => setTimeout(r, 100))")
        assert int(js.run("ticks").text) > 5


def test_an_interrupt_right_after_the_start_is_not_lost(js):
    for code in ("for (;;);", "await new Promise((r) => setTimeout(r, 100000))") * 10:
        begun = js.begin(code)
        js.wait_for_frame(begun, "started")
        js.interrupt()
        assert js.finish(begun).error["name"] == "KeyboardInterrupt"


def test_an_interrupt_at_the_end_of_a_run_does_not_hit_the_next_one(js):
    for i in range(60):
        begun = js.begin(f"let end = Date.now() + {i % 3}; while (Date.now() < end); 1")
        js.wait_for_frame(begun, "started")
        if i % 4:
            js.wait_for_frame(begun, "done")
        js.interrupt()
        done = js.finish(begun)
        assert done.error is None or done.error["name"] == "KeyboardInterrupt"
        done = js.run("let sum = 0; for (let i = 0; i < 1e6; i++) sum += i; await null; sum", after_interrupt=True)
        assert (done.error, done.text) == (None, "499999500000")
        assert js.run("1").text == "1"


def test_interrupts_around_the_moment_of_the_answer(js):
    """Busy for as long as the other thread has patience: what terminates comes when nothing is left to stop."""
    for i in range(40):
        begun = js.begin(f"console.log('go'); let end = Date.now() + {36 + i % 10}; while (Date.now() < end); 1")
        js.wait_for_output(begun, "go")
        js.interrupt()
        js.finish(begun)
        assert js.run("2", after_interrupt=True).text == "2"


def test_interrupt_while_idle_is_ignored(js):
    js.run("let kept = 1")
    for _ in range(20):
        js.interrupt()
    assert js.run("await new Promise((r) => setTimeout(r, 300)); kept").text in ("1", None)
    assert js.run("kept").text == "1"


def test_background_failures_are_told_and_survived(js):
    js.run("setTimeout(() => { throw new Error('in a timer') }, 0); Promise.reject(new Error('nobody cares')); 1")
    done = js.run("await new Promise((r) => setTimeout(r, 50)); 2")
    assert done.text == "2"
    assert js.process.poll() is None


def test_a_promise_that_nothing_settles_can_be_interrupted(js):
    begun = js.begin("console.log('go'); await new Promise(() => {})")
    js.wait_for_output(begun, "go")
    js.interrupt()
    assert js.finish(begun).error is not None


@pytest.mark.parametrize("code", ["process.exit(3)", "process.abort()", "process.kill(process.pid, 'SIGKILL')"])
def test_exit_is_the_end_of_the_process(js, code):
    with pytest.raises(RunnerDied):
        js.run(code)


def test_no_line_is_lost(js):
    done = js.run("for (let i = 0; i < 100000; i++) console.log('line ' + i)")
    assert done.stdout.splitlines() == [f"line {i}" for i in range(100000)]


def test_hostile_cells(js):
    assert js.run("(function f() { return f() + 1 })()").error["name"] == "RangeError"
    assert js.run("let deep = []; for (let i = 0; i < 1e5; i++) deep = [deep]; 1").text == "1"
    assert js.run("process.stdout.end(); process.stdout.destroy(); console.log('still')").stdout == "still\n"
    js.run("console.log = null; process.stdout.write = null; globalThis.Promise.prototype.foo = 1")
    js.run("require('fs').closeSync(1)")
    assert js.run("console.error('e'); 4").text == "4"
    assert js.run("x".ljust(1000000, "x")).error["name"] == "ReferenceError"
    assert len(js.run("'y'.repeat(5e7)").text) < 4e7


def test_closing_the_socket_ends_the_process(js):
    js.begin("process.on('exit', () => { while (true) {} })")
    js.socket.shutdown(1)
    js.process.wait(10)
    assert js.process.returncode == -9

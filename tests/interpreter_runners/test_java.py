# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The Java runner, one test per behaviour."""

import base64

import pytest
from interpreter.driver import RunnerDied


@pytest.fixture(scope="module")
def java(start_module_runner):
    """One runner for the tests that leave nothing behind that another one would see."""
    return start_module_runner("java")


def printed(execution, name="stdout"):
    return "".join(text for stream, text in execution.streams if stream == name)


def test_a_line_and_its_break_are_two_events(java):
    done = java.run('System.out.println("Hello, World!")')
    assert done.streams == [("stdout", "Hello, World!"), ("stdout", "\n")]
    done = java.run('System.err.printf("%d é%n", 1); System.out.print("raw")')
    assert done.streams == [("stderr", "1 é\n"), ("stdout", "raw")]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("1 + 1", "2"),
        ("1 + 1;", "2"),
        ('"Hello"', '"Hello"'),
        ("int a1 = 5;\na1", "5"),
        ("int a2 = 5;", None),
        ("int a3; a3 = 5;", None),
        ("int[] a4 = {1, 2}; a4", "int[2] { 1, 2 }"),
        ("List.of(1, 2)", "[1, 2]"),
        ("Stream.of(1, 2, 3).map(i -> i * 2).toList()", "[2, 4, 6]"),
        ('var a5 = new HashMap<String, Integer>();\na5.put("a", 1);\na5', "{a=1}"),
        ("record P(int x, int y) {}\nnew P(1, 2).x()", "1"),
        ("int twice(int n) {\n  return 2 * n;\n}\n\n// a call\ntwice(4)", "8"),
        ("(Object) null", "null"),
        ("// nothing", None),
        ("import java.time.*;\nDuration.ofSeconds(3)", "PT3S"),
        ("for (int i = 0; i < 2; i++) {}", None),
        ('"\\ud800".length()', "1"),
    ],
)
def test_results(java, code, text):
    done = java.run(code)
    assert done.error is None
    assert done.text == text


def test_state_lives_on_and_may_be_declared_again(java):
    java.run("int n = 1; class K { int m() { return 7; } }")
    assert java.run("n += 1; n").text == "2"
    assert java.run('String n = "s"; n + new K().m()').text == '"s7"'


def test_images_are_png(java):
    done = java.run("new java.awt.image.BufferedImage(2, 3, java.awt.image.BufferedImage.TYPE_INT_RGB)")
    data = done.of("result")[0]["data"]
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert data["text/plain"].startswith("BufferedImage@")


def test_exceptions_have_name_value_and_lines_of_the_cell(java):
    done = java.run("int divide(int a) {\n  return a / 0;\n}\n\ndivide(1);\nint never = 1;")
    cell = f"cell-{done.count}"
    assert (done.error["name"], done.error["value"]) == ("ArithmeticException", "/ by zero")
    assert done.error["traceback"] == [
        f"java.lang.ArithmeticException: / by zero\n    at divide ({cell}:2)\n    at ({cell}:5)"
    ]
    assert java.run("never").error["name"] == "CompilationError"
    code = "class Own extends RuntimeException { Own(Throwable t) { super(\"mine\", t); } }\nthrow new Own(new Exception(\"inner\"));"
    error = java.run(code).error
    assert (error["name"], error["value"]) == ("Own", "mine")
    assert "Caused by: java.lang.Exception: inner" in error["traceback"][0]
    assert java.run("int deep(int i) { return deep(i + 1) + 1; }\ndeep(0)").error["name"] == "StackOverflowError"
    assert java.run("1").text == "1"


def test_compile_errors_show_the_place(java):
    done = java.run("int fine = 1;\nint y = ;")
    assert (done.error["name"], done.error["value"]) == ("CompilationError", "illegal start of expression")
    assert done.error["traceback"] == [f"cell-{done.count}:2: error: illegal start of expression\nint y = ;\n        ^\n"]
    assert java.run("if (true) {").error["value"] == "reached end of file while parsing"
    assert "variable nothing" in java.run("nothing").error["value"]
    assert java.run("String s = 5;").error["name"] == "CompilationError"


def test_declarations_may_wait_for_others(java):
    done = java.run("int first() { return second(); }")
    assert done.error is None
    assert "second()" in printed(done, "stderr")
    assert java.run("first()").error["name"] == "UnresolvedReference"
    assert java.run("int second() { return 4; }\nfirst()").text == "4"


def test_counts(start_runner):
    java = start_runner("java")
    assert [java.run(code).count for code in ("1", "int", " \n", "1")] == [1, 2, 3, 3]


def test_variables_of_one_run(start_runner):
    java = start_runner("java", environ={"KEEP": "old"})
    show = 'System.getenv("KEEP") + "/" + System.getProperty("KEEP") + "/" + System.getenv("NEW") + "/" + System.getProperty("NEW")'
    value = "it's \"quoted\"\n${x} \\ é"
    done = java.run('System.out.print(System.getenv("NEW"))', env={"NEW": value})
    assert printed(done) == value
    assert java.run('System.out.print(System.getProperty("NEW"))', env={"NEW": value}).streams == [("stdout", value)]
    assert java.run(show, env={"KEEP": "1", "NEW": "2"}).text == '"1/1/2/2"'
    assert java.run("throw new Exception();", env={"NEW": "3", "": "4", "a=b": "5"}).error
    assert java.run(show).text == '"old/old/null/null"'
    child = 'var child = new ProcessBuilder("sh", "-c", "echo $NEW; ls /proc/self/fd").inheritIO(); child.environment(); child.start().waitFor()'
    # The last descriptor is the directory that ls reads.
    assert java.run(child, env={"NEW": "c"}).stdout.split() == ["c", "0", "1", "2", "3"]


def test_directory(start_runner, tmp_path):
    assert start_runner("java").run('System.getProperty("user.dir")').text == f'"{tmp_path}"'


@pytest.mark.parametrize(
    "code",
    [
        'System.out.println("go"); while (true) {}',
        'System.out.println("go"); Thread.sleep(100000);',
        'void loop() { while (true) { try { Thread.sleep(10); } catch (InterruptedException e) {} } }\nSystem.out.println("go"); loop();',
        'System.out.println("go"); new ProcessBuilder("sleep", "100").start().waitFor()',
        'System.out.println("go"); while (true) System.out.println("x");',
        'System.out.println("go"); new Object() { synchronized void w() throws Exception { wait(); } }.w();',
    ],
)
def test_interrupts_keep_state(java, code):
    java.run("int kept = 5;")
    begun = java.begin(code)
    java.wait_for_output(begun, "go")
    java.interrupt()
    assert java.finish(begun).error["name"] == "KeyboardInterrupt"
    for _ in range(3):
        assert java.run("kept").text == "5"
    assert printed(java.run('System.out.println("out")')) == "out\n"


def test_an_interrupt_right_after_the_start_is_not_lost(java):
    for _ in range(10):
        begun = java.begin("while (true) {}")
        java.wait_for_frame(begun, "started")
        java.interrupt()
        assert java.finish(begun).error["name"] == "KeyboardInterrupt"


def test_an_interrupt_at_the_end_of_a_cell_does_not_hit_the_next_one(java):
    for i in range(40):
        begun = java.begin("1 + 1")
        java.wait_for_frame(begun, "started" if i % 3 == 0 else "done")
        java.interrupt()
        java.finish(begun)
        assert begun.error is None or begun.error["name"] == "KeyboardInterrupt"
        done = java.run("long sum = 0; for (int i = 0; i < 1000; i++) sum += i; sum", after_interrupt=True)
        assert (done.error, done.text) == (None, "499500")


def test_interrupt_while_idle_is_ignored(java):
    for _ in range(20):
        java.interrupt()
    java.run("Thread.sleep(200)")
    assert java.run("1").text == "1"


def test_no_line_is_lost(java):
    done = java.run('for (int i = 0; i < 100000; i++) System.out.println("line " + i);')
    assert printed(done).splitlines() == [f"line {i}" for i in range(100000)]
    assert len(done.streams) < 10000


def test_background_threads_do_not_delay_the_end(java):
    java.run("var worker = new Thread(() -> { try { Thread.sleep(100000); } catch (InterruptedException e) {} });\nworker.start();")
    assert java.run("worker.isAlive()").text == "true"
    java.run("worker.interrupt();")


def test_exit_is_the_end_of_the_process(start_runner):
    java = start_runner("java")
    with pytest.raises(RunnerDied):
        java.run("System.exit(3)")


def test_closing_the_socket_ends_the_process(start_runner):
    java = start_runner("java")
    begun = java.begin('System.out.println("go"); while (true) {}')
    java.wait_for_output(begun, "go")
    java.socket.shutdown(1)
    java.process.wait(10)
    assert java.process.returncode == 0

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""How the Python runner executes cells: state, errors, interrupts, variables, output."""

import os
import signal
import socket
import time
from pathlib import Path

import pytest
from interpreter.driver import RunnerDied


@pytest.fixture
def python(start_runner):
    return start_runner("python")


def test_the_last_expression_is_the_result(python):
    assert python.run("x = 1; x").text == "1"
    assert python.run("x += 1; x").text == "2"
    assert python.run("x;").text is None
    assert python.run("None").text is None
    assert python.run("print('a')\n'text'").text == "'text'"


def test_code_that_is_indented_as_a_whole_runs(python):
    assert python.run("    y = 2\n    y + 1").text == "3"


def test_top_level_await(python):
    assert python.run("import asyncio\nasync def f(): return 5\nawait f()").text == "5"
    # Tasks of one cell go on while a later one waits.
    python.run("seen = []\nasync def g():\n    await asyncio.sleep(0)\n    seen.append(1)\nt = asyncio.create_task(g())\nawait asyncio.sleep(0)")
    assert python.run("await t\nseen").text == "[1]"
    assert python.run("asyncio.run(f())").text == "5"


def test_tasks_of_a_cell_that_does_not_await(python):
    """As in a notebook, where a loop runs all the time."""
    python.run("import asyncio\nseen = []\nasync def work():\n    for i in range(3):\n        seen.append(i)\n        await asyncio.sleep(0.01)\n    return 'done'")
    for start in ("asyncio.create_task(work())", "asyncio.ensure_future(work())", "asyncio.get_running_loop().create_task(work())", "asyncio.get_event_loop().create_task(work())", "asyncio.gather(work())"):
        run = python.run(f"seen.clear(); task = {start}; len(seen)")
        assert (run.error, run.text) == (None, "0"), start
        assert python.run("seen[0]").text == "0", "it has begun by the end of the cell"
        assert "done" in python.run("await task").text
        assert python.run("seen").text == "[0, 1, 2]"


def test_tasks_go_on_between_cells(python):
    python.run("import asyncio, time\nticks = 0\nasync def tick():\n    global ticks\n    while True:\n        ticks += 1\n        await asyncio.sleep(0.002)\ntask = asyncio.create_task(tick())")
    time.sleep(0.3)
    assert int(python.run("ticks").text) > 10
    # The interrupt of another cell is not theirs.
    for waiting in ("await asyncio.sleep(100)", "time.sleep(100)"):
        run = python.begin(f"print('go', flush=True)\n{waiting}")
        python.wait_for_output(run, "go")
        python.interrupt()
        assert python.finish(run).error["name"] == "KeyboardInterrupt"
        assert python.run("ticks = 0; task.done()").text == "False"
        time.sleep(0.2)
        assert int(python.run("ticks").text) > 5


def test_a_server_answers_between_cells(python):
    code = "import asyncio\nasync def answer(r, w):\n    w.write(b'hello'); w.close()\nserver = await asyncio.start_server(answer, '127.0.0.1', 0)\nserver.sockets[0].getsockname()[1]"
    port = int(python.run(code).text)
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        assert client.recv(10) == b"hello"


@pytest.mark.parametrize("failing", ["1 / 0", "raise SystemExit(3)", "raise KeyboardInterrupt", "asyncio.get_running_loop().close()"])
def test_a_task_that_fails_between_cells_ends_nothing(python, failing):
    python.run(f"import asyncio\nx = 5\nasync def bad():\n    await asyncio.sleep(0.01)\n    {failing}\ntask = asyncio.create_task(bad())")
    time.sleep(0.2)
    assert python.run("x").text == "5"
    assert python.run("await asyncio.sleep(0, 'on')").text == "'on'"


def test_asyncio_run_works_beside_tasks(python):
    python.run("import asyncio\nasync def f(): return 5\nasync def forever():\n    while True: await asyncio.sleep(0.01)\ntask = asyncio.create_task(forever())")
    assert python.run("asyncio.run(f())").text == "5"
    assert python.run("asyncio.get_event_loop().run_until_complete(f())").text == "5"
    assert python.run("asyncio.run(f()); t = asyncio.ensure_future(f())").error is None
    assert python.run("await t, task.done()").text == "(5, False)"


def test_loops_of_threads_and_children_are_their_own(python):
    code = "import asyncio, threading, os\nasync def f(): return 5\ngot = []\nthread = threading.Thread(target=lambda: got.append(asyncio.run(f())))\nthread.start(); thread.join()\n"
    assert python.run(code + "got").text == "[5]"
    child = "if (pid := os.fork()) == 0:\n    try:\n        asyncio.get_running_loop()\n    except RuntimeError:\n        os._exit(asyncio.run(f()))\n    os._exit(1)\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
    assert python.run(child).text == "5"


def test_an_interrupt_at_the_end_of_a_cell_does_not_hit_the_next_one(python):
    for i in range(100):
        run = python.begin("sum(range(1000))")
        python.wait_for_frame(run, "started" if i % 3 == 0 else "done")
        python.interrupt()
        python.finish(run)
        assert run.error is None or run.error["name"] == "KeyboardInterrupt"
        done = python.run("sum(range(200_000))", after_interrupt=True)
        assert (done.error, done.text) == (None, "19999900000")


def test_a_command_that_ignores_interrupts_is_killed(python):
    pids = []
    # The second interrupt comes while the first is being obeyed.
    for again in (False, True):
        run = python.begin("!trap '' INT; sleep 1000 & echo go $! $$; wait; sleep 1000")
        python.wait_for_output(run, "\n")
        pids += [int(word) for word in run.stdout.split()[1:]]
        python.interrupt()
        if again:
            time.sleep(0.5)
            python.interrupt()
        assert python.finish(run).error["name"] == "KeyboardInterrupt"
    for pid in pids:
        assert _is_gone(pid)


def _is_gone(pid):
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


WAITING = {
    "sleep": "import time; time.sleep(100)",
    "loop": "while True: pass",
    "await": "import asyncio\nawait asyncio.sleep(100)",
    "asyncio.run": "import asyncio; asyncio.run(asyncio.sleep(100))",
    "command": "!sleep 100",
    "subprocess": "import subprocess; subprocess.run(['sleep', '100'])",
    "stubborn loop": "try:\n    while True: pass\nfinally:\n    y = 7",
}


@pytest.mark.parametrize("waiting", WAITING)
def test_an_interrupt_ends_the_cell_and_keeps_the_state(python, waiting):
    python.run("y = 7")
    run = python.begin(f"print('go')\n{WAITING[waiting]}\nprint('not reached')")
    python.wait_for_output(run, "go")
    python.interrupt()
    python.finish(run)
    assert run.error["name"] == "KeyboardInterrupt"
    assert "not reached" not in run.stdout
    assert python.run("y").text == "7"


def test_an_interrupt_between_cells_is_ignored(python):
    python.interrupt()
    assert python.run("1 + 1").text == "2"


def test_an_interrupt_right_after_the_start_is_not_lost(python):
    for _ in range(20):
        run = python.begin("while True: pass")
        python.wait_for_frame(run, "started")
        python.interrupt()
        python.finish(run)
        assert run.error["name"] == "KeyboardInterrupt"
    assert python.run("1 + 1").text == "2"


def test_blank_code_does_not_use_up_a_number(python):
    assert [python.run(code).count for code in ("1/0", " \n", "def", "1")] == [1, 2, 2, 3]


def test_comments_alone_do_use_one_up(python):
    assert [python.run(code).count for code in ("# nothing", "1")] == [1, 2]


@pytest.mark.parametrize(
    ("code", "name", "value"),
    [
        ("1 / 0", "ZeroDivisionError", "division by zero"),
        ("nothing", "NameError", "name 'nothing' is not defined"),
        ("import nothing", "ModuleNotFoundError", "No module named 'nothing'"),
        ("raise ValueError", "ValueError", ""),
        ("raise ValueError('a\\n\\u2028b')", "ValueError", "a\n\u2028b"),
        ("raise ExceptionGroup('both', [ValueError(1), KeyError(2)])", "ExceptionGroup", "both (2 sub-exceptions)"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("import sys; sys.exit(3)", "SystemExit", "3"),
        ("%nothing", "UsageError", "Line magic function `%nothing` not found."),
        ("def f(): return f()\nf()", "RecursionError", "maximum recursion depth exceeded"),
        ("raise type('E', (Exception,), {'__str__': lambda s: 1 / 0})", "E", "<E whose text cannot be made>"),
    ],
)
def test_errors(python, code, name, value):
    run = python.run(code)
    assert (run.error["name"], run.error["value"]) == (name, value)
    traceback = "".join(run.error["traceback"])
    assert name in traceback
    assert "\x1b" not in traceback
    assert "alcove_runner" not in traceback, "frames of the runner are not the user's"
    assert python.run("6 * 7").text == "42"


def test_a_traceback_names_the_user_s_lines(python):
    traceback = "\n".join(python.run("def f():\n    return 1 / 0\n\nf()", {"A": "b"}).error["traceback"])
    assert "----> 4 f()" in traceback
    assert "----> 2     return 1 / 0" in traceback


def test_a_syntax_error_shows_the_place(python):
    error = python.run("a = 1\nb = = 2").error
    assert error["name"] == "SyntaxError"
    assert "line 2" in error["value"]
    assert "b = = 2" in "".join(error["traceback"])


def test_exit_ends_the_cell_and_not_the_context(python):
    python.run("kept = 3")
    for code in ("exit", "quit()", "import sys; sys.exit()"):
        assert python.run(code).error["name"] == "SystemExit"
    assert python.run("kept").text == "3"


def test_results_before_an_error_are_sent(python):
    run = python.run("display(1)\nprint('out')\n1 / 0\ndisplay(2)")
    assert [shown["text/plain"] for shown in run.shown] == ["1"]
    assert run.stdout == "out\n"


@pytest.mark.parametrize("asking", ["input()", "input('name? ')", "import getpass; getpass.getpass()"])
def test_input_is_refused(python, asking):
    error = python.run(asking).error
    assert error["name"] == "StdinNotImplementedError"
    assert error["value"].endswith("was called, but this frontend does not support input requests.")
    assert python.run("import sys; sys.stdin.read()").text == "''"


@pytest.mark.parametrize("value", ["", "plain", "x'\"\n\\", "$(id) `id` %d {}", "ünïcödé \U0001f600"])
def test_variables_of_a_run(python, value):
    python.run("import os")
    assert python.run("os.environ['A'], os.getenv('A')", {"A": value}).text == repr((value, value))
    assert python.run("'A' in os.environ").text == "False"


def test_a_variable_that_was_there_comes_back(start_runner):
    python = start_runner("python", environ={"WHOSE": "sandbox"})
    assert python.run("import os; os.environ['WHOSE'] = os.environ['WHOSE'] + '!'", {"WHOSE": "run"}).error is None
    assert python.run("os.environ['WHOSE']").text == "'sandbox'"
    python.run("os.environ['WHOSE'] = 'user'")
    assert python.run("1 / 0", {"WHOSE": "run"}).error["name"] == "ZeroDivisionError"
    assert python.run("os.environ['WHOSE']").text == "'user'"


def test_variables_do_not_move_a_cell_magic(python):
    assert python.run("%%bash\necho $A", {"A": "it's"}).stdout == "it's\n"
    assert python.run("!echo $A", {"A": "b"}).stdout == "b\r\n"


def test_variables_that_no_environment_can_hold(python):
    run = python.run("import os; os.environ.get('GOOD')", {"": "a", "B=C": "d", "E": "f\0g", "GOOD": "1"})
    assert run.text == "'1'"


def test_user_state_is_the_user_s(python):
    names = python.run("sorted(name for name in globals() if not name.startswith('_'))").main["application/json"]
    assert names == ["In", "Out", "exit", "get_ipython", "open", "quit"]
    assert python.run("import sys; '__main__' == __name__ and sys.path[0] == ''").text == "True"


def test_no_line_is_lost(python):
    want = "".join(f"{i}\n" for i in range(100_000))
    assert python.run("for i in range(100_000): print(i)").stdout == want
    assert python.run("for i in range(100_000): print(i, flush=True)").stdout == want


def test_pieces_of_lines_are_written_at_once(python, tmp_path):
    code = "import os, sys, time\nfor token in 'abc': print(token, end='')\nprint(1, 2, end=' ')\nprint('e', end='', file=sys.stderr)\n"
    run = python.begin(code + "while not os.path.exists('seen'): time.sleep(0.01)\nprint('end', end='')")
    python.wait_for_output(run, "abc1 2 ")
    (tmp_path / "seen").touch()
    python.finish(run)
    assert (run.stdout, run.stderr) == ("abc1 2 end", "e")
    # Nor is one lost that no flush follows.
    with pytest.raises(RunnerDied) as died:
        python.run("print('last words', end=''); os.abort()")
    assert died.value.args[0].stdout == "last words"


def test_no_piece_is_lost(python):
    assert python.run("for i in range(300_000): print(i % 10, end='')").stdout == "0123456789" * 30_000


def test_both_streams_and_descriptors_below_them(python):
    run = python.run(
        "import os, sys, subprocess\n"
        "print('a'); print('b', file=sys.stderr); os.write(1, b'c\\n'); os.write(2, b'd\\n')\n"
        "subprocess.run('echo e; echo f >&2', shell=True)\nprint('g', end='')"
    )
    assert run.stdout == "a\nc\ne\ng"
    assert run.stderr == "b\nd\nf\n"


def test_text_that_is_not_unicode_is_escaped(python):
    assert python.run(r"print('\ud800é')").stdout == "\\ud800é\n"
    assert python.run(r"'\ud800'").text == r"'\ud800'"
    assert python.run(r"class R:" "\n" r"    def __repr__(self): return 'a\ud800b'" "\nR()").text == "a\ufffdb"


@pytest.mark.parametrize("breaking", ["sys.stdout = None", "sys.stdout.close()", "del sys.stdout", "sys.__stdout__ = sys.stdout = 5"])
def test_a_broken_stdout_is_back_in_the_next_cell(python, breaking):
    python.run(f"import sys; {breaking}")
    assert python.run("print('back')").stdout == "back\n"


def test_commands(python):
    run = python.run("!echo out; echo err >&2; exit 3")
    assert run.stdout == "out\r\nerr\r\n"
    assert python.run("_exit_code").text == "3"
    assert python.run("word = 'hi'\n!echo {word} $word").stdout == "hi hi\r\n"
    assert python.run("lines = !printf 'a\\nb\\n'\nlist(lines)").text == "['a', 'b']"
    assert python.run("!kill -9 $$").error is None
    assert python.run("_exit_code").text == "-9"


def test_a_command_does_not_wait_for_what_it_left_behind(python):
    run = python.run("!sleep 1000 & echo started $!")
    assert run.stdout.startswith("started ")
    pid = int(run.stdout.split()[1])
    assert Path(f"/proc/{pid}").exists()
    os.kill(pid, signal.SIGKILL)


def test_a_command_is_of_the_runners_session_and_not_of_its_group(python):
    session, group = map(int, python.run("!ps -o sid=,pgid= -p $$").stdout.split())
    assert python.run("import os; os.getsid(0), os.getpgid(0)").text == f"({session}, {session})"
    assert group != session


def test_all_output_of_a_command_arrives(python):
    for _ in range(20):
        assert python.run("!seq 3000").stdout == "".join(f"{i}\r\n" for i in range(1, 3001))


def test_magics(python, tmp_path):
    assert python.run("%pwd").text == repr(str(tmp_path))
    assert python.run("%pip --version").stdout.startswith("pip ")
    assert python.run("%%writefile a.txt\nhello").error is None
    assert (tmp_path / "a.txt").read_text() == "hello\n"
    assert python.run("%%sh\necho $0").stdout.strip().endswith("sh")
    assert python.run("%cd /\nimport os; os.getcwd()").text == "'/'"
    assert "loop" in python.run("%timeit -n 1 -r 1 pass").stdout


def test_modules_of_the_current_directory_are_found(python, tmp_path):
    (tmp_path / "mine.py").write_text("value = 11\n")
    assert python.run("import mine; mine.value").text == "11"


def test_a_forked_child_does_not_speak_for_the_runner(python):
    assert python.run("import os\nif os.fork() == 0: display(1)\nelse: os.wait()").shown == []
    assert python.run("2").text == "2"


def test_multiprocessing(python):
    code = "import multiprocessing as m\ndef f(n): return n * n\nwith m.get_context('fork').Pool(2) as pool: r = pool.map(f, range(4))\nr"
    assert python.run(code).text == "[0, 1, 4, 9]"


def test_threads_display_and_print(python):
    code = "import threading\nt = threading.Thread(target=lambda: (print('from a thread'), display('shown')))\nt.start(); t.join()"
    run = python.run(code)
    assert run.stdout == "from a thread\n"
    assert run.shown == [{"text/plain": "'shown'"}]


@pytest.mark.parametrize("ending", ["os.close(3)", "os._exit(4)", "os.kill(os.getpid(), 9)", "import ctypes; ctypes.string_at(0)"])
def test_a_runner_without_socket_or_life_is_gone(python, ending):
    with pytest.raises(RunnerDied):
        python.run(f"import os; {ending}")


def test_the_end_of_the_socket_ends_the_runner(python):
    python.begin("import atexit, time\natexit.register(time.sleep, 1000)")
    python.socket.shutdown(socket.SHUT_RDWR)
    assert python.process.wait(60) is not None


def test_what_the_start_costs(python):
    """A process that can be forked: one thread, three pipes and a socket, and no large library."""
    tasks = f"/proc/{python.process.pid}/task"
    assert len(os.listdir(tasks)) == 1
    fds = {int(fd): os.readlink(f"/proc/{python.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{python.process.pid}/fd")}
    assert sorted(fds) == [0, 1, 2, 3], fds
    large = python.run("import sys\n[m for m in ('matplotlib', 'numpy', 'pandas', 'PIL', 'IPython.core.completer', 'jedi', 'sqlite3', 'zmq') if m in sys.modules]")
    assert large.text == "[]"
    assert len(os.listdir(tasks)) == 1


def test_programs_inherit_only_the_three(python):
    # 3 is the folder that ls reads: the socket would make it 4.
    assert python.run("import subprocess\nsubprocess.run('ls /proc/self/fd', shell=True, close_fds=False)").stdout.split() == ["0", "1", "2", "3"]

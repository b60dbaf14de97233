# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The Bash runner, one test per behaviour."""

import pytest
from interpreter.driver import RunnerDied


@pytest.fixture
def bash(start_runner):
    return start_runner("bash")


def status_of(execution):
    """What the client learns of the exit status; 0 without an error."""
    if execution.error is None:
        return 0
    assert execution.error["name"] == "ExitStatus"
    return int(execution.error["value"])


def test_stdout_and_stderr_are_apart(bash):
    done = bash.run("echo out; echo err >&2; printf 'é\\n'")
    assert (done.stdout, done.stderr, done.error, done.text) == ("out\né\n", "err\n", None, None)


def test_state_lives_on(bash, tmp_path):
    (tmp_path / "sub").mkdir()
    bash.run("x=5; list=(1 '2 3'); f() { echo f $x; }; cd sub; alias say='echo said'; export E=7; set -- a b")
    done = bash.run("f; pwd; echo ${#list[@]} $1 $#; say\nsh -c 'echo $E'")
    assert done.stdout == f"f 5\n{tmp_path}/sub\n2 a 2\nsaid\n7\n"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("true", 0),
        ("false", 1),
        ("(exit 4)", 4),
        ("exit 3", 3),
        ("f() { exit 300; }; f; echo no", 44),
        ("false; exit; echo no", 1),
        ("for i in 1 2; do { exit 6; } 2>/dev/null; done; echo no", 6),
        ("return 7; echo no", 7),
        ("exit many; echo no", 2),
        ("no-such-command", 127),
        ("if then", 2),
        ("set -e; false; echo no", 1),
        ("set -euo pipefail; f() { false | true; echo no; }; f", 1),
        ("set -e; trap 'echo trapped $?' ERR; (exit 9); echo no", 9),
        ("set -u; echo $nope; echo no", 1),
        ("echo ${nope:?is missing}; echo no", 1),
    ],
)
def test_exit_status_is_kept_and_the_shell_too(bash, code, status):
    bash.run("kept=1; sleep 100 &")
    done = bash.run(code)
    assert status_of(done) == status
    assert "no\n" not in done.stdout
    assert bash.run("echo $? $kept").stdout == f"{status} 1\n"
    assert bash.run("kill %1").error is None


_BUILTINS = "alias declare enable eval exit export kill local printf return set shift source test trap true type unset :".split()


@pytest.mark.parametrize("name", _BUILTINS)
@pytest.mark.parametrize("way", ["{name}() {{ echo mine; }}", "alias {name}='echo mine; #'"])
def test_builtins_of_the_users_own(bash, name, way):
    bash.run("kept=1")
    assert bash.run(way.format(name=name)).error is None
    assert bash.run(name).stdout == "mine\n"
    assert bash.run("echo $NEW $kept", env={"NEW": "2", "kept": "3"}).stdout == "2 3\n"
    assert bash.run("echo ${NEW-none} $kept").stdout == "none 1\n"
    assert status_of(bash.run("(builtin exit 4)")) == 4
    assert bash.run("echo $?").stdout == "4\n"
    if name != "exit":
        assert status_of(bash.run("exit 5; echo no")) == 5
    if name != "set":
        assert status_of(bash.run("set -ex; false; echo no")) == 1
        assert bash.run("echo t").stderr == "++ echo t\n"
    begun = bash.begin("echo go; sleep 100; echo no")
    bash.wait_for_output(begun, "go")
    bash.interrupt()
    assert bash.finish(begun).error["name"] == "KeyboardInterrupt"


def test_error_options_stay_on(bash):
    bash.run("set -e; trap 'echo trapped $?' ERR; false")
    done = bash.run("echo a; (exit 3); echo b")
    assert (done.stdout, status_of(done)) == ("a\ntrapped 3\n", 3)
    assert bash.run("trap - ERR; set +e; false; echo b").stdout == "b\n"


def test_subshells_exit_alone(bash):
    assert bash.run("echo $(exit 3)$?; (exit 4); echo $?; echo x | { exit 5; }; echo $?").stdout == "3\n4\n5\n"


def test_trace_shows_the_cell_only(bash):
    assert bash.run("set -x; echo t").stderr == "++ echo t\n"
    assert bash.run("echo u").stderr == "++ echo u\n"
    bash.run("set +x")
    assert bash.run("echo v").stderr == ""


def test_counts(bash):
    assert [bash.run(code).count for code in ("true", "if", " \n\t", "true")] == [1, 2, 3, 3]


def test_variables_of_one_run(start_runner):
    bash = start_runner("bash", environ={"KEEP": "old"})
    bash.run("plain=p; declare -i number=4; list=(1 2)")
    show = "echo \"$KEEP/$NEW/$plain/$number\"; sh -c 'echo \"$KEEP/$NEW/$plain\"'"
    value = "it's \"quoted\"\n${x} `y` \\ $(z) é\n"
    assert bash.run('printf %s "$NEW"; sh -c \'printf %s "$NEW"\'', env={"NEW": value}).stdout == value * 2
    assert bash.run(show, env={"KEEP": "1", "NEW": "2", "plain": "3", "number": "8"}).stdout == "1/2/3/8\n1/2/3\n"
    assert bash.run(show).stdout == "old//p/4\nold//\n"
    assert bash.run("exit 2", env={"NEW": "3", "KEEP": "x", "list": "y"}).error
    assert bash.run(show + "; echo ${list[@]}; declare -p number").stdout == 'old//p/4\nold//\n1 2\ndeclare -i number="4"\n'
    assert bash.run("name=n; declare -A map=([k]='1 2' [l]=3); declare -x words").error is None
    assert bash.run("echo $name $map $words", env={"name": "1", "map": "2", "words": "3"}).stdout == "1 2 3\n"
    assert bash.run("echo $name ${map[k]} ${#map[@]} ${words-unset}").stdout == "n 1 2 2 unset\n"
    assert bash.run("echo $x", env={"bad-name": "1", "": "2", "a b": "3", "x": "4", "UID": "5"}).stdout == "4\n"


def test_children_get_no_descriptor_of_ours(bash):
    # The last one is the directory that ls reads.
    assert bash.run("ls /proc/self/fd").stdout.split() == ["0", "1", "2", "3"]
    done = bash.run("cat; read line; echo $?")
    assert done.stdout == "1\n"


def test_redirections_end_with_the_cell(bash, tmp_path):
    bash.run("exec >log 2>&1; echo hidden; echo too >&2")
    assert (tmp_path / "log").read_text() == "hidden\ntoo\n"
    done = bash.run("echo out; echo err >&2")
    assert (done.stdout, done.stderr) == ("out\n", "err\n")


def test_background_jobs_do_not_delay_the_end(bash):
    assert bash.run("sleep 100 & (sleep 100; true) & disown; echo $(jobs -p | wc -l)").stdout == "1\n"
    assert bash.run("echo next").stdout == "next\n"


@pytest.mark.parametrize(
    "code",
    [
        "echo go; sleep 100; echo no",
        "echo go; while :; do :; done",
        "f() { local kept=9; echo go; while :; do sleep 0.01; done; }; f",
        "echo go; while :; do sleep 100 | cat; done",
        "echo go; echo $(sleep 100)",
        "sleep 100 & echo go; wait $!",
        "echo go; while :; do echo; done",
        "python3 -uc 'import signal, time; signal.signal(2, lambda *_: None); print(\"go\"); time.sleep(0.3)'; while :; do :; done",
        "set -e; echo go; sleep 100",
    ],
)
def test_interrupts_keep_state(bash, code):
    bash.run("kept=5; sleep 100 & job=$!")
    for _ in range(5):
        begun = bash.begin(code)
        bash.wait_for_output(begun, "go")
        bash.interrupt()
        assert bash.finish(begun).error["name"] == "KeyboardInterrupt"
        assert "no\n" not in begun.stdout
        assert bash.run("echo $kept; kill -0 $job").stdout == "5\n"


def test_an_interrupt_at_the_end_of_a_cell_does_not_hit_the_next_one(bash):
    for i in range(100):
        begun = bash.begin("for ((i = 0; i < 200; i++)); do :; done")
        bash.wait_for_frame(begun, "started" if i % 3 == 0 else "done")
        bash.interrupt()
        bash.finish(begun)
        assert begun.error is None or begun.error["name"] == "KeyboardInterrupt"
        done = bash.run("for ((sum = 0, i = 0; i < 2000; i++)); do ((sum += i)); done; echo $sum", after_interrupt=True)
        assert (done.error, done.stdout) == (None, "1999000\n")


def test_an_interrupt_right_after_the_start_is_not_lost(bash):
    for _ in range(10):
        begun = bash.begin("while :; do :; done")
        bash.wait_for_frame(begun, "started")
        bash.interrupt()
        assert bash.finish(begun).error["name"] == "KeyboardInterrupt"


def test_interrupt_while_idle_is_ignored(bash):
    bash.run("kept=1")
    for _ in range(20):
        bash.interrupt()
    bash.run("sleep 0.2")
    done = bash.run("echo $kept")
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_no_line_is_lost(bash):
    done = bash.run("for ((i = 0; i < 100000; i++)); do echo line $i; done")
    assert done.stdout.splitlines() == [f"line {i}" for i in range(100000)]


def test_large_and_odd_cells(bash):
    assert bash.run("echo " + "x" * 1000000 + " | wc -c").stdout == "1000001\n"
    assert bash.run("printf a\0b").stdout == "ab"
    assert bash.run("cat <<X\n$((1 + 1)) 'quoted' !!\nX").stdout == "2 'quoted' !!\n"
    assert bash.run("echo a # comment").stdout == "a\n"


@pytest.mark.parametrize("code", ["exec true", "kill -9 $$", "builtin exit 3"])
def test_end_of_the_shell_is_the_end_of_the_process(bash, code):
    with pytest.raises(RunnerDied):
        bash.run(code)


def test_closing_the_socket_ends_all(bash):
    begun = bash.begin("echo go; sleep 100")
    bash.wait_for_output(begun, "go")
    bash.socket.shutdown(1)
    bash.process.wait(10)
    assert bash.process.returncode == -9

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""`alcove sandbox shell` and `exec -t`, driven in a terminal as a person does."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest
from harness import PROGRAM, api

pytestmark = [
    pytest.mark.wire,
    pytest.mark.skipif(not PROGRAM, reason="needs the program (ALCOVE_BIN)"),
]


class Screen:
    """The program in a terminal of its own; what it shows is collected."""

    def __init__(self, *args, rows=24, columns=80):
        self.outer, self.inner = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.inner)
        self.output = b""
        self.process = subprocess.Popen(
            [PROGRAM, *args], stdin=self.inner, stdout=self.inner, stderr=self.inner, preexec_fn=self._own_terminal
        )

    def _own_terminal(self):
        os.setsid()
        fcntl.ioctl(self.inner, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns):
        """The kernel tells the program by SIGWINCH, as a terminal window's edge does."""
        fcntl.ioctl(self.outer, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.outer, text.encode())

    def until(self, text, within=20):
        """Waits for a text, and forgets what was shown up to it."""
        wanted = text.encode()
        deadline = time.monotonic() + within
        while wanted not in self.output:
            ready, _, _ = select.select([self.outer], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"no {wanted!r} in {self.output!r}"
            self.output += os.read(self.outer, 65536)
        shown, self.output = self.output.split(wanted, 1)
        return shown.decode()

    def ended(self, within=20):
        """The exit code; what was shown last is in `output`."""
        code = self.process.wait(timeout=within)
        while select.select([self.outer], [], [], 0)[0]:
            self.output += os.read(self.outer, 65536)
        return code

    @property
    def is_raw(self):
        return not termios.tcgetattr(self.inner)[3] & (termios.ICANON | termios.ECHO | termios.ISIG)

    @property
    def is_restored(self):
        return termios.tcgetattr(self.inner) == self.before

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.outer)
        os.close(self.inner)


@pytest.fixture
def sandbox_id(created):
    return created(timeout=120)["sandboxID"]


@pytest.fixture
def screen(sandbox_id):
    opened = []

    def open_screen(*args, command="shell", **size):
        opened.append(Screen("sandbox", command, sandbox_id, *args, **size))
        return opened[-1]

    yield open_screen
    for one in opened:
        one.close()


@pytest.fixture
def shell(screen):
    """A shell at its prompt."""
    opened = screen()
    opened.until("$ ")
    return opened


def inside(sandbox_id, line):
    command = [PROGRAM, "sandbox", "exec", sandbox_id, "-u", "root", "--", "sh", "-c", line]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, text=True).stdout


@pytest.mark.smoke
def test_prompt_echo_and_exit_code(shell):
    assert shell.is_raw
    shell.type("echo $((6*7))\r")
    # The echo comes from inside, once, and the output after it.
    shell.until("echo $((6*7))\r\n")
    assert "echo" not in shell.until("42\r\n")
    shell.type("exit 37\r")
    assert shell.ended() == 37
    assert shell.is_restored
    assert b"alcove:" not in shell.output


def test_variables_are_those_of_the_official_clients(screen):
    opened = screen("-e", "LANG=C", "-w", "/tmp")
    opened.until("$ ")
    opened.type("echo is $0 $- $TERM $LANG $LC_ALL $PWD.\r")
    opened.until("$PWD.\r\n")
    shell, flags, *rest = opened.until(".\r\n").split("is ")[1].split()
    assert shell == "/bin/bash" and "i" in flags
    assert rest == ["xterm-256color", "C", "C.UTF-8", "/tmp"]


def test_size_follows_the_window(screen):
    opened = screen(rows=33, columns=101)
    opened.until("$ ")
    opened.type("stty size\r")
    opened.until("33 101\r\n")
    opened.type("trap 'stty size' WINCH; sleep 60 & wait\r")
    opened.until("& wait\r\n")
    opened.resize(50, 132)
    opened.until("50 132\r\n")


def test_ctrl_c_is_for_the_program_inside(shell):
    shell.type("sleep 60; echo ended-$?\r")
    shell.until("ended-$?\r\n")
    time.sleep(0.5)
    shell.type("\x03")
    shell.until("^C")
    shell.type("echo still-$((1+1))\r")
    shell.until("still-2\r\n", within=10)
    assert shell.process.poll() is None
    shell.type("cat\r")
    shell.until("cat\r\n")
    shell.type("\x04")
    shell.until("$ ")
    shell.type("exit\r")
    assert shell.ended() == 0


def test_long_pastes_arrive_whole(shell):
    """More than a line holds, at once, to a program that takes each key as it is."""
    shell.type("stty -icanon -echo; echo ready; head -c 100000 | md5sum; stty sane\r")
    shell.until("ready\r\n")
    text = "0123456789abcdefghi\n" * 5000
    view = memoryview(text.encode())
    while view:
        view = view[os.write(shell.outer, view[:4096]) :]
    expected = subprocess.run(["md5sum"], input=text.encode(), capture_output=True, check=True).stdout.split()[0]
    shell.until(expected.decode())


def test_sandbox_that_ends_meanwhile(shell, sandbox_id):
    assert api("DELETE", f"/sandboxes/{sandbox_id}").status == 204
    assert shell.ended() == 1
    assert shell.is_restored
    # On a line of its own.
    assert shell.output.endswith(b"\r\nalcove: the sandbox ended while the command ran\r\n"), shell.output


def test_shell_that_is_killed(shell):
    shell.type("kill -9 $$\r")
    assert shell.ended() == 137
    assert shell.is_restored
    assert b"\r\nalcove: the command ended by a signal (signal: killed)\r\n" in shell.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_to_the_client_restores_and_ends_the_shell(shell, sandbox_id, number):
    shell.process.send_signal(number)
    assert shell.ended() == 128 + number
    assert shell.is_restored
    assert inside(sandbox_id, "pgrep -x bash") == ""


def test_stopped_and_continued(shell):
    shell.process.send_signal(signal.SIGTSTP)
    assert os.waitpid(shell.process.pid, os.WUNTRACED)[0] == shell.process.pid
    assert shell.is_restored
    shell.resize(40, 90)
    shell.process.send_signal(signal.SIGCONT)
    shell.type("stty size\r")
    shell.until("40 90\r\n")
    assert shell.is_raw
    shell.type("exit 3\r")
    assert shell.ended() == 3


def test_sh_where_there_is_no_bash(screen, sandbox_id):
    inside(sandbox_id, "mv /bin/bash /bin/bash.away")
    opened = screen("-u", "root")
    opened.until("$ ")
    opened.type("echo $0-$((6*7))\r")
    opened.until("/bin/sh-42\r\n")
    opened.type("exit\r")
    assert opened.ended() == 0


def test_exec_in_a_terminal(screen):
    opened = screen("-t", "--", "sh", "-c", "tty; read word; echo got $word; exit 5", command="exec")
    opened.until("/dev/pts/")
    opened.type("hello\r")
    opened.until("got hello\r\n")
    assert opened.ended() == 5
    assert opened.is_restored


def test_exec_in_a_terminal_that_runs_too_long(screen):
    opened = screen("-t", "--timeout", "2", "--", "sleep", "60", command="exec")
    assert opened.ended() == 124
    assert opened.is_restored
    assert b"\r\nalcove: the command was killed: it ran longer than its --timeout\r\n" in opened.output


@pytest.mark.parametrize("args", [("shell",), ("exec", "-t")])
def test_without_a_terminal_it_says_so(sandbox_id, args):
    command = [PROGRAM, "sandbox", *args, sandbox_id, *(["--", "true"] if "-t" in args else [])]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("alcove: standard input is no terminal") and done.stderr.count("\n") == 1


def test_unknown_sandbox():
    opened = Screen("sandbox", "shell", "i0000")
    try:
        assert opened.ended() == 1
        assert opened.is_restored
        assert b"`alcove sandbox ls`" in opened.output
    finally:
        opened.close()

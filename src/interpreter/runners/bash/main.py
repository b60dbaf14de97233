# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The Bash runner: speaks frames on fd 3 and drives one bash, which lives as long as the context.

bash reads its commands from a pipe: for each cell, one that sources the cell's text from a memory
file of this process, and one that reports the status. Both processes are in one group, so both see
the interpreter's SIGINT."""

import os
import re
import select
import selectors
import shlex
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from frames import Frames  # noqa: E402

_PROTOCOL_FD = 3
# After a SIGINT, bash is asked for its report again, as the signal may have hit the very command that
# reports; and more rarely the signal is sent again, as a process between fork and exec loses it.
_ASK_AGAIN_S = 0.1
_SIGNAL_AGAIN = 5
# bash may notice a SIGINT, and report, before this process does.
_INTERRUPTED = 128 + signal.SIGINT
_SIGNAL_S = 0.05
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OWN_NAME = "__alcove_"


class Shell:
    """The bash process."""

    def __init__(self, folder):
        commands, self._commands = os.pipe()
        self.reports, self._report_end = os.pipe()
        self._cell = os.memfd_create("cell")
        quiet = os.open(os.devnull, os.O_WRONLY)
        flags = ["--norc", "--noprofile", "--noediting", "-i"]
        actions = [(os.POSIX_SPAWN_DUP2, commands, 0), (os.POSIX_SPAWN_DUP2, quiet, 2)]
        self.pid = os.posix_spawnp("bash", ["bash", *flags], os.environ, file_actions=actions, setsigdef=[signal.SIGINT])
        os.close(commands)
        os.close(quiet)
        # An interactive bash writes prompts, complaints about the missing terminal and a line break
        # after each SIGINT. So its own stderr goes nowhere; the cells get theirs.
        own = f"/proc/{os.getpid()}/fd"
        self._source = f"\\command source {own}/{self._cell} </dev/null >{own}/1 2>{own}/2"
        self._send(f"source {shlex.quote(folder)}/session.bash")

    def run(self, number, code, variables, *, status, traced):
        os.ftruncate(self._cell, 0)
        prefix = "\\command set -x; " if traced else ""
        _write_at(self._cell, (prefix + code).replace("\0", "").encode("utf-8", "replace") + b"\n")
        words = [shlex.quote(word.replace("\0", "")) for pair in variables.items() for word in pair]
        if words:
            self._send(f"__alcove_enter {' '.join(words)}")
        # The cell finds the last one's status in `$?`.
        self._send(f"__alcove_return {status} || {self._source}" if status else self._source)
        self.ask(number)

    def ask(self, number):
        """Makes bash report run `number` as over, once it reads commands again."""
        self._send(f"__alcove_done {number} $? {self._report_end}")

    def _send(self, text):
        data = text.encode("utf-8", "replace") + b"\n"
        while data:
            data = data[os.write(self._commands, data) :]


def _write_at(fd, data):
    at = 0
    while at < len(data):
        at += os.pwrite(fd, data[at:], at)


class Runner:
    def __init__(self, folder):
        self._wakeups, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        os.set_blocking(self._wakeups, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        self._frames = Frames(_PROTOCOL_FD)
        self._shell = Shell(folder)
        self._running = 0  # the id of the run under way
        self._interrupted = False
        self._count = 0
        self._status = 0
        self._traced = False
        self._reports = b""
        self._shell.ask(0)

    def loop(self):
        selector = selectors.DefaultSelector()
        for fd, action in (
            (self._wakeups, self._on_signal),
            (self._shell.reports, self._on_report),
            (_PROTOCOL_FD, self._on_frames),
        ):
            selector.register(fd, selectors.EVENT_READ, action)
        asked = 0
        while True:
            waiting = self._running and self._interrupted
            ready = selector.select(_ASK_AGAIN_S if waiting else None)
            # Signals first: one that came before a cell is not meant for it.
            for key, _ in sorted(ready, key=lambda pair: pair[0].fd != self._wakeups):
                key.data()
            asked = asked + 1 if waiting and not ready else 0
            if asked:
                self._shell.ask(self._running)
                if asked % _SIGNAL_AGAIN == 0:
                    os.killpg(0, signal.SIGINT)

    def _on_frames(self):
        # A signal that came before these, and after the look at what is ready.
        self._on_signal()
        for frame in self._frames.receive():
            if frame.get("type") == "execute":
                self._execute(frame)

    def _execute(self, frame):
        code = frame["code"]
        self._running = frame["id"]
        self._interrupted = False
        self._send("started", execution_count=self._count + 1)
        if not code.strip():
            self._finish()
            return
        self._count += 1
        variables = {
            name: value
            for name, value in (frame.get("env") or {}).items()
            if _NAME.match(name) and not name.startswith(_OWN_NAME)
        }
        self._shell.run(self._running, code, variables, status=self._status, traced=self._traced)

    def _on_report(self):
        self._reports += os.read(self._shell.reports, 4096)
        *lines, self._reports = self._reports.split(b"\n")
        for line in lines:
            number, status, traced = (int(word) for word in line.split())
            if number == 0 and self._count == 0:
                self._frames.send({"type": "ready"})
            elif number == self._running:
                self._status, self._traced = status, bool(traced)
                if status == _INTERRUPTED and select.select([self._wakeups], [], [], _SIGNAL_S)[0]:
                    self._on_signal()
                self._report_status()
                self._finish()

    def _report_status(self):
        if self._interrupted:
            text = "the execution was interrupted"
            self._send("error", name="KeyboardInterrupt", value=text, traceback=[f"KeyboardInterrupt: {text}"])
        elif self._status:
            text = f"the last command's exit status is {self._status}"
            self._send("error", name="ExitStatus", value=str(self._status), traceback=[f"ExitStatus: {text}"])

    def _finish(self):
        self._send("done")
        self._running = 0

    def _send(self, kind, **fields):
        self._frames.send({"type": kind, "id": self._running, **fields})

    def _on_signal(self):
        try:
            numbers = os.read(self._wakeups, 4096)
        except BlockingIOError:
            return
        if signal.SIGINT in numbers:
            self._interrupted = True
        if signal.SIGCHLD in numbers:
            pid, status = os.waitpid(self._shell.pid, os.WNOHANG)
            if pid:
                # The context's state is gone, and so is this process: the interpreter starts anew.
                os._exit(os.waitstatus_to_exitcode(status) & 255)


if __name__ == "__main__":
    Runner(os.path.dirname(os.path.abspath(sys.argv[0]))).loop()

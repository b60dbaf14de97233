# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The kernel's floor, measured by floor.c inside the sandbox that is measured."""

from pathlib import Path

_SOURCE = Path(__file__).with_name("floor.c")
_PROGRAM = "/tmp/floor"


class Floor:
    def __init__(self, sandbox):
        self._sandbox = sandbox
        sandbox.put(f"{_PROGRAM}.c", _SOURCE.read_bytes())
        sandbox.run("/usr/bin/gcc", "-O2", "-o", _PROGRAM, f"{_PROGRAM}.c")

    def spawn(self, n, *argv):
        """Seconds of each bare start and end of a process."""
        return self._seconds("spawn", n, *argv)

    def list(self, n, path):
        """Seconds of each bare listing of a directory."""
        return self._seconds("list", n, path)

    def rate(self, jobs, n, *argv):
        """Bare runs per second, `jobs` at once."""
        return float(self._run("rate", jobs, n, *argv))

    def pipe(self, size, *argv):
        """Bytes per second of a command's output over a pipe to TCP."""
        return float(self._run("pipe", size, *argv))

    def receive(self, size, path):
        return float(self._run("receive", size, path))

    def send(self, path):
        return float(self._run("send", path))

    def _seconds(self, *args):
        return [float(line) / 1e9 for line in self._run(*args).split()]

    def _run(self, *args):
        return self._sandbox.run(_PROGRAM, *map(str, args))

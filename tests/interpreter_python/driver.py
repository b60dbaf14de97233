# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Starts the Python runner as the interpreter does, and talks frames with it."""

import dataclasses
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

MAIN = Path(__file__).resolve().parents[2] / "src" / "interpreter" / "runners" / "python" / "main.py"
_PATIENCE = 60


@dataclasses.dataclass
class Run:
    """All that one execution sent."""

    count: int = None
    results: list = dataclasses.field(default_factory=list)
    error: dict = None
    stdout: str = ""
    stderr: str = ""
    died: bool = False

    @property
    def text(self):
        return next(r["data"]["text/plain"] for r in self.results if r["main"])

    @property
    def main(self):
        return next(r["data"] for r in self.results if r["main"])

    @property
    def shown(self):
        return [r["data"] for r in self.results if not r["main"]]


class Runner:
    def __init__(self, *, cwd=None, env=None, python=sys.executable):
        ours, theirs = socket.socketpair()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()

        def place():
            # Above all numbers that are assigned, so that nothing is overwritten.
            moved = [os.dup2(fd, 100 + i) for i, fd in enumerate((out_write, err_write, theirs.fileno()))]
            for fd, number in zip(moved, (1, 2, 3)):
                os.dup2(fd, number)
            os.closerange(4, 1024)

        self.process = subprocess.Popen(
            [python, MAIN], stdin=subprocess.DEVNULL, preexec_fn=place, close_fds=False,
            start_new_session=True, cwd=cwd, env=env,
        )
        theirs.close()
        os.close(out_write)
        os.close(err_write)
        self.socket = ours
        self._pipes = {out_read: bytearray(), err_read: bytearray()}
        self._out, self._err = out_read, err_read
        self._received = bytearray()
        self._gone = False
        self._next_id = 0
        self._selector = selectors.DefaultSelector()
        for fd in (ours.fileno(), out_read, err_read):
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ)
        assert self.frame() == {"type": "ready"}

    def close(self):
        """Ends the runner by closing its socket; returns its exit status."""
        self._selector.close()
        self.socket.close()
        try:
            status = self.process.wait(_PATIENCE)
        finally:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
            for fd in self._pipes:
                os.close(fd)
        return status

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def send(self, message):
        body = json.dumps(message).encode()
        self.socket.setblocking(True)
        self.socket.sendall(struct.pack(">I", len(body)) + body)
        self.socket.setblocking(False)

    def start(self, code, env=None):
        """Sends a cell and waits until it has started."""
        self._next_id += 1
        message = {"type": "execute", "id": self._next_id, "code": code}
        self.send(message if env is None else message | {"env": env})
        started = self.frame()
        assert started["type"] == "started" and started["id"] == self._next_id
        return Run(count=started["execution_count"])

    def finish(self, run):
        while True:
            frame = self.frame()
            if frame is None:
                run.died = True
                break
            assert frame["id"] == self._next_id
            if frame["type"] == "done":
                break
            if frame["type"] == "result":
                run.results.append(frame)
            elif frame["type"] == "error":
                assert run.error is None, "two errors in a run"
                run.error = frame
        self._drain()
        run.stdout, run.stderr = self.take()
        return run

    def run(self, code, env=None):
        return self.finish(self.start(code, env))

    def take(self):
        """What was printed since the last call."""
        texts = [bytes(self._pipes[fd]).decode() for fd in (self._out, self._err)]
        for data in self._pipes.values():
            data.clear()
        return texts

    def wait_for_stdout(self, text):
        deadline = time.monotonic() + _PATIENCE
        while text.encode() not in self._pipes[self._out]:
            assert time.monotonic() < deadline, f"no {text!r}"
            self._pump(0.1)

    def frame(self):
        """The next frame; None when the runner is gone."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            if len(self._received) >= 4:
                (length,) = struct.unpack(">I", self._received[:4])
                if len(self._received) >= 4 + length:
                    body = bytes(self._received[4 : 4 + length])
                    del self._received[: 4 + length]
                    return json.loads(body, parse_constant=_refuse_constant)
            if self._gone:
                return None
            assert time.monotonic() < deadline, "the runner says nothing"
            self._pump(0.5)

    def _pump(self, seconds):
        for key, _ in self._selector.select(seconds):
            target = self._pipes.get(key.fd, self._received)
            try:
                data = os.read(key.fd, 1 << 18)
            except ConnectionResetError:
                data = b""
            if data:
                target += data
            else:
                self._selector.unregister(key.fd)
                self._gone = self._gone or key.fd == self.socket.fileno()

    def _drain(self):
        for fd, kept in self._pipes.items():
            while True:
                try:
                    data = os.read(fd, 1 << 18)
                except BlockingIOError:
                    break
                if not data:
                    break
                kept += data


def _refuse_constant(name):
    raise AssertionError(f"{name} is not JSON")

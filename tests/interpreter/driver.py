# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Drives a language runner as alcove-interpreter does: fd 3 is the protocol's socket, 1 and 2 are
pipes, own session. Frames are 4 bytes of length and one JSON object."""

import codecs
import dataclasses
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import time

_FD = 3
_DEADLINE = 60


class RunnerDied(Exception):
    """The process ended: what the interpreter reports as a dead kernel."""


@dataclasses.dataclass
class Execution:
    frames: list = dataclasses.field(default_factory=list)
    stdout: str = ""  # of the pipe
    stderr: str = ""

    def of(self, kind):
        return [frame for frame in self.frames if frame["type"] == kind]

    @property
    def count(self):
        return self.of("started")[0]["execution_count"]

    @property
    def error(self):
        errors = self.of("error")
        assert len(errors) <= 1
        return errors[0] if errors else None

    @property
    def text(self):
        """The plain text of the last expression's value."""
        mains = [frame for frame in self.of("result") if frame["main"]]
        assert len(mains) <= 1
        return mains[0]["data"]["text/plain"] if mains else None

    @property
    def main(self):
        """The MIME bundle of the last expression's value."""
        return next(frame["data"] for frame in self.of("result") if frame["main"])

    @property
    def shown(self):
        """The MIME bundles of all that was displayed."""
        return [frame["data"] for frame in self.of("result") if not frame["main"]]

    @property
    def streams(self):
        return [(frame["name"], frame["text"]) for frame in self.of("stream")]


class Runner:
    def __init__(self, command, *, cwd, environ=None):
        ours, theirs = socket.socketpair()

        def prepare():
            os.dup2(theirs.fileno(), _FD, inheritable=True)
            # As in a sandbox. Shells start what they leave in the background with it ignored.
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        out, out_end = os.pipe()
        err, err_end = os.pipe()
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=out_end,
            stderr=err_end,
            cwd=cwd,
            env=environ,
            start_new_session=True,
            pass_fds=[_FD],
            preexec_fn=prepare,
        )
        theirs.close()
        os.close(out_end)
        os.close(err_end)
        self.socket = ours
        self._bytes = b""
        self._next_id = 0
        self._pipes = {out: "stdout", err: "stderr"}
        self._decoders = {fd: codecs.getincrementaldecoder("utf-8")("replace") for fd in self._pipes}
        self._selector = selectors.DefaultSelector()
        for fd in (ours.fileno(), out, err):
            self._selector.register(fd, selectors.EVENT_READ)

    def wait_until_ready(self):
        seen = Execution()
        self._read_until(lambda frame: frame["type"] == "ready", seen)
        return seen

    def run(self, code, env=None, *, after_interrupt=False):
        """One cell, from its `execute` to its `done`."""
        return self.finish(self.begin(code, env, after_interrupt=after_interrupt))

    def begin(self, code, env=None, *, after_interrupt=False):
        """`after_interrupt`: SIGINT was sent since the last cell began, and may be on its way."""
        self._next_id += 1
        frame = {"type": "execute", "id": self._next_id, "code": code}
        if after_interrupt:
            frame["after_interrupt"] = True
        if env is not None:
            frame["env"] = env
        body = json.dumps(frame, ensure_ascii=False).encode()
        self.socket.sendall(struct.pack(">I", len(body)) + body)
        return Execution()

    def finish(self, execution):
        number = self._next_id
        self._read_until(lambda frame: frame["type"] == "done", execution)
        assert all(frame["id"] == number for frame in execution.frames)
        assert execution.frames[0]["type"] == "started"
        self._drain(execution)
        return execution

    def wait_for_output(self, execution, text):
        """Reads until the cell has printed `text`."""
        deadline = time.monotonic() + _DEADLINE
        while text not in execution.stdout and not any(text in frame.get("text", "") for frame in execution.frames):
            self._step(execution, deadline)

    def wait_for_frame(self, execution, kind):
        deadline = time.monotonic() + _DEADLINE
        while not execution.of(kind):
            self._step(execution, deadline)

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def close(self):
        self.socket.close()
        try:
            self.process.wait(10)
        finally:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
            self._selector.close()
            for fd in self._pipes:
                os.close(fd)

    def _read_until(self, is_last, execution):
        deadline = time.monotonic() + _DEADLINE
        while not (execution.frames and is_last(execution.frames[-1])):
            self._step(execution, deadline)

    def _step(self, execution, deadline):
        """Reads what is there; at most one frame."""
        if self._take_frame(execution):
            return
        ready = self._selector.select(max(0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError(f"the runner is silent; so far: {str(execution)[-2000:]}")
        for key, _ in ready:
            if key.fd in self._pipes:
                self._read_pipe(key.fd, execution)
            else:
                received = self._receive()
                if not received:
                    self._drain(execution)
                    raise RunnerDied(execution)
                self._bytes += received

    def _receive(self):
        try:
            return self.socket.recv(1 << 20)
        except ConnectionResetError:
            return b""

    def _take_frame(self, execution):
        if len(self._bytes) < 4:
            return False
        (length,) = struct.unpack(">I", self._bytes[:4])
        if len(self._bytes) < 4 + length:
            return False
        body = self._bytes[4 : 4 + length].decode("utf-8", "strict")
        execution.frames.append(json.loads(body, parse_constant=_refuse_constant))
        self._bytes = self._bytes[4 + length :]
        return True

    def _read_pipe(self, fd, execution):
        data = os.read(fd, 1 << 16)
        name = self._pipes[fd]
        setattr(execution, name, getattr(execution, name) + self._decoders[fd].decode(data, final=not data))
        if not data:
            self._selector.unregister(fd)
        return bool(data)

    def _drain(self, execution):
        while True:
            ready = [key.fd for key, _ in self._selector.select(0) if key.fd in self._pipes]
            if not ready:
                return
            for fd in ready:
                self._read_pipe(fd, execution)


def _refuse_constant(name):
    raise AssertionError(f"{name} is not JSON")

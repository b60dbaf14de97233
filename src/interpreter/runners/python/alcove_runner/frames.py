# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Frames on the socket: four bytes of length, then a JSON object."""

import fcntl
import json
import os
import socket
import struct
import termios
import threading
import time

MAX_FRAME = 256 * 1024 * 1024


class FrameTooLarge(Exception):
    pass


class Channel:
    """The runner's end of the socket. Any thread may send; only the main one reads."""

    def __init__(self, fd):
        os.set_inheritable(fd, False)
        self._socket = socket.socket(fileno=fd)
        self._socket.setblocking(True)
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def is_owner(self):
        """False in a process that user code forked: it must not talk as if it were the runner."""
        return os.getpid() == self._owner

    def fileno(self):
        return self._socket.fileno()

    def adopt(self):
        """Makes this process the runner (after a fork that was meant)."""
        self._owner = os.getpid()
        self._lock = threading.Lock()

    def read(self):
        """The next frame, or None when the other side is gone."""
        head = self._read_exactly(4)
        if head is None:
            return None
        (length,) = struct.unpack(">I", head)
        if length > MAX_FRAME:
            return None
        body = self._read_exactly(length)
        return None if body is None else json.loads(body)

    def send(self, message):
        if not self.is_owner():
            return
        body = encode(message)
        if len(body) > MAX_FRAME:
            raise FrameTooLarge(f"{len(body)} bytes")
        with self._lock:
            self._socket.sendall(struct.pack(">I", len(body)) + body)

    def wait_until_taken(self):
        """Until the interpreter has read all that was sent."""
        pause = 0.00005
        while self.is_owner() and self._waiting_bytes() > 0:
            time.sleep(pause)
            pause = min(2 * pause, 0.02)

    def _waiting_bytes(self):
        # The number's name for terminals; for sockets it is SIOCOUTQ.
        answer = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, bytes(4))
        return struct.unpack("i", answer)[0]

    def _read_exactly(self, count):
        parts = []
        while count > 0:
            data = self._socket.recv(min(count, 1 << 20))
            if not data:
                return None
            parts.append(data)
            count -= len(data)
        return b"".join(parts)


def encode(message):
    """JSON in UTF-8 without lone surrogates, NaN and infinities."""
    try:
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_without_nan(message), ensure_ascii=False, allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Through UTF-16 the halves of a pair find each other, and the lonely ones become U+FFFD.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def _without_nan(value):
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return value

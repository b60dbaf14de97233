# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The interpreter's socket: 4 bytes of length, then one JSON object."""

import json
import os
import signal
import socket
import struct

_MAX_FRAME = 256 << 20
_CHUNK = 1 << 18


class Frames:
    def __init__(self, fd):
        os.set_inheritable(fd, False)
        self._socket = socket.socket(fileno=fd)
        self._received = bytearray()

    def receive(self):
        """The frames that are complete after one read. Ends the process group when the socket closes."""
        try:
            data = self._socket.recv(_CHUNK)
        except ConnectionError:
            data = b""
        if not data:
            os.killpg(0, signal.SIGKILL)
        self._received += data
        found = []
        while len(self._received) >= 4:
            (length,) = struct.unpack_from(">I", self._received)
            if length > _MAX_FRAME:
                raise ValueError(f"a frame of {length} bytes")
            if len(self._received) < 4 + length:
                break
            found.append(json.loads(self._received[4 : 4 + length]))
            del self._received[: 4 + length]
        return found

    def send(self, frame):
        body = json.dumps(frame).encode()
        self._socket.sendall(struct.pack(">I", len(body)) + body)

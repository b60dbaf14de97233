# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The interpreter's port on the wire, as bytes: what clients hide."""

import contextlib
import json
import socket
import struct
import urllib.parse

from harness import SANDBOX_URL, to_sandbox

PORT = 49999


def call(sandbox, method, path, body=None, **options):
    """One request with a short answer."""
    return to_sandbox(method, path, sandbox.sandbox_id, PORT, body=body, **options)


class Cut(Exception):
    """The answer ended before its end."""


class Execute:
    """POST /execute on a connection of its own, read chunk by chunk."""

    def __init__(self, sandbox, body, *, receive_buffer=None, timeout=60):
        target = urllib.parse.urlsplit(SANDBOX_URL)
        self._socket = socket.socket()
        if receive_buffer:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(timeout)
        self._socket.connect((target.hostname, target.port))
        payload = json.dumps(body).encode() if isinstance(body, dict) else body
        head = (
            f"POST /execute HTTP/1.1\r\nHost: {target.netloc}\r\nContent-Type: application/json\r\n"
            f"E2b-Sandbox-Id: {sandbox.sandbox_id}\r\nE2b-Sandbox-Port: {PORT}\r\nContent-Length: {len(payload)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + payload)
        self._reader = self._socket.makefile("rb")

    def head(self):
        """Status, and headers with lower-case names."""
        status = int(self._reader.readline().split()[1])
        headers = {}
        while line := self._reader.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return status, headers

    def chunks(self):
        while True:
            try:
                size = self._reader.readline()
                if not size.endswith(b"\r\n"):
                    raise Cut
                data = self._reader.read(int(size, 16) + 2)
            except ConnectionError as error:
                raise Cut from error
            if len(data) < int(size, 16) + 2:
                raise Cut
            if int(size, 16) == 0:
                return
            yield data[:-2]

    def events(self):
        """The lines, however they were cut on their way."""
        rest = b""
        for chunk in self.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            yield from map(json.loads, lines)
        assert rest == b""

    def close(self, *, reset=False):
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._reader.close()
        self._socket.close()


@contextlib.contextmanager
def execute(sandbox, code, **fields):
    """The run's events, after its head was checked."""
    stream = Execute(sandbox, {"code": code} | fields)
    try:
        assert stream.head()[0] == 200
        yield stream
    finally:
        stream.close()

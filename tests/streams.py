# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Streaming calls to the agent without the SDK: the framing, and calls on connections of their own,
read as slowly, left open as long and cut as rudely as a test likes."""

import http.client
import json
import socket
import struct
import urllib.parse

from harness import SANDBOX_URL

_AGENT_PORT = "49983"


def envelope(message):
    data = json.dumps(message).encode()
    return struct.pack(">BI", 0, len(data)) + data


def messages_of(body):
    """The messages in the body of an answer, the end of the stream last."""
    messages, at = [], 0
    while at < len(body):
        _, size = struct.unpack_from(">BI", body, at)
        messages.append(json.loads(body[at + 5 : at + 5 + size]))
        at += 5 + size
    return messages


class Stream:
    """A call of process.Process. Its request body stays open until `finish()`."""

    def __init__(self, sandbox, method, *, receive_buffer=None, headers=None):
        target = urllib.parse.urlsplit(SANDBOX_URL)
        self._connection = http.client.HTTPConnection(target.hostname, target.port, timeout=120)
        self._connection.connect()
        self._reply = None
        if receive_buffer:
            self._connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        fields = {
            "E2b-Sandbox-Id": sandbox.sandbox_id,
            "E2b-Sandbox-Port": _AGENT_PORT,
            "Content-Type": "application/connect+json",
            "Connect-Protocol-Version": "1",
            "X-Access-Token": sandbox._envd_access_token,
            "Transfer-Encoding": "chunked",
        }
        self._connection.putrequest("POST", f"/process.Process/{method}")
        for name, value in (fields | (headers or {})).items():
            self._connection.putheader(name, value)
        self._connection.endheaders()

    def send(self, message):
        data = envelope(message)
        self._connection.send(b"%x\r\n%s\r\n" % (len(data), data))

    def finish(self):
        self._connection.send(b"0\r\n\r\n")

    def messages(self):
        """The messages up to the end of the stream, and last the end itself: {} or its error."""
        if self._reply is None:
            self._reply = self._connection.getresponse()
            assert self._reply.status == 200
        while True:
            head = self._reply.read(5)
            assert len(head) == 5, "the stream was cut"
            flags, size = struct.unpack(">BI", head)
            message = json.loads(self._reply.read(size))
            yield message
            if flags & 2:
                return

    def events(self):
        """The events of Start and Connect; the end of the stream must be a success."""
        for message in self.messages():
            if "event" in message:
                yield message["event"]
            else:
                assert "error" not in message, message

    def vanish(self):
        """Closes the connection at once, with a reset, unless the server did."""
        if self._connection.sock is None:
            return
        self._connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if self._reply is not None:
            self._reply.close()
        self._connection.close()


def start(sandbox, script, **options):
    """A Start call of a shell script."""
    stream = Stream(sandbox, "Start", **options)
    stream.send({"process": {"cmd": "/bin/bash", "args": ["-c", script]}})
    stream.finish()
    return stream


def connect(sandbox, pid, **options):
    stream = Stream(sandbox, "Connect", **options)
    stream.send({"process": {"pid": pid}})
    stream.finish()
    return stream

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The bare wire: HTTP on a kept connection with as little Python as possible in between, so that
what is measured is the server."""

import base64
import contextlib
import json
import os
import socket
import struct
import urllib.parse

API_KEY = os.environ["E2B_API_KEY"]
API_URL = os.environ["E2B_API_URL"]
SANDBOX_URL = os.environ["E2B_SANDBOX_URL"]

_LAST_CHUNK = b"\r\n0\r\n\r\n"
_TIMEOUT = 120
_PIECE = 1 << 20


class Failed(Exception):
    """The server answered with something else than what is measured."""


class Connection:
    def __init__(self, url=API_URL):
        target = urllib.parse.urlsplit(url)
        self.host = target.netloc
        self.socket = socket.create_connection((target.hostname, target.port or 80), _TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def message(self, method, path, headers=None, body=b"", length=None):
        """The bytes of a request; `length` where the body follows separately."""
        fields = {"Host": self.host, "Content-Length": len(body) if length is None else length} | (headers or {})
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body

    def exchange(self, message):
        """Sends the bytes of a request and returns (head, body as it came)."""
        self.socket.sendall(message)
        return self.answer()

    def answer(self):
        data = bytearray()
        while not complete(data):
            data += self._receive()
        head, _, body = bytes(data).partition(b"\r\n\r\n")
        return head, body

    def drain(self):
        """Reads a large answer and keeps only its size and its end: (head, body bytes, last 4 KiB)."""
        data = bytearray()
        while b"\r\n\r\n" not in data:
            data += self._receive()
        head, _, rest = bytes(data).partition(b"\r\n\r\n")
        length, size, tail = content_length(head), len(rest), rest[-4096:]
        piece = bytearray(_PIECE)
        view = memoryview(piece)
        while size < length if length is not None else not tail.endswith(_LAST_CHUNK):
            count = self.socket.recv_into(view)
            if count == 0:
                raise Failed("the connection ended early")
            size += count
            tail = (tail + bytes(view[max(0, count - 4096) : count]))[-4096:]
        return head, size, tail

    def _receive(self):
        data = self.socket.recv(65536)
        if not data:
            raise Failed("the connection ended early")
        return data

    def close(self):
        self.socket.close()


def content_length(head):
    """None: chunked."""
    for line in head.lower().split(b"\r\n")[1:]:
        if line.startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return None if b"transfer-encoding: chunked" in head.lower() else 0


def complete(data):
    """Whether these bytes are a whole answer."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return False
    length = content_length(bytes(data[:end]))
    return data.endswith(_LAST_CHUNK) if length is None else len(data) - end - 4 >= length


def expect(head, status):
    if head.split(b" ", 2)[1] != str(status).encode():
        raise Failed(f"{head.splitlines()[0].decode()} instead of {status}")


class Api:
    """Creates and kills sandboxes on one kept connection."""

    def __init__(self, template="base"):
        self.connection = Connection()
        self._headers = {"X-API-Key": API_KEY, "Content-Type": "application/json"}
        body = json.dumps({"templateID": template, "timeout": 600}).encode()
        self._create = self.connection.message("POST", "/v2/sandboxes", self._headers, body)

    def create(self):
        head, body = self.connection.exchange(self._create)
        expect(head, 201)
        return json.loads(body)

    def kill(self, created):
        path = f"/sandboxes/{created['sandboxID']}"
        head, _ = self.connection.exchange(self.connection.message("DELETE", path, self._headers))
        expect(head, 204)

    def health(self):
        head, _ = self.connection.exchange(self.connection.message("GET", "/health"))
        return head


class Sandbox:
    """Requests to the agent of one sandbox, through the gateway."""

    def __init__(self, created):
        self.connection = Connection(SANDBOX_URL)
        self.headers = {"E2b-Sandbox-Id": created["sandboxID"], "E2b-Sandbox-Port": 49983, "Authorization": "Basic dXNlcjo="}
        if token := created.get("envdAccessToken"):
            self.headers["X-Access-Token"] = token

    def start(self, *argv):
        """The bytes of a Start request in JSON."""
        process = {"cmd": argv[0], "args": argv[1:]}
        return self._start("json", json.dumps({"process": process, "stdin": False}).encode())

    def start_binary(self, *argv):
        """The same in protobuf: StartRequest.process = 1 and stdin = 4, ProcessConfig.cmd = 1 and args = 2."""
        process = _field(1, argv[0].encode()) + b"".join(_field(2, arg.encode()) for arg in argv[1:])
        return self._start("proto", _field(1, process) + b"\x20\x00")

    def run(self, *argv):
        """Runs a command to its end and returns what it printed."""
        head, body = self.connection.exchange(self.start(*argv))
        expect(head, 200)
        output, ended = [], False
        # A command that is over at once is answered in one piece.
        for event in _events(_unchunked(body) if content_length(head) is None else body):
            data = event.get("data", {})
            output.append(base64.b64decode(data.get("stdout", "") or data.get("stderr", "")))
            ended = ended or "end" in event
            if "end" in event and event["end"].get("exitCode", 0) != 0:
                raise Failed(f"{argv[0]}: {event['end']} {b''.join(output).decode(errors='replace')}")
        if not ended:
            raise Failed(f"{argv[0]}: no end event: {body[-300:]}")
        return b"".join(output).decode()

    def put(self, path, data):
        expect(self.connection.exchange(self.upload(path, len(data)) + data)[0], 200)

    def upload(self, path, length):
        headers = self.headers | {"Content-Type": "application/octet-stream"}
        return self.connection.message("POST", f"/files?path={path}&username=user", headers, length=length)

    def upload_form(self, path, length):
        """The same as one file of a form: (what goes before the file, what goes after)."""
        boundary = "alcove-bench"
        disposition = 'Content-Disposition: form-data; name="file"; filename="large"'
        before = f"--{boundary}\r\n{disposition}\r\nContent-Type: application/octet-stream\r\n\r\n".encode()
        after = f"\r\n--{boundary}--\r\n".encode()
        headers = self.headers | {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        length += len(before) + len(after)
        head = self.connection.message("POST", f"/files?path={path}&username=user", headers, length=length)
        return head + before, after

    def download(self, path):
        return self.connection.message("GET", f"/files?path={path}&username=user", self.headers)

    def unary(self, method, message):
        """The bytes of a unary call in JSON, as `filesystem.Filesystem/Stat`."""
        headers = self.headers | {"Content-Type": "application/json", "Connect-Protocol-Version": 1}
        return self.connection.message("POST", f"/{method}", headers, json.dumps(message).encode())

    def health(self):
        return self.connection.message("GET", "/health", self.headers)

    def execute(self, code, context=None):
        """The bytes of a request to run code in the default Python context, or another one."""
        body = {"code": code, "context_id": context, "language": None, "env_vars": None}
        return self._interpreter("POST", "/execute", json.dumps(body).encode())

    def create_context(self, language="python"):
        return self._interpreter("POST", "/contexts", json.dumps({"language": language}).encode())

    def remove_context(self, context):
        return self._interpreter("DELETE", f"/contexts/{context}")

    def _interpreter(self, method, path, body=b""):
        headers = self.headers | {"E2b-Sandbox-Port": 49999, "Content-Type": "application/json"}
        return self.connection.message(method, path, headers, body)

    def _start(self, codec, body):
        headers = self.headers | {"Content-Type": f"application/connect+{codec}", "Connect-Protocol-Version": 1}
        envelope = struct.pack(">BI", 0, len(body)) + body
        return self.connection.message("POST", "/process.Process/Start", headers, envelope)


@contextlib.contextmanager
def sandbox(template="base"):
    api = Api(template)
    created = api.create()
    try:
        yield Sandbox(created)
    finally:
        # A connection that stood idle for long may be gone.
        Api().kill(created)


def _field(number, data):
    if len(data) > 127:
        raise ValueError("only lengths of one byte")
    return bytes([number << 3 | 2, len(data)]) + data


def _unchunked(body):
    data = bytearray()
    while body:
        size, _, body = body.partition(b"\r\n")
        data += body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]
    return bytes(data)


def _events(data):
    while data:
        flags, size = struct.unpack(">BI", data[:5])
        if flags == 0:
            yield json.loads(data[5 : 5 + size])["event"]
        data = data[5 + size :]

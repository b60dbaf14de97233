# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A server that answers create, Start, execute and kill with fixed texts and does nothing: what a
client needs against it is the client's own time."""

import contextlib
import json
import multiprocessing
import socket
import struct
import threading

_CREATED = {
    "sandboxID": "i00000000000000000000",
    "templateID": "00000000000000000000",
    "clientID": "00000000",
    "alias": "base",
    "envdVersion": "0.6.13",
    "envdAccessToken": "0" * 64,
}

# What `1+1` gives.
_EXECUTED = (
    {"type": "number_of_executions", "execution_count": 1},
    {"type": "result", "text": "2", "extra": {}, "is_main_result": True},
    {"type": "end_of_execution"},
)


@contextlib.contextmanager
def running():
    """Yields its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    process = multiprocessing.get_context("fork").Process(target=_serve, args=(listener,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        process.kill()
        process.join()
        listener.close()


def _serve(listener):
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_converse, args=(connection,), daemon=True).start()


def _converse(connection):
    data = b""
    while True:
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return
            data += more
        head, _, data = data.partition(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
        chunked = b"chunked" in fields.get(b"transfer-encoding", b"")
        length = int(fields.get(b"content-length", 0))
        while not data.endswith(b"0\r\n\r\n") if chunked else len(data) < length:
            data += connection.recv(65536)
        data = b"" if chunked else data[length:]
        connection.sendall(_answer(head, fields.get(b"content-type", b"")))


def _answer(head, content_type):
    if head.startswith(b"DELETE"):
        return b"HTTP/1.1 204 No Content\r\n\r\n"
    if b"/process.Process/Start " in head:
        # ProcessEvent in StartResponse.event: start { pid: 3 }, then end { exited, status }.
        if b"json" in content_type:
            events = [b'{"event":{"start":{"pid":3}}}', b'{"event":{"end":{"exited":true,"status":"exit status 0"}}}']
        else:
            status = b"\x10\x01\x1a\x0dexit status 0"
            events = [b"\x0a\x04\x0a\x02\x08\x03", bytes([0x0A, len(status) + 2, 0x1A, len(status)]) + status]
        frames = [_frame(0, event) for event in events] + [_frame(2, b"{}")]
        return _chunked(b"Content-Type: " + content_type + b"\r\n", frames)
    if head.startswith(b"POST /execute "):
        return _chunked(b"", [json.dumps(line).encode() + b"\n" for line in _EXECUTED])
    body = json.dumps(_CREATED).encode()
    return b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def _chunked(fields, pieces):
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\n" + fields + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"


def _frame(flags, data):
    return struct.pack(">BI", flags, len(data)) + data

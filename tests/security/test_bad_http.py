# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""HTTP that is none, or that two readers would take apart differently."""

import pytest
from harness import API_KEY, assert_error, to_sandbox
from hostile import error_of, raw, statuses, to_agent

pytestmark = pytest.mark.usefixtures("server_is_unharmed")


@pytest.mark.parametrize(
    "line",
    [
        b"GET /health",
        b"GET  /health HTTP/1.1",
        b"GET /health HTTP/1.1 ",
        b" GET /health HTTP/1.1",
        b"GET /health HTTP/0.9",
        b"GET /health HTTP/2.0",
        b"PRI * HTTP/2.0",
        b"CONNECT localhost:22 HTTP/1.1",
        b"GET ftp://localhost/ HTTP/1.1",
        b"GET http://user@localhost/health HTTP/1.1",
        b"GET health HTTP/1.1",
        b"GET /hea\tlth HTTP/1.1",
        b"GET /health\x00 HTTP/1.1",
    ],
    ids=repr,
)
def test_request_lines_that_are_none(line):
    assert error_of(raw(line + b"\r\nHost: localhost\r\n\r\n")) == 400


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 100_000 + b"\r\n",
        b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\r\n" * 500_000 + b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["one field", "many fields", "target", "empty lines"],
)
def test_head_of_a_megabyte(head):
    assert error_of(raw(head)) == 431


def test_ten_thousand_fields_are_still_a_request(box):
    fields = b"A: b\r\n" * 10_000 + b"Connection: close\r\n\r\n"
    assert statuses(raw(b"GET /health HTTP/1.1\r\nHost: x\r\n" + fields)) == [200]
    assert statuses(raw(b"GET /health HTTP/1.1\r\n" + to_agent(box) + fields)) == [204]


# Each of these would be one request for one reader and two for another.
_SECOND = b"DELETE /smuggled HTTP/1.1\r\nHost: smuggled\r\n\r\n"
_AMBIGUOUS = {
    "length and chunked": b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked and length": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
    "twice the same length": b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "list of lengths": b"Content-Length: 0, 0\r\n\r\n",
    "signed length": b"Content-Length: +0\r\n\r\n",
    "negative length": b"Content-Length: -1\r\n\r\n",
    "hexadecimal length": b"Content-Length: 0x0\r\n\r\n",
    "no length": b"Content-Length: \r\n\r\n",
    "endless length": b"Content-Length: 99999999999999999999999\r\n\r\n",
    "unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two codings": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two coding fields": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "identity": b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "blank before the colon": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "vertical tab": b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "comma behind": b"Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n",
    "folded field": b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "bare LF": b"X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bare CR": b"X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "NUL in a field": b"X: y\x00z\r\n\r\n",
    "second host": b"Host: other\r\n\r\n",
}
_BROKEN_CHUNKS = {
    "no number": b"zz\r\n\r\n",
    "negative": b"-1\r\n\r\n",
    "prefix": b"0x0\r\n\r\n",
    "too large": b"FFFFFFFFFFFFFFFFF\r\n\r\n",
    "bare LF": b"0\n\n",
    "bare LF in an extension": b"0;a\nb\r\n\r\n",
    "no end of the data": b"2\r\n{}0\r\n\r\n",
    "endless extension": b"0;" + b"a" * 100_000 + b"\r\n\r\n",
    "endless trailer": b"0\r\n" + b"a: b\r\n" * 20_000 + b"\r\n",
}


@pytest.mark.parametrize("where", ["api", "agent"])
@pytest.mark.parametrize("shape", _AMBIGUOUS)
def test_ambiguous_framing_is_refused(box, shape, where):
    start = b"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\n" if where == "api" else b"POST /files HTTP/1.1\r\n" + to_agent(box)
    assert error_of(raw(start + _AMBIGUOUS[shape] + _SECOND)) == 400


@pytest.mark.parametrize("where", ["api", "agent"])
@pytest.mark.parametrize("shape", _BROKEN_CHUNKS)
def test_broken_chunks_end_the_connection(box, shape, where):
    start = f"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: {API_KEY}\r\n".encode()
    if where == "agent":
        start = b"POST /filesystem.Filesystem/Stat HTTP/1.1\r\nContent-Type: application/json\r\n" + to_agent(box)
    received = raw(start + b"Transfer-Encoding: chunked\r\n\r\n" + _BROKEN_CHUNKS[shape] + _SECOND)
    assert statuses(received) == [400], received


def test_second_request_is_routed_by_its_own_fields(box):
    """Pipelining is allowed, but the second request must not inherit the first one's sandbox."""
    body = b'5;name="value"\r\n{"pat\r\nA\r\nh":"/tmp"}\r\n0\r\nContent-Length: 50\r\nHost: trailer\r\n\r\n'
    first = b"POST /filesystem.Filesystem/Stat HTTP/1.1\r\nContent-Type: application/json\r\n" + to_agent(box) + b"Transfer-Encoding: chunked\r\n\r\n"
    received = raw(first + body + b"GET /envs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert statuses(received) == [200, 404], received
    # And the other way round.
    received = raw(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\n" + to_agent(box) + b"Connection: close\r\n\r\n")
    assert statuses(received) == [404, 204], received


def test_connection_field_cannot_remove_the_token(box):
    received = raw(b"GET /envs HTTP/1.1\r\n" + to_agent(box) + b"Connection: close, X-Access-Token\r\n\r\n")
    assert statuses(received) == [200]


_ODD_SERVICE = r"""
import socket, threading
ANSWERS = {
    "/two": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
    "/lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nok",
    "/both": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "/nul": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
    "/noise": b"\xff\xfe" * 1000 + b"\r\n\r\n",
    "/chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "/switch": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "/head": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 2000000 + b"\r\n\r\n",
}
ENDLESS = {"/interim": b"HTTP/1.1 100 Continue\r\n\r\n" * 100, "/fields": b"A: b\r\n" * 100}

def serve(connection):
    with connection:
        try:
            received = b""
            while True:
                while b"\r\n\r\n" not in received:
                    piece = connection.recv(65536)
                    if not piece:
                        return
                    received += piece
                path = received.split(b" ")[1].decode()
                received = received.partition(b"\r\n\r\n")[2]
                if path == "/fields":
                    connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while path in ENDLESS:
                    connection.sendall(ENDLESS[path])
                connection.sendall(ANSWERS[path])
        except OSError:
            pass

listener = socket.create_server(("127.0.0.1", 8000), backlog=50)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


def test_service_that_does_not_speak_http(victim):
    victim.files.write("/tmp/odd.py", _ODD_SERVICE)
    handle = victim.commands.run("exec python3 /tmp/odd.py", background=True, timeout=60)
    for _ in handle:
        break
    # What a service sends behind its answer never becomes the next answer.
    for _ in range(3):
        reply = to_sandbox("GET", "/two", victim.sandbox_id, 8000)
        assert (reply.status, reply.body) == (200, b"ok")
    for path in ("/lengths", "/both", "/nul", "/noise", "/chunk", "/switch", "/head", "/interim", "/fields"):
        reply = to_sandbox("GET", path, victim.sandbox_id, 8000, timeout=10)
        assert_error(reply, 502)
    handle.disconnect()

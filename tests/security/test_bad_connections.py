# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Connections that are slow, idle, cut or many."""

import asyncio
import concurrent.futures
import contextlib
import socket
import struct
import time

import pytest
from harness import API_KEY, BY_DOMAIN, DATA_DIR, api, eventually
from hostile import STREAM, Usage, call, dial, dial_tls, drain, error_of, statuses, to_agent
from streams import envelope

pytestmark = pytest.mark.usefixtures("server_is_unharmed")


_needs_authority = pytest.mark.skipif("SSL_CERT_FILE" not in BY_DOMAIN, reason="needs a server with a local authority (ALCOVE_DATA)")
_HEADS = (b"G", b"GET /health HTTP/1.1\r\n", b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: ")


@pytest.mark.parametrize(("sent", "connect"), [*((head, dial) for head in _HEADS), pytest.param(_HEADS[-1], dial_tls, marks=_needs_authority)])
def test_head_that_never_ends_is_given_up(sent, connect):
    with connect(timeout=15) as connection:
        begin = time.monotonic()
        connection.sendall(sent)
        # A byte now and then does not buy more time.
        for _ in range(3):
            time.sleep(2)
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"E" if sent == b"G" else b"a: b\r\n"[: 1 if sent.endswith(b" ") else 6])
        assert error_of(drain(connection)) == 408
        assert time.monotonic() - begin < 14


def test_half_closed_connection_gets_its_answer(box):
    for routing in (b"Host: x\r\n", to_agent(box)):
        with dial() as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\n" + routing + b"\r\n")
            connection.shutdown(socket.SHUT_WR)
            assert statuses(drain(connection))[0] in (200, 204)


def test_body_that_is_cut_short(box):
    for start in (b"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: " + API_KEY.encode() + b"\r\n", b"POST /files?path=/tmp/cut HTTP/1.1\r\nContent-Type: application/octet-stream\r\n" + to_agent(box)):
        with dial() as connection:
            connection.sendall(start + b"Content-Length: 1000000\r\n\r\n" + b"x" * 1000)
            connection.shutdown(socket.SHUT_WR)
            assert all(status >= 400 for status in statuses(drain(connection)))


@pytest.mark.limit(60)
def test_body_that_never_ends_is_given_up():
    """After 30 s without a byte, however the end of the body is told."""
    start = b"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: " + API_KEY.encode() + b"\r\n"
    begin = time.monotonic()
    with dial(timeout=45) as long, dial(timeout=45) as chunked:
        long.sendall(start + b"Content-Length: 1000\r\n\r\n{")
        chunked.sendall(start + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n3e8\r\n")
        for connection in (long, chunked):
            answer = drain(connection)
            assert error_of(answer) == 408 and b"the request body did not arrive in time" in answer
            assert b"\r\nConnection: close\r\n" in answer
    assert 25 < time.monotonic() - begin < 40


def _reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_resets_in_the_middle_of_uploads_and_streams(victim):
    start = envelope({"process": {"cmd": "/bin/sh", "args": ["-c", "while :; do echo reset-stream; done"]}})
    for number in range(20):
        upload, stream = dial(), dial()
        upload.sendall(f"POST /files?path=/tmp/reset-{number} HTTP/1.1\r\nContent-Type: application/octet-stream\r\n".encode() + to_agent(victim) + b"Content-Length: 10000000\r\n\r\n" + b"x" * 50_000)
        stream.sendall(b"POST /process.Process/Start HTTP/1.1\r\nContent-Type: application/connect+json\r\n" + to_agent(victim) + b"Content-Length: %d\r\n\r\n" % len(start) + start)
        assert stream.recv(100).startswith(b"HTTP/1.1 200")
        _reset(upload)
        _reset(stream)
    # A client that went away leaves its command running.
    for process in victim.commands.list():
        victim.commands.kill(process.pid)
    assert asyncio.run(eventually(lambda: victim.commands.list() == [], within=5))


# Takes connections and says nothing; on port 8000 it does not read either.
_MUTE_SERVICE = """
import socket, threading, time
def serve(port, reads):
    listener, peers = socket.create_server(("127.0.0.1", port), backlog=50), []
    print("ready", flush=True)
    while True:
        peers.append(listener.accept()[0])
        if reads:
            threading.Thread(target=drain, args=(peers[-1],), daemon=True).start()
def drain(peer):
    while peer.recv(65536):
        pass
    peer.close()
threading.Thread(target=serve, args=(8001, True)).start()
serve(8000, False)
"""


@pytest.fixture
def mute_service(victim):
    victim.files.write("/tmp/mute.py", _MUTE_SERVICE)
    handle = victim.commands.run("exec python3 /tmp/mute.py", background=True, timeout=300)
    seen = 0
    for out, _, _ in handle:
        seen += (out or "").count("ready")
        if seen == 2:
            break
    yield victim.sandbox_id
    handle.disconnect()


def _closes(descriptors, than):
    """True if the server soon has that many descriptors less."""
    return asyncio.run(eventually(lambda: Usage().descriptors <= than.descriptors - descriptors, within=3))


def _to_port(box_id, port):
    return f"Host: {port}-{box_id}.box.localhost\r\n".encode()


def _send_until_blocked(connection):
    """Until nobody takes anything for a moment."""
    piece, last = b"x" * 65536, time.monotonic()
    connection.setblocking(False)
    while time.monotonic() < last + 0.5:
        try:
            connection.send(piece)
            last = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
    connection.setblocking(True)


@pytest.mark.skipif(not DATA_DIR, reason="looks at the server's process")
def test_clients_that_leave_while_their_service_takes_nothing(mute_service):
    """Their own connections and those into the sandbox are closed, although the server waits to write, not to read."""
    uploads = [dial() for _ in range(3)]
    for connection in uploads:
        connection.sendall(b"POST / HTTP/1.1\r\n" + _to_port(mute_service, 8000) + b"Content-Length: 10000000000\r\n\r\n")
        _send_until_blocked(connection)
    during = Usage()
    for connection in uploads:
        _reset(connection)
    assert _closes(2 * len(uploads), during), (during, Usage())


@pytest.mark.skipif(not DATA_DIR, reason="looks at the server's process")
@pytest.mark.parametrize("leave", [socket.socket.close, _reset, lambda connection: connection.shutdown(socket.SHUT_WR)], ids=["close", "reset", "half-close"])
def test_clients_that_leave_a_silent_service(mute_service, leave):
    heads = (b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nContent-Length: 3\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n")
    waiting = [dial() for _ in heads]
    for connection, head in zip(waiting, heads):
        connection.sendall(head + _to_port(mute_service, 8001) + b"\r\n" + (b"" if head.startswith(b"GET") else b"3\r\nabc\r\n" if b"chunked" in head else b"abc"))
    # All are with the service by now.
    time.sleep(0.5)
    during = Usage()
    for connection in waiting:
        leave(connection)
    assert _closes(2 * len(heads), during), (during, Usage())
    for connection in waiting:
        connection.close()


@pytest.mark.limit(90)
def test_two_thousand_idle_connections():
    connections = []
    try:
        for number in range(2000):
            # A tenth of them by TLS. Half of each kind began a request.
            connections.append(dial_tls() if number % 20 in (0, 1) and "SSL_CERT_FILE" in BY_DOMAIN else dial())
            if number % 2:
                connections[-1].sendall(b"GET /health HTTP/1.1\r\nHost: ")
        assert api("GET", "/health").status == 200
        if DATA_DIR:
            assert Usage().memory < 256 * 2**20
    finally:
        for connection in connections:
            connection.close()


def test_download_that_nobody_reads(box):
    box.commands.run("truncate -s 1G /tmp/large")
    before = Usage() if DATA_DIR else None
    connections = []
    try:
        for _ in range(8):
            connection = dial()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(b"GET /files?path=/tmp/large HTTP/1.1\r\n" + to_agent(box) + b"\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
            connections.append(connection)
        time.sleep(3)
        if before:
            assert Usage().memory < before.memory + 16 * 2**20, (before, Usage())
        assert int(box.commands.run("sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/1/status", user="root").stdout) < 64 * 1024
    finally:
        for connection in connections:
            connection.close()


def test_two_hundred_streams_to_one_sandbox(victim):
    start = envelope({"process": {"cmd": "/bin/sh", "args": ["-c", "echo begun; sleep 3; echo ended"]}})

    def run(_):
        return call(victim, "POST", "/process.Process/Start", start, STREAM, timeout=40)

    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        replies = list(pool.map(run, range(200)))
    for reply in replies:
        assert reply.status == 200 and b'"exited":true' in reply.body and b"ZW5kZWQK" in reply.body, reply.body

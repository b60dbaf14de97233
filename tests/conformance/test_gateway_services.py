# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Traffic to services in sandboxes by plain HTTP: methods, streams, tunnels, services with TLS."""

import hashlib
import http.client
import socket
import time

import pytest
from boxes import ORIGIN, host_of, run, serve, serve_echo, until_open
from harness import SANDBOX_URL, api, assert_error, request, to_sandbox

pytestmark = pytest.mark.wire


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "::", "::1"])
def test_service_on_any_address(created, address):
    box = created()
    serve_echo(box, address, 8000)
    host = host_of(8000, box["sandboxID"])
    reply = until_open(lambda: request("GET", "/a%20b?c=%2F&d", url=SANDBOX_URL, host=host))
    assert (reply.status, reply.headers["x-from"]) == (200, "inside")
    assert reply.json["path"] == "/a%20b?c=%2F&d"
    assert reply.json["headers"]["host"] == host


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_methods_and_bodies_pass(created, method):
    box = created()
    serve_echo(box, "127.0.0.1", 8000)
    reply = until_open(lambda: to_sandbox(method, "/x", box["sandboxID"], 8000, body=b"some body", headers={"X-Own": "v"}))
    assert (reply.status, reply.json["method"], reply.json["body"]) == (200, method, "some body")
    assert reply.json["headers"]["x-own"] == "v"
    assert "x-forwarded-for" not in reply.json["headers"]


def test_masked_host(created):
    box = created(network={"maskRequestHost": "localhost:${PORT}"})
    assert api("GET", f"/sandboxes/{box['sandboxID']}").json["network"]["maskRequestHost"] == "localhost:${PORT}"
    serve_echo(box, "127.0.0.1", 8000)
    host = host_of(8000, box["sandboxID"])
    reply = until_open(lambda: request("GET", "/", url=SANDBOX_URL, host=host))
    assert reply.status == 200, reply.body
    assert reply.json["headers"]["host"] == "localhost:8000"
    assert reply.json["headers"]["x-forwarded-host"] == host


@pytest.mark.parametrize("mask", ["", "a b", "a\r\nX: y", "a:0", "a/b", "\u00e4"])
def test_mask_that_is_no_host(mask):
    assert_error(api("POST", "/v2/sandboxes", {"templateID": "base", "network": {"maskRequestHost": mask}}), 400)


_STREAM_SERVER = """
import http.server, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for n in range(3):
            self.wfile.write(b"2\\r\\n%d\\n\\r\\n" % n)
            time.sleep(0.5)
        self.wfile.write(b"0\\r\\n\\r\\n")
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


def test_streamed_reply_is_not_held_back(created):
    box = created()
    serve(box, _STREAM_SERVER)
    until_open(lambda: to_sandbox("GET", "/", box["sandboxID"], 8000))
    connection = http.client.HTTPConnection(ORIGIN.hostname, ORIGIN.port, timeout=10)
    connection.request("GET", "/", headers={"E2b-Sandbox-Id": box["sandboxID"], "E2b-Sandbox-Port": "8000"})
    response = connection.getresponse()
    arrivals = []
    while line := response.readline():
        arrivals.append((line, time.monotonic()))
    connection.close()
    assert [line for line, _ in arrivals] == [b"0\n", b"1\n", b"2\n"]
    assert arrivals[1][1] - arrivals[0][1] > 0.25


_TUNNEL_SERVER = """
import socket
listener = socket.create_server(("127.0.0.1", 8000))
while True:
    peer, _ = listener.accept()
    head = b""
    while b"\\r\\n\\r\\n" not in head:
        head += peer.recv(4096)
    peer.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\nhello")
    while data := peer.recv(65536):
        peer.sendall(data[::-1])
    peer.close()
"""


def _upgrade(host):
    """The connection when the service has said hello, and the whole answer."""
    head = (
        f"GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()
    deadline = time.monotonic() + 10
    while True:
        peer = socket.create_connection((ORIGIN.hostname, ORIGIN.port), timeout=10)
        peer.sendall(head)
        received = peer.recv(65536)
        if received.startswith(b"HTTP/1.1 101") or time.monotonic() > deadline:
            break
        peer.close()
        time.sleep(0.1)
    assert received.startswith(b"HTTP/1.1 101"), received
    while not received.endswith(b"hello"):
        received += peer.recv(65536)
    return peer, received


def _assert_carries(peer):
    for message in (b"abc", bytes(range(256)) * 8):
        peer.sendall(message)
        answer = b""
        while len(answer) < len(message):
            answer += peer.recv(65536)
        assert sorted(answer) == sorted(message)
    peer.close()


def test_upgrade_becomes_a_tunnel(created):
    box = created()
    serve(box, _TUNNEL_SERVER)
    peer, _ = _upgrade(host_of(8000, box["sandboxID"]))
    _assert_carries(peer)


# Says in its answer which head it got.
_TELLING_SERVER = """
import socket, ssl, sys
listener = socket.create_server(("127.0.0.1", 8000))
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
if WITH_TLS:
    context.load_cert_chain("/tmp/cert", "/tmp/key")
while True:
    peer, _ = listener.accept()
    if WITH_TLS:
        peer = context.wrap_socket(peer, server_side=True)
    head = b""
    while b"\\r\\n\\r\\n" not in head:
        head += peer.recv(4096)
    told = b"".join(b"X-Got-" + line + b"\\r\\n" for line in head.split(b"\\r\\n")[1:-2])
    peer.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n" + told + b"\\r\\nhello")
    while data := peer.recv(65536):
        peer.sendall(data[::-1])
    peer.close()
"""


def test_upgrade_with_a_masked_host(created):
    box = created(network={"maskRequestHost": "localhost:${PORT}"})
    serve(box, _TELLING_SERVER.replace("WITH_TLS", "False"))
    host = host_of(8000, box["sandboxID"])
    peer, received = _upgrade(host)
    for field in ("Host: localhost:8000", f"X-Forwarded-Host: {host}", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"):
        assert f"\r\nX-Got-{field}\r\n".encode() in received, received
    _assert_carries(peer)


def test_upgrade_of_a_service_with_tls_of_its_own(created):
    box = created(network={"httpsPorts": [8000], "maskRequestHost": "dev.local"})
    assert api("GET", f"/sandboxes/{box['sandboxID']}").json["network"]["httpsPorts"] == [8000]
    run(box, "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=own -keyout /tmp/key -out /tmp/cert 2>&1")
    serve(box, _TELLING_SERVER.replace("WITH_TLS", "True"))
    peer, received = _upgrade(host_of(8000, box["sandboxID"]))
    assert b"\r\nX-Got-Host: dev.local\r\n" in received, received
    _assert_carries(peer)


def test_https_port_without_tls(created):
    box = created(network={"httpsPorts": [8000]})
    serve_echo(box, "127.0.0.1", 8000)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        reply = to_sandbox("GET", "/", box["sandboxID"], 8000)
        if "port is not open" not in reply.json["message"]:
            break
        time.sleep(0.1)
    assert reply.status == 502
    assert reply.json == {
        "sandboxId": box["sandboxID"],
        "message": "The service in the sandbox does not speak TLS, but its port is in httpsPorts",
        "port": 8000,
        "code": 502,
    }


@pytest.mark.parametrize("ports", [[49983], [0], [65536], ["443"], [1.5], 443, [-1]])
def test_https_ports_that_are_none(ports):
    reply = api("POST", "/v2/sandboxes", {"templateID": "base", "network": {"httpsPorts": ports}})
    assert_error(reply, 400)
    assert "httpsPorts" in reply.message


def test_big_transfer_through_a_user_port(created):
    box = created(timeout=120)
    run(box, "mkdir -p /tmp/www && head -c 30000000 /dev/urandom > /tmp/www/big && cd /tmp/www && (setsid python3 -m http.server 8000 >/dev/null 2>&1 </dev/null &)")
    reply = until_open(lambda: to_sandbox("GET", "/big", box["sandboxID"], 8000))
    assert len(reply.body) == 30000000
    assert hashlib.sha256(reply.body).hexdigest() == run(box, "sha256sum < /tmp/www/big").split()[0]


def test_gone_at_once_after_kill(created):
    box = created()
    serve_echo(box, "127.0.0.1", 8000)
    assert until_open(lambda: to_sandbox("GET", "/", box["sandboxID"], 8000)).status == 200
    api("DELETE", f"/sandboxes/{box['sandboxID']}")
    reply = to_sandbox("GET", "/", box["sandboxID"], 8000)
    assert (reply.status, reply.json["message"]) == (502, "The sandbox was not found")

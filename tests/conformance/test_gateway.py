# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Traffic to sandboxes by plain HTTP: routing, tokens, error pages, tunnels."""

import base64
import hashlib
import http.client
import json
import socket
import struct
import time
import urllib.parse

import pytest
from harness import API_KEY, API_URL, SANDBOX_URL, api, assert_error, request, to_sandbox

pytestmark = pytest.mark.wire

_ORIGIN = urllib.parse.urlsplit(SANDBOX_URL)
_UNKNOWN = "iaaaaaaaaaaaaaaaaaaaa"
_BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0", "Accept": "text/html,*/*"}


def _host(port, sandbox_id, domain="box.localhost"):
    return f"{port}-{sandbox_id}.{domain}"


def _token(box):
    return {"X-Access-Token": box["envdAccessToken"]} if "envdAccessToken" in box else {}


def _run(box, command):
    """Runs a command by one bare Connect call; returns its output when it ended."""
    message = json.dumps({"process": {"cmd": "/bin/bash", "args": ["-l", "-c", command]}, "stdin": False}).encode()
    reply = to_sandbox(
        "POST",
        "/process.Process/Start",
        box["sandboxID"],
        body=struct.pack(">BI", 0, len(message)) + message,
        headers=_token(box) | {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"},
    )
    assert reply.status == 200, reply.body
    output, at = b"", 0
    while at < len(reply.body):
        _, size = struct.unpack(">BI", reply.body[at : at + 5])
        event = json.loads(reply.body[at + 5 : at + 5 + size]).get("event", {})
        output += base64.b64decode(event.get("data", {}).get("stdout", ""))
        at += 5 + size
    return output.decode()


def _serve(box, source, name="server.py"):
    """Puts a Python program into the sandbox and leaves it running."""
    upload = to_sandbox(
        "POST",
        f"/files?path=/tmp/{name}&username=user",
        box["sandboxID"],
        body=source.encode(),
        headers=_token(box) | {"Content-Type": "application/octet-stream"},
    )
    assert upload.status == 200, upload.body
    _run(box, f"setsid python3 /tmp/{name} >/tmp/{name}.log 2>&1 </dev/null &")


_ECHO_SERVER = """
import http.server, json, socket, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.dumps({"method": self.command, "path": self.path, "body": self.rfile.read(length).decode(),
                           "headers": {k.lower(): v for k, v in self.headers.items()}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-From", "inside")
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = answer
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in "ADDRESS" else socket.AF_INET
Server(("ADDRESS", PORT), Handler).serve_forever()
"""


def _echo(box, address, port):
    _serve(box, _ECHO_SERVER.replace("ADDRESS", address).replace("PORT", str(port)), f"echo-{port}.py")


def _until_open(send, within=10):
    """Repeats a request until the service in the sandbox listens."""
    deadline = time.monotonic() + within
    while True:
        reply = send()
        if reply.status != 502 or time.monotonic() > deadline:
            return reply
        time.sleep(0.1)


# --- routing --------------------------------------------------------------------------------------


def test_agent_by_header_and_by_host(created):
    box = created()
    assert to_sandbox("GET", "/health", box["sandboxID"]).status == 204
    for domain in ("box.localhost", "localhost:3000", "example.org"):
        host = _host(49983, box["sandboxID"], domain)
        assert request("GET", "/health", url=SANDBOX_URL, host=host).status == 204


def test_id_suffix_in_header_and_host(created):
    box = created()["sandboxID"]
    assert to_sandbox("GET", "/health", f"{box}-6532622b").status == 204
    assert request("GET", "/health", url=SANDBOX_URL, host=_host(49983, f"{box}-6532622b")).status == 204


def test_header_names_in_any_case(created):
    box = created()["sandboxID"]
    for names in (("e2b-sandbox-id", "e2b-sandbox-port"), ("E2B-SANDBOX-ID", "E2B-SANDBOX-PORT")):
        assert request("GET", "/health", url=SANDBOX_URL, headers={names[0]: box, names[1]: 49983}).status == 204


def test_host_beats_headers(created):
    box = created()["sandboxID"]
    host = _host(49983, _UNKNOWN)
    assert to_sandbox("GET", "/health", box, host=host).json["sandboxId"] == _UNKNOWN
    assert to_sandbox("GET", "/health", _UNKNOWN, host=_host(49983, box)).status == 204


def test_routing_headers_on_api_calls(created):
    """One client generation sends them on connect; port 49983 and an API path mean the API."""
    box = created()["sandboxID"]
    routing = {"E2b-Sandbox-Id": box, "E2b-Sandbox-Port": 49983}
    reply = api("POST", f"/sandboxes/{box}/connect", {"timeout": 60}, headers=routing)
    assert (reply.status, reply.json["sandboxID"]) == (200, box)
    assert api("GET", "/v2/sandboxes", headers=routing).status == 200
    assert api("GET", f"/sandboxes/{box}", headers=routing).json["sandboxID"] == box


def test_api_path_on_another_port_is_sandbox_traffic(created):
    box = created()
    _echo(box, "0.0.0.0", 8000)
    reply = _until_open(lambda: to_sandbox("GET", "/v2/sandboxes", box["sandboxID"], 8000))
    assert (reply.status, reply.json["path"]) == (200, "/v2/sandboxes")


def test_one_connection_carries_everything(created):
    first, second = created()["sandboxID"], created()["sandboxID"]
    connection = http.client.HTTPConnection(_ORIGIN.hostname, _ORIGIN.port, timeout=10)

    def send(path, headers):
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()

    def routing(box):
        return {"E2b-Sandbox-Id": box, "E2b-Sandbox-Port": "49983"}

    assert send("/health", {}) == (200, b"Health check successful")
    assert send("/health", routing(first))[0] == 204
    assert send("/health", routing(_UNKNOWN))[0] == 502
    assert send("/health", routing(second))[0] == 204
    assert send(f"/sandboxes/{first}", {"X-API-Key": API_KEY})[0] == 200
    api("DELETE", f"/sandboxes/{first}")
    assert send("/health", routing(first))[0] == 502
    assert send("/health", routing(second))[0] == 204
    connection.close()


@pytest.mark.parametrize("headers", [{"E2b-Sandbox-Id": _UNKNOWN}, {"E2b-Sandbox-Port": "8000"}])
def test_one_routing_header_alone(headers):
    reply = request("GET", "/", headers=headers, url=SANDBOX_URL)
    assert (reply.status, reply.body) == (400, b"missing header")


@pytest.mark.parametrize("sandbox_id", ["UPPER", "a_b", "a.b"])
def test_bad_id_in_the_header(sandbox_id):
    reply = to_sandbox("GET", "/", sandbox_id, 8000)
    assert (reply.status, reply.body) == (400, b"Invalid sandbox ID")


@pytest.mark.parametrize(
    "host, text",
    [
        ("http-{id}.box.localhost", b"Invalid host"),
        ("-{id}.box.localhost", b"Invalid host"),
        ("0-{id}.box.localhost", b"Invalid host"),
        ("65536-{id}.box.localhost", b"Invalid host"),
        ("8000-{id}", b"Invalid host"),
        ("8000-{id}:3000", b"Invalid host"),
        ("8000-.box.localhost", b"Invalid sandbox ID"),
        ("8000-a_b.box.localhost", b"Invalid sandbox ID"),
    ],
)
def test_bad_host(created, host, text):
    host = host.format(id=created()["sandboxID"])
    for path in ("/", "/health", "/v2/sandboxes"):
        reply = request("GET", path, url=SANDBOX_URL, host=host)
        assert (reply.status, reply.body) == (400, text)
        assert reply.headers["content-type"].startswith("text/plain")


def test_host_that_is_none():
    assert_error(request("GET", "/health", url=SANDBOX_URL, host="a b"), 400, "Invalid host")


@pytest.mark.parametrize("port", ["x", "-1", "0", "65536", "99999999999999999999"])
def test_bad_port_in_the_header(created, port):
    assert to_sandbox("GET", "/", created()["sandboxID"], port).status == 400


# --- errors ---------------------------------------------------------------------------------------


def test_unknown_sandbox_as_json():
    reply = to_sandbox("GET", "/health", _UNKNOWN)
    assert reply.status == 502
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    assert reply.json == {"sandboxId": _UNKNOWN, "message": "The sandbox was not found", "code": 502}


def test_closed_port_as_json(created):
    box = created()["sandboxID"]
    reply = to_sandbox("GET", "/", box, 8123)
    assert reply.status == 502
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    assert reply.json == {
        "sandboxId": box,
        "message": "The sandbox is running but port is not open",
        "port": 8123,
        "code": 502,
    }


def _assert_page(reply, status, *texts):
    assert reply.status == status
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    page = reply.body.decode()
    assert page.startswith("<html") and page.endswith("</html>")
    for text in texts:
        assert text in page


def test_errors_as_pages(created):
    box = created()["sandboxID"]
    _assert_page(to_sandbox("GET", "/", _UNKNOWN, 8000, headers=_BROWSER), 502, "Sandbox Not Found", _UNKNOWN)
    _assert_page(to_sandbox("GET", "/", box, 8123, headers=_BROWSER), 502, "no service running on port", box, "8123")


@pytest.mark.parametrize(
    "headers, html",
    [
        ({}, True),
        ({"Sec-Fetch-Mode": "navigate"}, True),
        ({"Sec-Fetch-Mode": "navigate", "X-Requested-With": "XMLHttpRequest"}, True),
        ({"Accept": "application/json"}, False),
        ({"Accept": "application/json, text/html"}, True),
        ({"Sec-Fetch-Mode": "cors"}, False),
        ({"Sec-Fetch-Mode": "no-cors"}, False),
        ({"Sec-Fetch-Mode": "same-origin"}, False),
        ({"Sec-Fetch-Mode": "websocket"}, False),
        ({"X-Requested-With": "XMLHttpRequest"}, False),
        ({"User-Agent": "curl/8.0"}, False),
        ({"User-Agent": "cHrOmE"}, True),
    ],
)
def test_page_or_json(headers, html):
    reply = to_sandbox("GET", "/", _UNKNOWN, 8000, headers=_BROWSER | headers)
    assert reply.headers["content-type"].startswith("text/html" if html else "application/json")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "path", ["/init", "/freeze", "/unfreeze", "/fsfreeze", "/fsthaw", "/collapse", "/upgrade", "/init/", "//init", "/x/../init", "/./init", "/%69nit", "/init?x=1"]
)
def test_control_paths_of_the_agent_are_closed(created, method, path):
    box = created()
    for reply in (
        to_sandbox(method, path, box["sandboxID"], headers=_token(box), body=b"{}" if method == "POST" else None),
        request(method, path, url=SANDBOX_URL, host=_host(49983, box["sandboxID"]), headers=_token(box)),
    ):
        assert_error(reply, 404)
        assert "path" in reply.json and "sandboxId" not in reply.json


def test_control_paths_on_other_ports_are_ordinary(created):
    box = created()
    _echo(box, "127.0.0.1", 8000)
    reply = _until_open(lambda: to_sandbox("POST", "/init", box["sandboxID"], 8000, body=b"{}"))
    assert (reply.status, reply.json["path"]) == (200, "/init")


# --- services in the sandbox ----------------------------------------------------------------------


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "::", "::1"])
def test_service_on_any_address(created, address):
    box = created()
    _echo(box, address, 8000)
    host = _host(8000, box["sandboxID"])
    reply = _until_open(lambda: request("GET", "/a%20b?c=%2F&d", url=SANDBOX_URL, host=host))
    assert (reply.status, reply.headers["x-from"]) == (200, "inside")
    assert reply.json["path"] == "/a%20b?c=%2F&d"
    assert reply.json["headers"]["host"] == host


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_methods_and_bodies_pass(created, method):
    box = created()
    _echo(box, "127.0.0.1", 8000)
    reply = _until_open(lambda: to_sandbox(method, "/x", box["sandboxID"], 8000, body=b"some body", headers={"X-Own": "v"}))
    assert (reply.status, reply.json["method"], reply.json["body"]) == (200, method, "some body")
    assert reply.json["headers"]["x-own"] == "v"
    assert "x-forwarded-for" not in reply.json["headers"]


def test_masked_host(created):
    box = created(network={"maskRequestHost": "localhost:${PORT}"})
    assert api("GET", f"/sandboxes/{box['sandboxID']}").json["network"]["maskRequestHost"] == "localhost:${PORT}"
    _echo(box, "127.0.0.1", 8000)
    host = _host(8000, box["sandboxID"])
    reply = _until_open(lambda: request("GET", "/", url=SANDBOX_URL, host=host))
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
    _serve(box, _STREAM_SERVER)
    _until_open(lambda: to_sandbox("GET", "/", box["sandboxID"], 8000))
    connection = http.client.HTTPConnection(_ORIGIN.hostname, _ORIGIN.port, timeout=10)
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
        peer = socket.create_connection((_ORIGIN.hostname, _ORIGIN.port), timeout=10)
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
    _serve(box, _TUNNEL_SERVER)
    peer, _ = _upgrade(_host(8000, box["sandboxID"]))
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
    _serve(box, _TELLING_SERVER.replace("WITH_TLS", "False"))
    host = _host(8000, box["sandboxID"])
    peer, received = _upgrade(host)
    for field in ("Host: localhost:8000", f"X-Forwarded-Host: {host}", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"):
        assert f"\r\nX-Got-{field}\r\n".encode() in received, received
    _assert_carries(peer)


def test_upgrade_of_a_service_with_tls_of_its_own(created):
    box = created(network={"httpsPorts": [8000], "maskRequestHost": "dev.local"})
    assert api("GET", f"/sandboxes/{box['sandboxID']}").json["network"]["httpsPorts"] == [8000]
    _run(box, "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=own -keyout /tmp/key -out /tmp/cert 2>&1")
    _serve(box, _TELLING_SERVER.replace("WITH_TLS", "True"))
    peer, received = _upgrade(_host(8000, box["sandboxID"]))
    assert b"\r\nX-Got-Host: dev.local\r\n" in received, received
    _assert_carries(peer)


def test_https_port_without_tls(created):
    box = created(network={"httpsPorts": [8000]})
    _echo(box, "127.0.0.1", 8000)
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
    _run(box, "mkdir -p /tmp/www && head -c 30000000 /dev/urandom > /tmp/www/big && cd /tmp/www && (setsid python3 -m http.server 8000 >/dev/null 2>&1 </dev/null &)")
    reply = _until_open(lambda: to_sandbox("GET", "/big", box["sandboxID"], 8000))
    assert len(reply.body) == 30000000
    assert hashlib.sha256(reply.body).hexdigest() == _run(box, "sha256sum < /tmp/www/big").split()[0]


def test_gone_at_once_after_kill(created):
    box = created()
    _echo(box, "127.0.0.1", 8000)
    assert _until_open(lambda: to_sandbox("GET", "/", box["sandboxID"], 8000)).status == 200
    api("DELETE", f"/sandboxes/{box['sandboxID']}")
    reply = to_sandbox("GET", "/", box["sandboxID"], 8000)
    assert (reply.status, reply.json["message"]) == (502, "The sandbox was not found")


# --- tokens ---------------------------------------------------------------------------------------


def test_secure_sandbox_needs_its_token(created):
    box, other = created(), created()
    for headers in ({}, {"X-Access-Token": "wrong"}, {"X-Access-Token": ""}, _token(other), {"X-API-Key": API_KEY}):
        for path in ("/process.Process/List", "/filesystem.Filesystem/Stat"):
            reply = to_sandbox("POST", path, box["sandboxID"], body=b"{}", headers=headers)
            assert_error(reply, 401)
        assert_error(to_sandbox("GET", "/files?path=/etc/hostname", box["sandboxID"], headers=headers), 401)
        assert_error(to_sandbox("GET", "/envs", box["sandboxID"], headers=headers), 401)
    assert to_sandbox("POST", "/process.Process/List", box["sandboxID"], body=b"{}", headers=_token(box)).status == 200
    assert to_sandbox("GET", "/health", box["sandboxID"]).status == 204


def test_insecure_sandbox_needs_none(created):
    box = created("/sandboxes", timeout=60)["sandboxID"]
    assert to_sandbox("POST", "/process.Process/List", box, body=b"{}").status == 200
    assert to_sandbox("GET", "/files?path=/etc/hostname", box).status == 200


def _signature(path, operation, user, token, expiration=None):
    text = f"{path}:{operation}:{user}:{token}" + (f":{expiration}" if expiration is not None else "")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    return urllib.parse.quote(f"v1_{digest}", safe="")


def test_signed_file_urls(created):
    box = created()
    token, box_id = box["envdAccessToken"], box["sandboxID"]
    later, earlier = int(time.time()) + 60, int(time.time()) - 60

    def read(expiration=None, signed=None, path="/etc/hostname"):
        signature = _signature(signed or path, "read", "user", token, expiration)
        expires = f"&signature_expiration={expiration}" if expiration is not None else ""
        return to_sandbox("GET", f"/files?path={path}&username=user&signature={signature}{expires}", box_id)

    assert read().status == 200
    assert read(later).status == 200
    assert_error(read(earlier), 401, "signature is already expired")
    assert_error(read(signed="/etc/passwd"), 401, "invalid signature")
    assert_error(read(earlier, signed="/etc/passwd"), 401, "invalid signature")
    upload = f"/files?path=/tmp/up&username=user&signature={_signature('/tmp/up', 'write', 'user', token)}"
    octets = {"Content-Type": "application/octet-stream"}
    assert to_sandbox("POST", upload, box_id, body=b"x", headers=octets).status == 200
    wrong = f"/files?path=/tmp/up&username=user&signature={_signature('/tmp/up', 'read', 'user', token)}"
    assert_error(to_sandbox("POST", wrong, box_id, body=b"x", headers=octets), 401, "invalid signature")


def test_private_traffic(created):
    box = created(network={"allowPublicTraffic": False})
    box_id, token = box["sandboxID"], box["trafficAccessToken"]
    assert len(token) >= 32
    _echo(box, "0.0.0.0", 8000)
    name = "e2b-traffic-access-token"
    prefix = f"Sandbox is secured with traffic access token. "
    missing = f"{prefix}Token header '{name}' is missing"
    invalid = f"{prefix}Provided token in header '{name}' is invalid"
    allowed = _until_open(lambda: to_sandbox("GET", "/", box_id, 8000, headers={name: token}))
    assert (allowed.status, allowed.json["headers"][name]) == (200, token)
    by_host = request("GET", "/", url=SANDBOX_URL, host=_host(8000, box_id), headers={name: token})
    assert by_host.status == 200
    for headers, text in (({}, missing), ({name: "x"}, invalid), ({name: token[:-1]}, invalid), ({name: box["envdAccessToken"]}, invalid)):
        for reply in (
            to_sandbox("GET", "/", box_id, 8000, headers=headers),
            request("GET", "/", url=SANDBOX_URL, host=_host(8000, box_id), headers=headers),
            # A closed port tells nothing either.
            to_sandbox("GET", "/", box_id, 8123, headers=headers),
        ):
            assert reply.status == 403
            assert reply.json == {"sandboxId": box_id, "message": text, "code": 403}
    _assert_page(to_sandbox("GET", "/", box_id, 8000, headers=_BROWSER), 403, "Missing Traffic Access Token", box_id)
    _assert_page(to_sandbox("GET", "/", box_id, 8000, headers=_BROWSER | {name: "x"}), 403, "Invalid Traffic Access Token", box_id)
    # The agent's port has its own token.
    assert to_sandbox("GET", "/health", box_id).status == 204
    again = api("POST", f"/v2/sandboxes/{box_id}/connect", {}).json
    assert again["trafficAccessToken"] == token


def test_private_traffic_needs_secure():
    body = {"templateID": "base", "network": {"allowPublicTraffic": False}}
    assert_error(api("POST", "/sandboxes", body), 400)
    assert_error(api("POST", "/sandboxes", body | {"secure": False}), 400)


# --- hostile requests -----------------------------------------------------------------------------


def _raw(data):
    """Sends bytes as they are; returns everything until the server closes or says no more."""
    with socket.create_connection((_ORIGIN.hostname, _ORIGIN.port), timeout=5) as peer:
        peer.sendall(data)
        received = b""
        try:
            while chunk := peer.recv(65536):
                received += chunk
        except TimeoutError:
            pass
    return received


@pytest.mark.parametrize(
    "data",
    [
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X-Long: " + b"a" * 200000 + b"\r\n\r\n",
        b"GET " + b"/a" * 100000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
    ids=["nonsense", "two lengths", "both framings", "bad chunk", "bad header", "long header", "long path"],
)
def test_broken_requests_are_refused(data):
    answer = _raw(data)
    assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")) or answer == b"", answer[:200]
    assert request("GET", "/health", url=API_URL).status == 200

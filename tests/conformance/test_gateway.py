# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Traffic to sandboxes by plain HTTP: routing, error pages, tokens, requests that are none."""

import base64
import hashlib
import http.client
import socket
import time
import urllib.parse

import pytest
from boxes import BROWSER, ORIGIN, UNKNOWN, assert_page, host_of, serve_echo, token_of, until_open
from harness import API_KEY, API_URL, SANDBOX_URL, api, assert_error, request, to_sandbox

pytestmark = pytest.mark.wire

# --- routing --------------------------------------------------------------------------------------


def test_agent_by_header_and_by_host(created):
    box = created()
    assert to_sandbox("GET", "/health", box["sandboxID"]).status == 204
    for domain in ("box.localhost", "localhost:3000", "example.org"):
        host = host_of(49983, box["sandboxID"], domain)
        assert request("GET", "/health", url=SANDBOX_URL, host=host).status == 204


def test_id_suffix_in_header_and_host(created):
    box = created()["sandboxID"]
    assert to_sandbox("GET", "/health", f"{box}-6532622b").status == 204
    assert request("GET", "/health", url=SANDBOX_URL, host=host_of(49983, f"{box}-6532622b")).status == 204


def test_header_names_in_any_case(created):
    box = created()["sandboxID"]
    for names in (("e2b-sandbox-id", "e2b-sandbox-port"), ("E2B-SANDBOX-ID", "E2B-SANDBOX-PORT")):
        assert request("GET", "/health", url=SANDBOX_URL, headers={names[0]: box, names[1]: 49983}).status == 204


def test_host_beats_headers(created):
    box = created()["sandboxID"]
    host = host_of(49983, UNKNOWN)
    assert to_sandbox("GET", "/health", box, host=host).json["sandboxId"] == UNKNOWN
    assert to_sandbox("GET", "/health", UNKNOWN, host=host_of(49983, box)).status == 204


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
    serve_echo(box, "0.0.0.0", 8000)
    reply = until_open(lambda: to_sandbox("GET", "/v2/sandboxes", box["sandboxID"], 8000))
    assert (reply.status, reply.json["path"]) == (200, "/v2/sandboxes")


def test_one_connection_carries_everything(created):
    first, second = created()["sandboxID"], created()["sandboxID"]
    connection = http.client.HTTPConnection(ORIGIN.hostname, ORIGIN.port, timeout=10)

    def send(path, headers):
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()

    def routing(box):
        return {"E2b-Sandbox-Id": box, "E2b-Sandbox-Port": "49983"}

    assert send("/health", {}) == (200, b"Health check successful")
    assert send("/health", routing(first))[0] == 204
    assert send("/health", routing(UNKNOWN))[0] == 502
    assert send("/health", routing(second))[0] == 204
    assert send(f"/sandboxes/{first}", {"X-API-Key": API_KEY})[0] == 200
    api("DELETE", f"/sandboxes/{first}")
    assert send("/health", routing(first))[0] == 502
    assert send("/health", routing(second))[0] == 204
    connection.close()


@pytest.mark.parametrize("headers", [{"E2b-Sandbox-Id": UNKNOWN}, {"E2b-Sandbox-Port": "8000"}])
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
    reply = to_sandbox("GET", "/health", UNKNOWN)
    assert reply.status == 502
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    assert reply.json == {"sandboxId": UNKNOWN, "message": "The sandbox was not found", "code": 502}


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


def test_errors_as_pages(created):
    box = created()["sandboxID"]
    assert_page(to_sandbox("GET", "/", UNKNOWN, 8000, headers=BROWSER), 502, "Sandbox Not Found", UNKNOWN)
    assert_page(to_sandbox("GET", "/", box, 8123, headers=BROWSER), 502, "no service running on port", box, "8123")


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
    reply = to_sandbox("GET", "/", UNKNOWN, 8000, headers=BROWSER | headers)
    assert reply.headers["content-type"].startswith("text/html" if html else "application/json")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "path", ["/init", "/freeze", "/unfreeze", "/fsfreeze", "/fsthaw", "/collapse", "/upgrade", "/journal", "/init/", "//init", "/x/../init", "/./init", "/%69nit", "/init?x=1"]
)
def test_control_paths_of_the_agent_are_closed(created, method, path):
    box = created()
    for reply in (
        to_sandbox(method, path, box["sandboxID"], headers=token_of(box), body=b"{}" if method == "POST" else None),
        request(method, path, url=SANDBOX_URL, host=host_of(49983, box["sandboxID"]), headers=token_of(box)),
    ):
        assert_error(reply, 404)
        assert "path" in reply.json and "sandboxId" not in reply.json


def test_control_paths_on_other_ports_are_ordinary(created):
    box = created()
    serve_echo(box, "127.0.0.1", 8000)
    reply = until_open(lambda: to_sandbox("POST", "/init", box["sandboxID"], 8000, body=b"{}"))
    assert (reply.status, reply.json["path"]) == (200, "/init")


# --- tokens ---------------------------------------------------------------------------------------


def test_secure_sandbox_needs_its_token(created):
    box, other = created(), created()
    for headers in ({}, {"X-Access-Token": "wrong"}, {"X-Access-Token": ""}, token_of(other), {"X-API-Key": API_KEY}):
        for path in ("/process.Process/List", "/filesystem.Filesystem/Stat"):
            reply = to_sandbox("POST", path, box["sandboxID"], body=b"{}", headers=headers)
            assert_error(reply, 401)
        assert_error(to_sandbox("GET", "/files?path=/etc/hostname", box["sandboxID"], headers=headers), 401)
        assert_error(to_sandbox("GET", "/envs", box["sandboxID"], headers=headers), 401)
    assert to_sandbox("POST", "/process.Process/List", box["sandboxID"], body=b"{}", headers=token_of(box)).status == 200
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
    serve_echo(box, "0.0.0.0", 8000)
    name = "e2b-traffic-access-token"
    prefix = f"Sandbox is secured with traffic access token. "
    missing = f"{prefix}Token header '{name}' is missing"
    invalid = f"{prefix}Provided token in header '{name}' is invalid"
    allowed = until_open(lambda: to_sandbox("GET", "/", box_id, 8000, headers={name: token}))
    assert (allowed.status, allowed.json["headers"][name]) == (200, token)
    by_host = request("GET", "/", url=SANDBOX_URL, host=host_of(8000, box_id), headers={name: token})
    assert by_host.status == 200
    for headers, text in (({}, missing), ({name: "x"}, invalid), ({name: token[:-1]}, invalid), ({name: box["envdAccessToken"]}, invalid)):
        for reply in (
            to_sandbox("GET", "/", box_id, 8000, headers=headers),
            request("GET", "/", url=SANDBOX_URL, host=host_of(8000, box_id), headers=headers),
            # A closed port tells nothing either.
            to_sandbox("GET", "/", box_id, 8123, headers=headers),
        ):
            assert reply.status == 403
            assert reply.json == {"sandboxId": box_id, "message": text, "code": 403}
    assert_page(to_sandbox("GET", "/", box_id, 8000, headers=BROWSER), 403, "Missing Traffic Access Token", box_id)
    assert_page(to_sandbox("GET", "/", box_id, 8000, headers=BROWSER | {name: "x"}), 403, "Invalid Traffic Access Token", box_id)
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
    with socket.create_connection((ORIGIN.hostname, ORIGIN.port), timeout=5) as peer:
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

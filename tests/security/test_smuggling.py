# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Messages that two readers could take apart differently, between a client, the gateway and a service
in a sandbox that records what it gets and answers what it likes. No request may turn into two on its
way in, and nothing that a service sends may become the answer to a request of somebody else."""

import json
import time
import urllib.parse

import pytest
from e2b import Sandbox
from harness import BY_DOMAIN, to_sandbox
from hostile import dial, dial_tls, drain

_PORT = 8000

# Port 8000 answers the request line /answer/<name> with the bytes that the name spells
# ("[MiB]" stands for so many), everything else with "fine"; port 8001 tells all heads that port 8000 saw, as it took them apart,
# each with the number of its connection; port 8002 says "early" before it is asked, and "stolen" when it is.
_SERVICE = r"""
import itertools, json, socket, sys, threading, urllib.parse
seen = []
numbers = itertools.count()

def serve(peer):
    data, number = b"", next(numbers)
    with peer:
        while True:
            while b"\r\n\r\n" not in data:
                piece = peer.recv(65536)
                if not piece:
                    return
                data += piece
            head, _, data = data.partition(b"\r\n\r\n")
            lines = head.split(b"\r\n")
            seen.append(head.decode("latin-1") + f"\r\nX-Number: {number}")
            fields = [line.partition(b":") for line in lines[1:]]
            length = next((int(value) for name, _, value in fields if name.lower() == b"content-length"), 0)
            while len(data) < length:
                data += peer.recv(65536)
            data = data[length:]
            if any(name.lower() == b"transfer-encoding" for name, _, _ in fields):
                while not data.endswith(b"0\r\n\r\n"):
                    data += peer.recv(65536)
                data = b""
            path = lines[0].split(b" ")[1].decode()
            if path.startswith("/answer/"):
                peer.sendall(urllib.parse.unquote_to_bytes(path[len("/answer/"):]).replace(b"[MiB]", b"a" * (1 << 20)))
            else:
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")

def tell(peer):
    with peer:
        peer.recv(65536)
        body = json.dumps(seen).encode()
        peer.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

def talk(peer):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
    with peer:
        peer.sendall(answer + b"early ")
        data = b""
        while b"\r\n\r\n" not in data:
            data += peer.recv(65536)
        peer.sendall(answer + b"stolen")
        seen.append("talked")
        while peer.recv(65536):
            pass

def listen(port, handle):
    listener = socket.create_server(("127.0.0.1", port), backlog=100)
    def run():
        while True:
            threading.Thread(target=handle, args=(listener.accept()[0],), daemon=True).start()
    thread = threading.Thread(target=run)
    thread.start()

listen(8001, tell)
listen(8002, talk)
listen(8000, serve)
print("ready", flush=True)
"""


@pytest.fixture(scope="module")
def box():
    sandbox = Sandbox.create(timeout=300)
    sandbox.files.write("/tmp/recorder.py", _SERVICE)
    handle = sandbox.commands.run("exec python3 /tmp/recorder.py", background=True, timeout=300)
    for _ in handle:
        break
    yield sandbox.sandbox_id
    sandbox.kill()


def _seen(box):
    return to_sandbox("GET", "/", box, 8001).json


# Every test runs by each way that leads to a port of a sandbox, and by TLS.
_way = {}


@pytest.fixture(autouse=True, params=["headers", "headers by TLS", "host name", "path"])
def way(request):
    if request.param == "headers by TLS" and "SSL_CERT_FILE" not in BY_DOMAIN:
        pytest.skip("needs a server with a local authority (ALCOVE_DATA)")
    _way["kind"] = request.param


def _fields(box, port=_PORT):
    if _way["kind"] == "host name":
        return f"Host: {port}-{box}.box.localhost\r\n".encode()
    if _way["kind"] == "path":
        return b"Host: localhost\r\n"
    return f"Host: x\r\nE2b-Sandbox-Id: {box}\r\nE2b-Sandbox-Port: {port}\r\n".encode()


def _path(box, path, port=_PORT):
    return (f"/_sandbox/{box}/{port}".encode() if _way["kind"] == "path" else b"") + path


def _connect(wait):
    return dial_tls(timeout=wait) if _way["kind"] == "headers by TLS" else dial(timeout=wait)


def _exchange(data, wait=10):
    """Sends bytes as they are and returns all that comes until the server closes."""
    with _connect(wait) as peer:
        peer.sendall(data)
        return drain(peer)


# --- from the client ------------------------------------------------------------------------------

_SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

# What stands between the gateway's own fields and the smuggled request. All must be refused.
_REQUESTS = {
    "length beside chunked": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked beside length": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 37\r\n\r\n",
    "list of lengths": b"Content-Length: 0, 37\r\n\r\n",
    "length with a sign": b"Content-Length: +0\r\n\r\n",
    "length with a blank inside": b"Content-Length: 0 7\r\n\r\n",
    "length with an underscore": b"Content-Length: 0_0\r\n\r\n",
    "length beyond 64 bits": b"Content-Length: 18446744073709551616\r\n\r\n",
    "coding with a blank before the colon": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "length with a tab before the colon": b"Content-Length\t: 0\r\n\r\n",
    "coding behind a bare CR": b"X: a\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding behind a bare LF": b"X: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding in a folded field": b"X: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding on the next line": b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "coding with a vertical tab": b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "coding with a NUL": b"Transfer-Encoding: chunked\x00\r\n\r\n0\r\n\r\n",
    "coding in quotes": b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "coding named twice": b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "coding and identity": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "coding with a parameter": b"Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
    "unknown coding": b"Transfer-Encoding: cow\r\n\r\n0\r\n\r\n",
    "field without a name": b": chunked\r\n\r\n",
    "field without a colon": b"Transfer-Encoding chunked\r\n\r\n0\r\n\r\n",
    "second host": b"Host: y\r\n\r\n",
    "NUL in a value": b"X: a\x00b\r\n\r\n",
    "chunk size with a prefix": b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
    "chunk size with a sign": b"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
    "chunk size that overflows": b"Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n",
    "chunk that ends with a bare LF": b"Transfer-Encoding: chunked\r\n\r\n0\n\r\n",
    "chunk whose data is too long": b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    "extension with a bare LF": b"Transfer-Encoding: chunked\r\n\r\n0;a\nb\r\n\r\n",
}


@pytest.mark.parametrize("shape", _REQUESTS)
def test_request_that_could_be_two_is_refused(box, shape):
    received = _exchange(b"POST " + _path(box, b"/first") + b" HTTP/1.1\r\n" + _fields(box) + _REQUESTS[shape] + _SMUGGLED)
    assert received.startswith(b"HTTP/1.1 400 "), received[:300]
    assert received.count(b"HTTP/1.1 ") == 1, received
    assert not any("smuggled" in head for head in _seen(box))


@pytest.mark.parametrize(
    "line",
    [b"GET /a HTTP/1.1 HTTP/1.1", b"GET /a b HTTP/1.1", b"GET\t/a HTTP/1.1", b"GET /a\x0bHTTP/1.1", b"GET /a HTTP/1.1\r", b"GET /a HTTP/9.9", b"G\x00T /a HTTP/1.1", b"GET /\x7f HTTP/1.1"],
)
def test_request_line_that_could_be_another_is_refused(box, line):
    # The heads of refused bodies may be noted late on a busy machine.
    others = lambda: [head for head in _seen(box) if not head.startswith("POST /first ")]  # noqa: E731
    before = others()
    line = line.replace(b"/", _path(box, b"/"), 1)
    assert _exchange(line + b"\r\n" + _fields(box) + b"\r\n").startswith(b"HTTP/1.1 4")
    assert others() == before


def test_body_that_looks_like_a_request_stays_a_body(box):
    before = len(_seen(box))
    body = b"GET /smuggled-body HTTP/1.1\r\nHost: x\r\n\r\n"
    for framing in (b"Content-Length: %d\r\n\r\n%s" % (len(body), body), b"Transfer-Encoding: chunked\r\n\r\n%x;a=b\r\n%s\r\n0\r\nX: y\r\n\r\n" % (len(body), body)):
        received = _exchange(b"POST " + _path(box, b"/carrier") + b" HTTP/1.1\r\nConnection: close\r\n" + _fields(box) + framing)
        assert received.startswith(b"HTTP/1.1 200 ") and received.endswith(b"fine"), received
    heads = _seen(box)[before:]
    assert sum(head.startswith("POST /carrier ") for head in heads) == 2
    assert not any(head.startswith("GET /smuggled-body") for head in heads)


def test_fields_of_one_connection_are_not_passed_on(box):
    before = len(_seen(box))
    fields = b"Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nProxy-Authorization: secret\r\nHTTP2-Settings: AAAA\r\nUpgrade: h2c\r\nX-End: 1\r\n\r\n"
    assert _exchange(b"GET " + _path(box, b"/hops") + b" HTTP/1.1\r\n" + _fields(box) + fields).startswith(b"HTTP/1.1 200 ")
    head = next(head.lower() for head in _seen(box)[before:] if head.startswith("GET /hops "))
    assert "x-end: 1" in head
    for name in ("x-hop", "keep-alive", "\r\nte:", "proxy-", "http2-settings", "upgrade", "connection"):
        assert name not in head, head


# --- from the service -----------------------------------------------------------------------------

_STOLEN = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"
_OK = b"HTTP/1.1 200 OK\r\n"

# Refused with 502: the client gets nothing of it.
_BROKEN_ANSWERS = {
    "both framings": _OK + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": _OK + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
    "list of lengths": _OK + b"Content-Length: 0, 5\r\n\r\nhello",
    "length with a sign": _OK + b"Content-Length: +5\r\n\r\nhello",
    "negative length": _OK + b"Content-Length: -1\r\n\r\n",
    "length beyond 64 bits": _OK + b"Content-Length: 18446744073709551616\r\n\r\n",
    "unknown coding": _OK + b"Transfer-Encoding: cow\r\n\r\n0\r\n\r\n",
    "two codings": _OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "blank before the colon": _OK + b"Content-Length : 5\r\n\r\nhello",
    "bare LF": b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    "bare CR in a field": _OK + b"X: a\rSet-Cookie: b\r\n\r\n",
    "NUL in a field": _OK + b"X: a\x00b\r\n\r\n",
    "chunked in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "status of two digits": b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
    "status that is no number": b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n",
    "chunk size that is no number": _OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
    "chunk size with a sign": _OK + b"Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n",
    "chunk size that overflows": _OK + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
    "head of a megabyte": _OK + b"X: [MiB]\r\n\r\n",
    "interim head of a megabyte": b"HTTP/1.1 103 Early Hints\r\nLink: [MiB]\r\n\r\n" + _OK + b"Content-Length: 0\r\n\r\n",
    "interim answers without end": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 50 + _OK + b"Content-Length: 0\r\n\r\n",
    "interim answers alone": b"HTTP/1.1 100 Continue\r\n\r\n" * 50,
    "unasked switch of protocols": b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
}
# Passed on as the message that it is; what stands behind it is dropped with the connection.
_LONG_ANSWERS = {
    "no body announced": _OK + b"Content-Length: 0\r\n\r\n",
    # Joined to one line on its way (RFC 9112, 5.2).
    "folded field": _OK + b"X: a\r\n Content-Length: 9\r\nContent-Length: 0\r\n\r\n",
    "204 with a body": b"HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\nstolen",
    "304 with a body": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\nstolen",
    "chunked with a trailer": _OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 9\r\n\r\n",
    "interim answers before": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + _OK + b"Content-Length: 0\r\n\r\n",
}


def _ask(box, answer, method=b"GET"):
    path = b"/answer/" + urllib.parse.quote_from_bytes(answer, safe="").encode()
    return method + b" " + _path(box, path) + b" HTTP/1.1\r\n" + _fields(box)


def _next(box):
    return b"GET " + _path(box, b"/next") + b" HTTP/1.1\r\n" + _fields(box) + b"Connection: close\r\n\r\n"


@pytest.mark.parametrize("shape", _BROKEN_ANSWERS)
def test_broken_answer_is_refused_and_nothing_of_it_stays(box, shape):
    before = len(_seen(box))
    received = _exchange(_ask(box, _BROKEN_ANSWERS[shape] + _STOLEN) + b"\r\n" + _next(box))
    assert received.startswith(b"HTTP/1.1 502 "), received[:300]
    assert received.endswith(b"fine") and received.count(b"HTTP/1.1 ") == 2, received
    assert b"stolen" not in received
    page = received.partition(b"\r\n\r\n")[2].partition(b"HTTP/1.1 ")[0]
    assert json.loads(page) == {
        "sandboxId": box,
        "message": "The service in the sandbox sent an answer that is not valid HTTP",
        "port": _PORT,
        "code": 502,
    }
    # And its connection is not used again.
    asked, after = (head.rpartition(" ")[2] for head in _seen(box)[before:])
    assert asked != after


@pytest.mark.parametrize("shape", _LONG_ANSWERS)
def test_what_follows_an_answer_is_nobodys(box, shape):
    """Neither the same client nor the next one gets it."""
    for method in (b"GET", b"HEAD"):
        ask = _ask(box, _LONG_ANSWERS[shape] + _STOLEN, method) + b"\r\n"
        received = _exchange(ask + _next(box))
        assert received.endswith(b"fine") and received.count(b"HTTP/1.1 ") == 2, received
        assert b"stolen" not in received
    for _ in range(5):
        assert to_sandbox("GET", "/other", box, _PORT).body == b"fine"


def test_what_is_said_unasked_is_nobodys(box):
    """A service that answers before it is asked is heard once for each connection: what it says then, while nobody waits, is not the
    next client's answer."""
    before = _seen(box).count("talked")
    for turn, method in enumerate((b"GET", b"POST", b"GET", b"GET")):
        ask = method + b" " + _path(box, b"/", 8002) + b" HTTP/1.1\r\n" + _fields(box, 8002) + b"Connection: close\r\n\r\n"
        received = _exchange(ask)
        assert received.startswith(b"HTTP/1.1 200 ") and received.endswith(b"early "), received
        # Now that it has been asked, it says the rest.
        deadline = time.monotonic() + 10
        while _seen(box).count("talked") <= before + turn and time.monotonic() < deadline:
            time.sleep(0.01)


def test_answer_to_head_with_a_body_is_nobodys(box):
    ask = _ask(box, _OK + b"Content-Length: 6\r\n\r\nstolen", b"HEAD") + b"\r\n"
    received = _exchange(ask + _next(box))
    assert received.count(b"HTTP/1.1 200 ") == 2 and received.endswith(b"fine") and b"stolen" not in received


@pytest.mark.parametrize("broken", [b"zz\r\nabc\r\n", b"-1\r\n", b"3\r\nabcX\r\n0\r\n\r\n", b"FFFFFFFFFFFFFFFFF\r\n", b"3\nabc\r\n0\r\n\r\n"])
def test_broken_chunks_cut_the_connection(box, broken):
    """The head and what was right are out already, so the client must see a transfer without its end."""
    received = _exchange(_ask(box, _OK + b"Transfer-Encoding: chunked\r\n\r\n100000\r\n[MiB]\r\n" + broken) + b"\r\n" + _next(box))
    assert received.startswith(b"HTTP/1.1 200 "), received[:300]
    assert b"\r\n0\r\n\r\n" not in received and b"fine" not in received, received[-300:]
    assert to_sandbox("GET", "/other", box, _PORT).body == b"fine"

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What a hostile or clumsy client sends, and what greedy programs do inside a sandbox. The server
must give a documented answer, keep serving others and give back what was taken."""

import asyncio
import concurrent.futures
import contextlib
import gzip
import json
import os
import socket
import struct
import time
import urllib.parse
from pathlib import Path

import pytest
from e2b import CommandExitException, Sandbox
from harness import API_KEY, DATA_DIR, SANDBOX_URL, api, assert_error, eventually, request, server_pid, to_sandbox

_AGENT = 49983
_JSON = {"Content-Type": "application/json"}
_STREAM = {"Content-Type": "application/connect+json"}
_BYTES = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def box():
    sandbox = Sandbox.create(timeout=600, metadata={"test": "bad input"})
    yield sandbox
    sandbox.kill()


@pytest.fixture
def victim():
    """A sandbox that the test may ruin."""
    sandbox = Sandbox.create(timeout=120, metadata={"test": "bad input"})
    yield sandbox
    sandbox.kill()


@pytest.fixture(autouse=True)
def server_is_unharmed(box):
    """After every test: the same server process, no more memory or descriptors than before, and
    an untouched sandbox still works."""
    if not DATA_DIR:
        yield
        return
    pid, before = server_pid(), _Usage()
    yield
    assert server_pid() == pid and Path(f"/proc/{pid}").exists()
    assert box.commands.run("echo ok").stdout == "ok\n"
    assert asyncio.run(eventually(lambda: _Usage().descriptors <= before.descriptors + 20, within=8)), (before, _Usage())
    assert _Usage().memory < before.memory + 64 * 2**20, (before, _Usage())


class _Usage:
    """What the server uses now."""

    def __init__(self):
        proc = Path(f"/proc/{server_pid()}")
        self.descriptors = len(list((proc / "fd").iterdir()))
        self.memory = int((proc / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    def __repr__(self):
        return f"{self.descriptors} descriptors, {self.memory >> 20} MiB"


def _dial(url=SANDBOX_URL, timeout=10):
    target = urllib.parse.urlsplit(url)
    return socket.create_connection((target.hostname, target.port), timeout=timeout)


def _to_agent(box, token=True):
    fields = f"Host: localhost\r\nE2b-Sandbox-Id: {box.sandbox_id}\r\nE2b-Sandbox-Port: {_AGENT}\r\n"
    return (fields + (f"X-Access-Token: {_token(box)}\r\n" if token else "")).encode()


def _token(box):
    return box._envd_access_token


def _call(box, method, path, body=None, headers=None, token=True, **options):
    fields = (headers or {}) | ({"X-Access-Token": _token(box)} if token is True else {})
    return to_sandbox(method, path, box.sandbox_id, body=body, headers=fields, **options)


def _raw(data, wait=5.0):
    """All bytes that come back until the server closes; fails if it does not within `wait`."""
    with _dial(timeout=wait) as connection:
        # A server that refuses early may close before it has read all.
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(65536):
                received += piece
        return received


def _statuses(received):
    """The status of each answer in what came over one connection. No body here has these bytes."""
    return [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]]


def _error(received):
    """The one answer of a connection, checked for the error shape."""
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 "), received[:200]
    status, content = int(head[9:12]), json.loads(body)
    assert content["code"] == status and content["message"], received
    return status


def _envelope(message):
    data = json.dumps(message).encode()
    return b"\0" + struct.pack(">I", len(data)) + data


# --- the API's bodies, paths and keys -------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b'{"templateID":"base"} and more',
        b'\xef\xbb\xbf{"templateID":"base"}',
        b'{"templateID":"\xff\xfe"}',
        b'{"templateID":"\\ud800"}',
        b'{"templateID":"base\\u0000"}',
        b'{"templateID":7}',
        b'{"templateID":null}',
        b'{"templateID":""}',
        b'{"templateID":"../../etc"}',
        b'{"templateID":"base","timeout":"15"}',
        b'{"templateID":"base","timeout":true}',
        b'{"templateID":"base","timeout":-1}',
        b'{"templateID":"base","timeout":0}',
        b'{"templateID":"base","timeout":1.5}',
        b'{"templateID":"base","timeout":1e400}',
        b'{"templateID":"base","timeout":2147483647}',
        b'{"templateID":"base","timeout":99999999999999999999999}',
        b'{"templateID":"base","metadata":[]}',
        b'{"templateID":"base","metadata":{"a":1}}',
        b'{"templateID":"base","envVars":{"a":{}}}',
        b'{"templateID":"base","envVars":{"":"x"}}',
        b'{"templateID":"base","envVars":{"a=b":"x"}}',
        b'{"templateID":"base","envVars":{"a":"x\\u0000y"}}',
        b'{"templateID":"base","network":7}',
        b'{"templateID":"base","network":{"allowOut":[1]}}',
        b'{"templateID":"base","autoPause":1}',
        b'{"templateID":"base","volumeMounts":{}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
    ids=lambda body: body[:60].decode(errors="replace"),
)
def test_bodies_that_are_not_a_create(body):
    reply = api("POST", "/v2/sandboxes", body)
    assert_error(reply, 400)


def test_unknown_template_with_a_long_name():
    reply = api("POST", "/v2/sandboxes", {"templateID": "x" * 1_000_000})
    assert reply.status in (400, 404)
    assert_error(reply, reply.status)
    assert len(reply.body) < 4096


def test_body_over_the_limit():
    assert_error(api("POST", "/v2/sandboxes", b" " * (17 << 20)), 413)


@pytest.mark.parametrize("chunked", [False, True])
def test_body_is_not_read_for_a_stranger(chunked):
    assert_error(request("POST", "/v2/sandboxes", body=b" " * (1 << 20), key="e2b_" + "0" * 40, chunked=chunked), 401)


@pytest.mark.parametrize("path", ["/sandboxes/%ff%fe", "/sandboxes/%00", "/sandboxes/..%2f..%2fetc", "/sandboxes/" + "a" * 5000, "/sandboxes/%zz", "/nothing/%ff", "/sandboxes/i'--"])
def test_ids_that_are_none(path):
    reply = api("GET", path)
    assert reply.status in (400, 404)
    assert_error(reply, reply.status)


@pytest.mark.parametrize("query", ["state=%ff", "nextToken=%ff", "nextToken=" + "A" * 5000, "limit=1e3", "limit=99999999999999999999", "metadata=a", "metadata=%zz"])
def test_queries_that_are_none(query):
    assert_error(api("GET", "/v2/sandboxes?" + query), 400)


def test_bytes_above_ascii_in_the_request_line_and_fields():
    key = f"X-API-Key: {API_KEY}\r\n".encode()
    assert _error(_raw(b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n" + key + b"Connection: close\r\n\r\n")) == 404
    assert _error(_raw(b"GET /sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: \xff\xfe\r\nConnection: close\r\n\r\n")) == 401
    assert _error(_raw(b"G\xffT /sandboxes HTTP/1.1\r\nHost: x\r\n\r\n")) == 400


# --- HTTP itself ----------------------------------------------------------------------------------


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
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=repr,
)
def test_request_lines_that_are_none(line):
    assert _error(_raw(line + b"\r\nHost: localhost\r\n\r\n")) == 400


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
    assert _error(_raw(head)) == 431


def test_ten_thousand_fields_are_still_a_request(box):
    fields = b"A: b\r\n" * 10_000 + b"Connection: close\r\n\r\n"
    assert _statuses(_raw(b"GET /health HTTP/1.1\r\nHost: x\r\n" + fields)) == [200]
    assert _statuses(_raw(b"GET /health HTTP/1.1\r\n" + _to_agent(box) + fields)) == [204]


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
    start = b"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\n" if where == "api" else b"POST /files HTTP/1.1\r\n" + _to_agent(box)
    assert _error(_raw(start + _AMBIGUOUS[shape] + _SECOND)) == 400


@pytest.mark.parametrize("where", ["api", "agent"])
@pytest.mark.parametrize("shape", _BROKEN_CHUNKS)
def test_broken_chunks_end_the_connection(box, shape, where):
    start = f"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: {API_KEY}\r\n".encode()
    if where == "agent":
        start = b"POST /filesystem.Filesystem/Stat HTTP/1.1\r\nContent-Type: application/json\r\n" + _to_agent(box)
    received = _raw(start + b"Transfer-Encoding: chunked\r\n\r\n" + _BROKEN_CHUNKS[shape] + _SECOND)
    assert _statuses(received) == [400], received


def test_second_request_is_routed_by_its_own_fields(box):
    """Pipelining is allowed, but the second request must not inherit the first one's sandbox."""
    body = b'5;name="value"\r\n{"pat\r\nA\r\nh":"/tmp"}\r\n0\r\nContent-Length: 50\r\nHost: trailer\r\n\r\n'
    first = b"POST /filesystem.Filesystem/Stat HTTP/1.1\r\nContent-Type: application/json\r\n" + _to_agent(box) + b"Transfer-Encoding: chunked\r\n\r\n"
    received = _raw(first + body + b"GET /envs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert _statuses(received) == [200, 404], received
    # And the other way round.
    received = _raw(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\n" + _to_agent(box) + b"Connection: close\r\n\r\n")
    assert _statuses(received) == [404, 204], received


def test_connection_field_cannot_remove_the_token(box):
    received = _raw(b"GET /envs HTTP/1.1\r\n" + _to_agent(box) + b"Connection: close, X-Access-Token\r\n\r\n")
    assert _statuses(received) == [200]


# --- the agent's control paths and its token ------------------------------------------------------

_CONTROL = [
    b"/init",
    b"//init",
    b"/./init",
    b"/x/../init",
    b"/x/%2e%2e/init",
    b"/%69nit",
    b"/%2569nit",
    b"/INIT",
    b"/init/",
    b"/init?x",
    b"/init#x",
    b"/init;a",
    b"/init;\xff",
    b"/init%00",
    b"/init%20",
    b"/init%2f",
    b"/init%3fx",
    b"/\\init",
    b"/..\\init",
    b"http://localhost/init",
    b"HTTP://localhost//init",
    b"/freeze",
    b"/unfreeze",
    b"/fsfreeze",
    b"/fsthaw",
    b"/collapse",
    b"/upgrade",
]


@pytest.mark.parametrize("target", _CONTROL, ids=repr)
def test_control_paths_are_refused_by_the_gateway(box, target):
    by_host = f"Host: {_AGENT}-{box.sandbox_id}.e2b.app\r\n".encode()
    odd_host = f"Host: 0{_AGENT}-{box.sandbox_id.upper()}-x.E2B.App.:80\r\n".encode()
    for method in (b"POST", b"PUT", b"GET", b"OPTIONS", b"BREW"):
        for routing in (_to_agent(box), by_host, odd_host):
            if routing != _to_agent(box) and b"://" in target:
                continue  # there the target names the host
            received = _raw(method + b" " + target + b" HTTP/1.1\r\n" + routing + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}")
            assert _error(received) == 404, (method, routing, received)
            # Without a sandbox's id: the answer is the gateway's, not the agent's.
            assert json.loads(received.partition(b"\r\n\r\n")[2]).keys() == {"message", "path", "code"}, received


@pytest.mark.parametrize("port", ["+49983", "115519", "0xC33F", "49983.0", "49983,49983", "-1", "0", "65536", "\u00b2"])
def test_ports_that_are_none(box, port):
    received = _raw(f"GET /health HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: {box.sandbox_id}\r\nE2b-Sandbox-Port: {port}\r\nConnection: close\r\n\r\n".encode())
    assert _statuses(received) == [400]


_ROUTES = [("GET", "/metrics"), ("GET", "/envs"), ("GET", "/files?path=/etc/passwd"), ("POST", "/files?path=/tmp/stranger"), ("POST", "/files/compose"), ("HEAD", "/files?path=/etc/passwd"), ("GET", "//files?path=/etc/passwd"), ("GET", "/%66iles?path=/etc/passwd"), ("POST", "/nothing")]
_ROUTES += [("POST", f"/process.Process/{name}") for name in ("List", "Start", "Connect", "Update", "SendInput", "StreamInput", "SendSignal", "CloseStdin")]
_ROUTES += [("POST", f"/filesystem.Filesystem/{name}") for name in ("Stat", "ListDir", "MakeDir", "Move", "Remove", "WatchDir", "CreateWatcher", "GetWatcherEvents", "RemoveWatcher")]


@pytest.mark.parametrize("method, path", _ROUTES)
def test_agent_wants_its_token_everywhere(box, method, path):
    token = _token(box)
    for wrong in ({}, {"X-Access-Token": ""}, {"X-Access-Token": token[:-1]}, {"X-Access-Token": token + "0"}, {"X-Access-Token": API_KEY}, {"Authorization": "Bearer " + token}):
        for content in (_JSON, _STREAM, _BYTES):
            reply = _call(box, method, path, body=b"{}" if method == "POST" else None, headers=content | wrong, token=False)
            assert reply.status == 401, (wrong, content, reply)
    assert not box.files.exists("/tmp/stranger")


def test_signatures_that_are_none(box):
    for query, status in (("", 401), ("&signature=", 401), ("&signature=v1_x", 401), ("&signature=v1_x&signature_expiration=abc", 400), ("&signature=v1_x&signature_expiration=99999999999999999999", 400)):
        assert _call(box, "GET", "/files?path=/etc/passwd" + query, token=False).status == status, query


@pytest.mark.parametrize("target", ["/init", "//init", "/init?x=1"])
@pytest.mark.parametrize("body", ["{}", '{"accessToken":"mine"}', '{"envVars":{"A":"B"}}', ""])
def test_sandbox_cannot_initialise_its_own_agent(box, target, body):
    box.files.write("/tmp/body", body)
    code = box.commands.run(f"curl -s -o /dev/null -w '%{{http_code}}' --path-as-is -X POST -H 'Content-Type: application/json' --data-binary @/tmp/body 'http://localhost:49983{target}'", user="root").stdout
    assert code in ("401", "404"), code
    assert _call(box, "GET", "/envs", token=False).status == 401
    assert "A" not in _call(box, "GET", "/envs").json


# --- calls to the agent ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body, code",
    [
        (b"", "invalid_argument"),
        (b"{", "invalid_argument"),
        (b"[]", "invalid_argument"),
        (b'{"path":7}', "invalid_argument"),
        (b'{"path":"a\\u0000b"}', "invalid_argument"),
        (b'{"path":"\xff"}', "invalid_argument"),
        (b"[" * 100_000, "invalid_argument"),
        (b'{"path":"/no/such/file"}', "not_found"),
        (b" " * (2 << 20), "resource_exhausted"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_unary_calls_that_are_none(box, body, code):
    assert _call(box, "POST", "/filesystem.Filesystem/Stat", body, _JSON).json["code"] == code


@pytest.mark.parametrize("data, code", [(gzip.compress(b" " * 200_000_000), "resource_exhausted"), (b"no gzip", "invalid_argument"), (gzip.compress(b'{"path":"/tmp"}')[:-5], "invalid_argument")], ids=["bomb", "noise", "cut"])
def test_compressed_calls_that_are_none(box, data, code):
    assert _call(box, "POST", "/filesystem.Filesystem/Stat", data, _JSON | {"Content-Encoding": "gzip"}).json["code"] == code


@pytest.mark.parametrize(
    "body, code",
    [
        (b"", "unimplemented"),
        (b"\0\xff\xff\xff\xff{}", "resource_exhausted"),
        (b"\0\0\0\0\x09{}", "invalid_argument"),
        (b"\0\0", "invalid_argument"),
        (b"\x01\0\0\0\x02{}", "invalid_argument"),
        (b"\x02\0\0\0\x02{}", "invalid_argument"),
        (b"\0\0\0\0\x02{}\0\0\0\0\x02{}", "unimplemented"),
        (b"\0\0\0\0\x04null", "invalid_argument"),
        (_envelope({"process": {"cmd": "a\0b"}}), "invalid_argument"),
        (_envelope({"process": {"cmd": "/bin/true", "envs": {"a": "b\0"}}}), "invalid_argument"),
        (_envelope({"process": {"cmd": "/bin/true", "cwd": "/no/such"}}), "invalid_argument"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_streaming_calls_that_are_none(box, body, code):
    reply = _call(box, "POST", "/process.Process/Start", body, _STREAM)
    assert reply.status == 200 and reply.body[0] == 2
    assert json.loads(reply.body[5:])["error"]["code"] == code


@pytest.mark.parametrize("pid", [0, 1, 2, 99999, 2**32 - 1, 2**32, -1])
def test_only_the_agents_own_processes_get_signals_and_input(box, pid):
    expected = ("not_found",) if 0 <= pid < 2**32 else ("invalid_argument",)
    for signal in ("SIGNAL_SIGKILL", "SIGNAL_SIGTERM"):
        assert _call(box, "POST", "/process.Process/SendSignal", {"process": {"pid": pid}, "signal": signal}, _JSON).json["code"] in expected
    assert _call(box, "POST", "/process.Process/SendInput", {"process": {"pid": pid}, "input": {"stdin": "eA=="}}, _JSON).json["code"] in expected


def test_foreign_process_gets_no_signal(box):
    pid = int(box.commands.run("setsid sleep 61 >/dev/null 2>&1 </dev/null & echo $!").stdout)
    assert _call(box, "POST", "/process.Process/SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"}, _JSON).json["code"] == "not_found"
    box.commands.run(f"kill {pid}")


# --- files ----------------------------------------------------------------------------------------


def test_names_that_are_not_text(box):
    box.commands.run("mkdir -p /tmp/names")
    source = "import os\nfor name in (b'new\\nline', b'inv\\xff\\xfe', b'\\xed\\xa0\\x80', b'quo\"te\\\\', b'\\x01\\x7f', b'a' * 255):\n    open(b'/tmp/names/' + name, 'w').close()\n"
    box.files.write("/tmp/names.py", source)
    box.commands.run("python3 /tmp/names.py")
    names = {entry.name for entry in box.files.list("/tmp/names")}
    assert len(names) == 6 and {"new\nline", 'quo"te\\', "\x01\x7f", "a" * 255} <= names
    for name in (b"new\nline", b"inv\xff\xfe", b'quo"te\\', b"\x01\x7f"):
        path = urllib.parse.quote(b"/tmp/names/" + name)
        reply = _call(box, "POST", "/files?path=" + path, b"content", _BYTES)
        assert reply.status == 200 and reply.json[0]["type"] == "file"
        reply = _call(box, "GET", "/files?path=" + path)
        assert (reply.status, reply.body) == (200, b"content")
        assert all(c.isprintable() for c in reply.headers["content-disposition"])


@pytest.mark.parametrize("name", ["a" * 256, "a/" * 3000, "a" * 60_000])
def test_names_that_are_too_long(box, name):
    for method, body in (("GET", None), ("POST", b"x")):
        reply = _call(box, method, "/files?path=/tmp/" + name, body, _BYTES)
        assert 400 <= reply.status <= 500
        assert_error(reply, reply.status)


def _form(*parts, boundary=b"limit"):
    return b"".join(b"--" + boundary + b'\r\nContent-Disposition: form-data; name="file"; filename="' + name + b'"\r\n\r\n' + data + b"\r\n" for name, data in parts) + b"--" + boundary + b"--\r\n"


_FORM = {"Content-Type": "multipart/form-data; boundary=limit"}


def test_file_names_of_a_form_stay_inside_the_sandbox(box):
    mark = f"alcove-traversal-{os.getpid()}"
    reply = _call(box, "POST", "/files", _form((b"../" * 40 + b"tmp/" + mark.encode(), b"inside")), _FORM)
    assert reply.status == 200 and reply.json[0]["path"] == f"/tmp/{mark}"
    assert box.files.read(f"/tmp/{mark}") == "inside"
    assert not Path("/tmp", mark).exists()


def test_form_with_ten_thousand_parts(box):
    reply = _call(box, "POST", "/files", _form(*((b"/tmp/parts/%d" % number, b"x") for number in range(10_000))), _FORM, timeout=50)
    assert reply.status == 200 and len(reply.json) == 10_000
    assert box.commands.run("ls /tmp/parts | wc -l; rm -r /tmp/parts").stdout == "10000\n"


@pytest.mark.parametrize(
    "body, status",
    [
        (b"", 500),
        (b"--limit", 500),
        (b"--limit\r\n", 500),
        (b"no delimiter", 500),
        (_form((b"/tmp/cut", b"x"))[:-12], 500),
        (b"--limit\r\nContent-Disposition: form-data; name=file; filename=x\r\n" + b"A: b\r\n" * 10_000 + b"\r\nx\r\n--limit--", 500),
        (_form((b"/tmp/same", b"1"), (b"/tmp/same", b"2")), 400),
        (_form((b"/tmp", b"a directory")), 400),
        (_form((b"/tmp/a\0b", b"NUL")), 400),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else str(value),
)
def test_forms_that_are_none(box, body, status):
    assert_error(_call(box, "POST", "/files", body, _FORM), status)


def test_gzip_bomb_as_a_file_is_stored_piece_by_piece(victim):
    """200 MB of zeros in 200 kB: neither the agent nor the server may hold them in memory."""
    reply = _call(victim, "POST", "/files?path=/tmp/bomb", gzip.compress(bytes(200_000_000)), _BYTES | {"Content-Encoding": "gzip"}, timeout=50)
    assert reply.status == 200
    assert victim.commands.run("stat -c %s /tmp/bomb").stdout == "200000000\n"
    peak = victim.commands.run("sed -n 's/^VmHWM:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/1/status", user="root").stdout
    assert int(peak) < 32 * 1024, f"{peak} KiB"


def test_files_that_are_none(box):
    for path in ("/dev/full", "/proc/1/mem", "/proc/sysrq-trigger"):
        assert _call(box, "POST", f"/files?path={path}", b"x", _BYTES).status >= 400, path
    box.commands.run("mkfifo -m 666 /tmp/fifo")
    # Nobody is at the other end: it must not hang.
    assert _call(box, "POST", "/files?path=/tmp/fifo", b"x", _BYTES, timeout=10).status >= 400
    assert _call(box, "GET", "/files?path=/tmp/fifo", timeout=10).status < 600


# --- connections ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"G", b"GET /health HTTP/1.1\r\n", b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "], ids=repr)
def test_head_that_never_ends_is_given_up(sent):
    with _dial(timeout=15) as connection:
        begin = time.monotonic()
        connection.sendall(sent)
        # A byte now and then does not buy more time.
        for _ in range(3):
            time.sleep(2)
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"E" if sent == b"G" else b"a: b\r\n"[: 1 if sent.endswith(b" ") else 6])
        assert _error(_drain(connection)) == 408
        assert time.monotonic() - begin < 14


def _drain(connection):
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            received += piece
    return received


def test_half_closed_connection_gets_its_answer(box):
    for routing in (b"Host: x\r\n", _to_agent(box)):
        with _dial() as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\n" + routing + b"\r\n")
            connection.shutdown(socket.SHUT_WR)
            assert _statuses(_drain(connection))[0] in (200, 204)


def test_body_that_is_cut_short(box):
    for start in (b"POST /v2/sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: " + API_KEY.encode() + b"\r\n", b"POST /files?path=/tmp/cut HTTP/1.1\r\nContent-Type: application/octet-stream\r\n" + _to_agent(box)):
        with _dial() as connection:
            connection.sendall(start + b"Content-Length: 1000000\r\n\r\n" + b"x" * 1000)
            connection.shutdown(socket.SHUT_WR)
            assert all(status >= 400 for status in _statuses(_drain(connection)))


def _reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_resets_in_the_middle_of_uploads_and_streams(victim):
    start = _envelope({"process": {"cmd": "/bin/sh", "args": ["-c", "while :; do echo reset-stream; done"]}})
    for number in range(20):
        upload, stream = _dial(), _dial()
        upload.sendall(f"POST /files?path=/tmp/reset-{number} HTTP/1.1\r\nContent-Type: application/octet-stream\r\n".encode() + _to_agent(victim) + b"Content-Length: 10000000\r\n\r\n" + b"x" * 50_000)
        stream.sendall(b"POST /process.Process/Start HTTP/1.1\r\nContent-Type: application/connect+json\r\n" + _to_agent(victim) + b"Content-Length: %d\r\n\r\n" % len(start) + start)
        assert stream.recv(100).startswith(b"HTTP/1.1 200")
        _reset(upload)
        _reset(stream)
    # A client that went away leaves its command running.
    for process in victim.commands.list():
        victim.commands.kill(process.pid)
    assert asyncio.run(eventually(lambda: victim.commands.list() == [], within=5))


@pytest.mark.limit(90)
def test_two_thousand_idle_connections():
    connections = []
    try:
        for number in range(2000):
            connections.append(_dial())
            # Half of them began a request.
            if number % 2:
                connections[-1].sendall(b"GET /health HTTP/1.1\r\nHost: ")
        assert api("GET", "/health").status == 200
        if DATA_DIR:
            assert _Usage().memory < 256 * 2**20
    finally:
        for connection in connections:
            connection.close()


def test_download_that_nobody_reads(box):
    box.commands.run("truncate -s 1G /tmp/large")
    before = _Usage() if DATA_DIR else None
    connections = []
    try:
        for _ in range(8):
            connection = _dial()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(b"GET /files?path=/tmp/large HTTP/1.1\r\n" + _to_agent(box) + b"\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
            connections.append(connection)
        time.sleep(3)
        if before:
            assert _Usage().memory < before.memory + 16 * 2**20, (before, _Usage())
        assert int(box.commands.run("sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/1/status", user="root").stdout) < 64 * 1024
    finally:
        for connection in connections:
            connection.close()


def test_two_hundred_streams_to_one_sandbox(victim):
    start = _envelope({"process": {"cmd": "/bin/sh", "args": ["-c", "echo begun; sleep 3; echo ended"]}})

    def run(_):
        return _call(victim, "POST", "/process.Process/Start", start, _STREAM, timeout=40)

    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        replies = list(pool.map(run, range(200)))
    for reply in replies:
        assert reply.status == 200 and b'"exited":true' in reply.body and b"ZW5kZWQK" in reply.body, reply.body


# --- greedy programs ------------------------------------------------------------------------------


def _answers_quickly(box):
    begin = time.monotonic()
    assert box.commands.run("echo ok", timeout=10).stdout == "ok\n"
    assert api("GET", f"/sandboxes/{box.sandbox_id}").status == 200
    return time.monotonic() - begin < 5


def test_fork_bomb_stops_at_its_limit(box, victim):
    source = (
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while made < 20000:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(60)\n"
        "            os._exit(0)\n"
        "        made += 1\n"
        "except OSError as error:\n"
        "    print('stopped', error.errno, flush=True)\n"
        "time.sleep(60)\n"
    )
    victim.files.write("/tmp/bomb.py", source)
    seen = []
    handle = victim.commands.run("exec python3 /tmp/bomb.py", background=True, timeout=60)
    for stdout, _, _ in handle:
        seen.append(stdout)
        break
    assert seen == ["stopped 11\n"]
    assert _answers_quickly(box)
    # The agent itself still answers, even if it cannot start anything.
    assert _call(victim, "GET", "/health", token=False).status == 204
    assert _call(victim, "POST", "/filesystem.Filesystem/Stat", {"path": "/tmp"}, _JSON).status == 200
    handle.disconnect()
    assert victim.kill() is True


def test_fork_bomb_by_root_leaves_the_agent_usable(box, victim):
    victim.commands.run("(while :; do (sleep 30 &) ; done) >/dev/null 2>&1 &", user="root", background=True, timeout=30)
    time.sleep(4)
    assert _answers_quickly(box)
    assert _call(victim, "GET", "/health", token=False).status == 204
    assert victim.kill() is True


def test_memory_hog_ends_alone(box, victim):
    with pytest.raises(CommandExitException) as info:
        # Touches at most 3 GB, in case there is no limit.
        victim.commands.run("python3 -c \"held = [bytearray(b'x' * 2**20) for _ in range(3000)]\"", timeout=50)
    # Either Python gave up, or the kernel ended it.
    assert info.value.exit_code == 1 or info.value.error == "signal: killed", info.value
    assert _answers_quickly(box)
    assert victim.commands.run("echo alive").stdout == "alive\n"


def test_memory_hog_in_shared_memory(box, victim):
    """/dev/shm is memory, too."""
    with contextlib.suppress(CommandExitException):
        victim.commands.run("head -c 3G /dev/zero > /dev/shm/fill", user="root", timeout=50)
    assert _answers_quickly(box)
    assert int(victim.commands.run("stat -c %s /dev/shm/fill").stdout) <= 2**30


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


# What the kernel counts for all sandboxes together unless each has a limit of its own. Each line
# takes as much as it gets (up to a bound) and prints how much that was.
_SHARED = {
    "pseudo terminals": "lambda: os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)",
    "inotify instances": "lambda: checked(libc.inotify_init1(0))",
    "message queues": "lambda: checked(libc.mq_open(b'/queue%d' % len(taken), 0o102, 0o600, (ctypes.c_long * 8)(0, 10, 8192)))",
    "timers": "lambda: checked(libc.syscall(222, 1, None, ctypes.byref(ctypes.c_void_p())))",
}


@pytest.mark.parametrize("kind", _SHARED)
def test_one_sandbox_cannot_use_up_what_all_share(victim, kind):
    other = Sandbox.create(timeout=60)
    try:
        source = (
            "import ctypes, os, sys, time\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "def checked(result):\n"
            "    if result < 0:\n"
            "        raise OSError(ctypes.get_errno(), 'refused')\n"
            "    return result\n"
            f"take = {_SHARED[kind]}\n"
            "taken = []\n"
            "try:\n"
            "    while len(taken) < int(sys.argv[1]):\n"
            "        taken.append(take())\n"
            "except OSError:\n"
            "    pass\n"
            "print(len(taken), flush=True)\n"
            "time.sleep(float(sys.argv[2]))\n"
        )
        for sandbox in (victim, other):
            sandbox.files.write("/tmp/take.py", source)
        handle = victim.commands.run("exec python3 /tmp/take.py 200000 40", user="root", background=True, timeout=60)
        for _ in handle:
            break
        assert other.commands.run("python3 /tmp/take.py 1 0", user="root").stdout == "1\n"
        handle.disconnect()
    finally:
        victim.kill()
        other.kill()


@pytest.mark.parametrize("field", ["metadata", "envVars"])
def test_maps_of_megabytes_are_refused(field):
    reply = api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 15, field: {"a": "x" * 10_000_000}})
    if reply.status == 201:
        api("DELETE", f"/sandboxes/{reply.json['sandboxID']}")
    assert_error(reply, 400)


def test_disk_filler_harms_nobody_else(box, victim):
    # Reserves instead of writing, so that it takes no time.
    # Ever smaller pieces, so that less is left than the upload below needs, whatever the limit is.
    fill = "for size in 100 10 1; do for i in $(seq 1 400); do fallocate -l ${size}M /tmp/fill-$size-$i 2>&1 || break; done; done; true"
    filled = victim.commands.run(fill, timeout=50)
    assert "No space left" in filled.stdout or "quota" in filled.stdout.lower(), filled
    try:
        reply = _call(victim, "POST", "/files?path=/tmp/more", bytes(40 << 20), _BYTES)
        assert_error(reply, 507)
        # Others still have room.
        box.files.write("/tmp/room", "x" * (8 << 20))
        assert box.commands.run("stat -c %s /tmp/room; sync /tmp/room; echo $?").stdout == f"{8 << 20}\n0\n"
        another = Sandbox.create(timeout=60)
        assert another.commands.run("echo ok > /tmp/x && cat /tmp/x").stdout == "ok\n"
        another.kill()
        assert victim.commands.run("echo alive").stdout == "alive\n"
    finally:
        victim.commands.run("rm -f /tmp/fill-* /tmp/more")

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The agent's plain HTTP endpoints and the rules of its transport, where no SDK call shows them."""

import time

import pytest
from harness import to_sandbox
from streams import envelope, messages_of

pytestmark = pytest.mark.wire

_JSON = {"Content-Type": "application/json"}


@pytest.fixture
def box(created):
    return created(envVars={"OWN": "ünï"})


def _call(box, method, path, *, headers=None, token=True, **options):
    fields = {"X-Access-Token": box["envdAccessToken"]} if token else {}
    return to_sandbox(method, path, box["sandboxID"], headers=fields | (headers or {}), **options)


def _stream(box, method, message, **headers):
    """The messages that a streaming call gives."""
    fields = {"Content-Type": "application/connect+json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    reply = _call(box, "POST", f"/process.Process/{method}", body=envelope(message), headers=fields)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/connect+json")
    return messages_of(reply.body)


def test_health(box):
    reply = _call(box, "GET", "/health", token=False)
    assert (reply.status, reply.body, reply.headers["cache-control"]) == (204, b"", "no-store")


def test_variables(box):
    reply = _call(box, "GET", "/envs")
    assert reply.status == 200
    assert reply.json.items() >= {"OWN": "ünï", "E2B_SANDBOX": "true", "E2B_SANDBOX_ID": box["sandboxID"]}.items()
    assert _call(box, "GET", "/envs", token=False).status == 401


def test_measurements(box):
    reply = _call(box, "GET", "/metrics")
    assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
    shown = reply.json
    assert set(shown) == {
        *("ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache"),
        *("mem_total_mib", "mem_used_mib", "disk_used", "disk_total"),
    }
    assert abs(shown["ts"] - time.time()) < 60
    assert shown["mem_total"] == shown["mem_total_mib"] << 20 == 1 << 30
    assert 0 < shown["mem_used"] < shown["mem_total"] and 0 < shown["disk_used"] < shown["disk_total"]
    assert _call(box, "GET", "/metrics", token=False).status == 401


def test_browsers_may_call_it(box):
    asks = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,x-access-token",
    }
    # Before any token.
    reply = _call(box, "OPTIONS", "/process.Process/Start", headers=asks, token=False)
    assert reply.status == 204
    assert reply.headers["access-control-allow-origin"] == "*"
    assert reply.headers["access-control-allow-methods"] == "POST"
    assert reply.headers["access-control-allow-headers"] == "content-type,x-access-token"
    assert reply.headers["access-control-max-age"] == "7200"
    actual = _call(box, "POST", "/filesystem.Filesystem/Stat", body={"path": "/"}, headers={"Origin": "https://app.example"})
    assert (actual.status, actual.headers["access-control-allow-origin"], actual.headers["vary"]) == (200, "*", "Origin")
    assert "access-control-allow-credentials" not in actual.headers
    plain = _call(box, "POST", "/filesystem.Filesystem/Stat", body={"path": "/"})
    assert "access-control-allow-origin" not in plain.headers
    assert _call(box, "OPTIONS", "/process.Process/List").status == 405


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Connect-Protocol-Version": "1", "Content-Encoding": "identity", "Accept-Encoding": "identity"}, 200, None),
        ({"Content-Type": "application/json; charset=utf-8"}, 200, None),
        ({"Connect-Protocol-Version": "2"}, 400, "invalid_argument"),
        ({"Content-Encoding": "br"}, 501, "unimplemented"),
        ({"Connect-Timeout-Ms": "12345678901"}, 400, "invalid_argument"),
        ({"Connect-Timeout-Ms": "soon"}, 400, "invalid_argument"),
        ({"Authorization": "Basic c3RyYW5nZXI6"}, 401, "unauthenticated"),
        ({"Authorization": "Bearer whatever"}, 200, None),
    ],
    ids=lambda value: str(value)[:60],
)
def test_headers_of_unary_calls(box, headers, status, code):
    reply = _call(box, "POST", "/filesystem.Filesystem/Stat", body=b'{"path":"/tmp"}', headers=_JSON | headers)
    assert (reply.status, reply.json.get("code")) == (status, code), reply.body
    assert reply.headers["content-type"] == "application/json"


def test_names_and_numbers_of_json_in_all_spellings(box):
    for body in ('{"process":{"pid":"4000000"},"signal":9}', '{"process":{"pid":4000000},"signal":"SIGNAL_SIGKILL","new_field":[1]}'):
        reply = _call(box, "POST", "/process.Process/SendSignal", body=body, headers=_JSON)
        assert (reply.status, reply.json["code"]) == (404, "not_found"), reply.body
    for body in ('{"path":"/","include_entry":true}', '{"path":"/","includeEntry":true,"recursive":null}'):
        reply = _call(box, "POST", "/filesystem.Filesystem/CreateWatcher", body=body, headers=_JSON)
        assert set(reply.json) == {"watcherId"} and len(reply.json["watcherId"]) == 21


def test_methods_and_types_that_are_none(box):
    reply = _call(box, "GET", "/process.Process/List")
    assert (reply.status, reply.headers["allow"], reply.body) == (405, "POST", b"")
    reply = _call(box, "POST", "/process.Process/List", body=b"x", headers={"Content-Type": "text/plain"})
    assert (reply.status, reply.body) == (415, b"") and "application/json" in reply.headers["accept-post"]
    reply = _call(box, "POST", "/process.Process/Nothing", body={})
    assert (reply.status, reply.json["code"]) == (501, "unimplemented")
    assert _call(box, "GET", "/nothing").status == 404


def test_a_stream_in_whole(box):
    process = {"cmd": "/bin/sh", "args": ["-c", "printf out; printf err >&2; exit 3"]}
    first, *data, last, end = _stream(box, "Start", {"process": process}, Accept_Encoding="zstd,gzip,br")
    assert set(first["event"]["start"]) == {"pid"}
    assert sorted(str(message["event"]["data"]) for message in data) == ["{'stderr': 'ZXJy'}", "{'stdout': 'b3V0'}"]
    assert last == {"event": {"end": {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}}}
    assert end == {}


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Connect_Timeout_Ms": "0"}, "deadline_exceeded"),
        ({"Connect_Timeout_Ms": "300"}, "deadline_exceeded"),
        ({"Connect_Timeout_Ms": "-5"}, "invalid_argument"),
        ({"Authorization": "Basic c3RyYW5nZXI6"}, "unauthenticated"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_errors_of_a_stream_ride_its_end(box, headers, code):
    messages = _stream(box, "Start", {"process": {"cmd": "/bin/sleep", "args": ["300"]}}, **headers)
    assert messages[-1]["error"]["code"] == code
    assert not [message for message in messages if "end" in message.get("event", {})]


def test_keepalives_in_silence(box):
    # The interval is in seconds; nonsense means the default, and zero is no flood.
    quiet = {"process": {"cmd": "/bin/sleep", "args": ["2.5"]}}
    alive = {"event": {"keepalive": {}}}
    assert _stream(box, "Start", quiet, Keepalive_Ping_Interval="1").count(alive) >= 2
    assert _stream(box, "Start", quiet, Keepalive_Ping_Interval="soon").count(alive) == 0
    assert _stream(box, "Start", quiet, Keepalive_Ping_Interval="0").count(alive) < 100


def test_uploads_say_where_they_went(box):
    octets = {"Content-Type": "application/octet-stream"}
    reply = _call(box, "POST", "/files?path=a%2Bb+c%2Fd.txt&username=root", body=b"x", headers=octets, chunked=True)
    assert (reply.status, reply.json) == (200, [{"path": "/root/a+b c/d.txt", "name": "d.txt", "type": "file"}])
    assert _call(box, "POST", "/files", body=b"x", headers=octets).status == 400
    assert _call(box, "POST", "/files?path=x", body=b"x", headers=_JSON).status == 400
    assert _call(box, "POST", "/files?path=x", body=b"x", headers=octets | {"Content-Encoding": "br"}).status == 400
    assert _call(box, "POST", "/files?path=x&username=nobody-here", body=b"x", headers=octets).status == 401
    reply = _call(box, "GET", "/files?path=demo/test.txt")
    assert (reply.status, reply.json["message"]) == (404, "path '/home/user/demo/test.txt' does not exist")

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Calls to a sandbox's agent that are none: control paths, tokens, messages, processes of others."""

import gzip
import json

import pytest
from harness import API_KEY
from hostile import AGENT_PORT, BYTES, JSON, STREAM, call, error_of, raw, statuses, to_agent, token_of
from streams import envelope

pytestmark = pytest.mark.usefixtures("server_is_unharmed")

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
    by_host = f"Host: {AGENT_PORT}-{box.sandbox_id}.e2b.app\r\n".encode()
    odd_host = f"Host: 0{AGENT_PORT}-{box.sandbox_id.upper()}-x.E2B.App.:80\r\n".encode()
    for method in (b"POST", b"PUT", b"GET", b"OPTIONS", b"BREW"):
        for routing in (to_agent(box), by_host, odd_host):
            if routing != to_agent(box) and b"://" in target:
                continue  # there the target names the host
            received = raw(method + b" " + target + b" HTTP/1.1\r\n" + routing + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}")
            assert error_of(received) == 404, (method, routing, received)
            # Without a sandbox's id: the answer is the gateway's, not the agent's.
            assert json.loads(received.partition(b"\r\n\r\n")[2]).keys() == {"message", "path", "code"}, received


@pytest.mark.parametrize("port", ["+49983", "115519", "0xC33F", "49983.0", "49983,49983", "-1", "0", "65536", "\u00b2"])
def test_ports_that_are_none(box, port):
    received = raw(f"GET /health HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: {box.sandbox_id}\r\nE2b-Sandbox-Port: {port}\r\nConnection: close\r\n\r\n".encode())
    assert statuses(received) == [400]


_ROUTES = [("GET", "/metrics"), ("GET", "/envs"), ("GET", "/files?path=/etc/passwd"), ("POST", "/files?path=/tmp/stranger"), ("POST", "/files/compose"), ("HEAD", "/files?path=/etc/passwd"), ("GET", "//files?path=/etc/passwd"), ("GET", "/%66iles?path=/etc/passwd"), ("POST", "/nothing")]
_ROUTES += [("POST", f"/process.Process/{name}") for name in ("List", "Start", "Connect", "Update", "SendInput", "StreamInput", "SendSignal", "CloseStdin")]
_ROUTES += [("POST", f"/filesystem.Filesystem/{name}") for name in ("Stat", "ListDir", "MakeDir", "Move", "Remove", "WatchDir", "CreateWatcher", "GetWatcherEvents", "RemoveWatcher")]


@pytest.mark.parametrize("method, path", _ROUTES)
def test_agent_wants_its_token_everywhere(box, method, path):
    token = token_of(box)
    for wrong in ({}, {"X-Access-Token": ""}, {"X-Access-Token": token[:-1]}, {"X-Access-Token": token + "0"}, {"X-Access-Token": API_KEY}, {"Authorization": "Bearer " + token}):
        for content in (JSON, STREAM, BYTES):
            reply = call(box, method, path, body=b"{}" if method == "POST" else None, headers=content | wrong, token=False)
            assert reply.status == 401, (wrong, content, reply)
    assert not box.files.exists("/tmp/stranger")


def test_signatures_that_are_none(box):
    for query, status in (("", 401), ("&signature=", 401), ("&signature=v1_x", 401), ("&signature=v1_x&signature_expiration=abc", 400), ("&signature=v1_x&signature_expiration=99999999999999999999", 400)):
        assert call(box, "GET", "/files?path=/etc/passwd" + query, token=False).status == status, query


@pytest.mark.parametrize("target", ["/init", "//init", "/init?x=1"])
@pytest.mark.parametrize("body", ["{}", '{"accessToken":"mine"}', '{"envVars":{"A":"B"}}', ""])
def test_sandbox_cannot_initialise_its_own_agent(box, target, body):
    box.files.write("/tmp/body", body)
    code = box.commands.run(f"curl -s -o /dev/null -w '%{{http_code}}' --path-as-is -X POST -H 'Content-Type: application/json' --data-binary @/tmp/body 'http://localhost:49983{target}'", user="root").stdout
    assert code in ("401", "404"), code
    assert call(box, "GET", "/envs", token=False).status == 401
    assert "A" not in call(box, "GET", "/envs").json


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
    assert call(box, "POST", "/filesystem.Filesystem/Stat", body, JSON).json["code"] == code


@pytest.mark.parametrize("data, code", [(gzip.compress(b" " * 200_000_000), "resource_exhausted"), (b"no gzip", "invalid_argument"), (gzip.compress(b'{"path":"/tmp"}')[:-5], "invalid_argument")], ids=["bomb", "noise", "cut"])
def test_compressed_calls_that_are_none(box, data, code):
    assert call(box, "POST", "/filesystem.Filesystem/Stat", data, JSON | {"Content-Encoding": "gzip"}).json["code"] == code


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
        (envelope({"process": {"cmd": "a\0b"}}), "invalid_argument"),
        (envelope({"process": {"cmd": "/bin/true", "envs": {"a": "b\0"}}}), "invalid_argument"),
        (envelope({"process": {"cmd": "/bin/true", "cwd": "/no/such"}}), "invalid_argument"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_streaming_calls_that_are_none(box, body, code):
    reply = call(box, "POST", "/process.Process/Start", body, STREAM)
    assert reply.status == 200 and reply.body[0] == 2
    assert json.loads(reply.body[5:])["error"]["code"] == code


@pytest.mark.parametrize("pid", [0, 1, 2, 99999, 2**32 - 1, 2**32, -1])
def test_only_the_agents_own_processes_get_signals_and_input(box, pid):
    expected = ("not_found",) if 0 <= pid < 2**32 else ("invalid_argument",)
    for signal in ("SIGNAL_SIGKILL", "SIGNAL_SIGTERM"):
        assert call(box, "POST", "/process.Process/SendSignal", {"process": {"pid": pid}, "signal": signal}, JSON).json["code"] in expected
    assert call(box, "POST", "/process.Process/SendInput", {"process": {"pid": pid}, "input": {"stdin": "eA=="}}, JSON).json["code"] in expected


def test_foreign_process_gets_no_signal(box):
    pid = int(box.commands.run("setsid sleep 61 >/dev/null 2>&1 </dev/null & echo $!").stdout)
    assert call(box, "POST", "/process.Process/SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"}, JSON).json["code"] == "not_found"
    box.commands.run(f"kill {pid}")

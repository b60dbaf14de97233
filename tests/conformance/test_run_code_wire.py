# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Port 49999 as bytes: the stream of /execute, error bodies, CORS, slow readers."""

import itertools
import json
import re
import socket
import threading
import time
import urllib.parse
import uuid

import e2b_code_interpreter
import pytest
from harness import SANDBOX_URL
from interpreter.wire import PORT, Cut, Execute, call, execute

pytestmark = pytest.mark.wire

_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"


@pytest.fixture(scope="module")
def box():
    """One sandbox for all tests of this file: each uses contexts of its own, or leaves no state."""
    sandbox = e2b_code_interpreter.Sandbox.create(timeout=900, secure=False)
    yield sandbox
    sandbox.kill()


def _new_context(box, **fields):
    reply = call(box, "POST", "/contexts", fields)
    assert reply.status == 200, reply.body
    return reply.json["id"]


def _events(box, code, **fields):
    with execute(box, code, **fields) as stream:
        return list(stream.events())


def test_the_stream_line_by_line(box):
    stream = Execute(box, {"code": "print('ä😀\\u2028')\n1/0", "context_id": _new_context(box)})
    status, headers = stream.head()
    assert status == 200
    assert headers["transfer-encoding"] == "chunked"
    assert "content-type" not in headers
    lines = b"".join(stream.chunks()).split(b"\n")
    assert lines.pop() == b""
    for line in lines:
        # Never empty, and nothing above 0x7e.
        assert line and all(0x20 <= byte <= 0x7E for byte in line), line
    assert b"\\u00e4\\ud83d\\ude00\\u2028" in lines[1]
    events = [json.loads(line) for line in lines]
    assert events[0] == {"type": "number_of_executions", "execution_count": 1}
    assert list(events[1]) == ["type", "text", "timestamp"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00", events[1]["timestamp"])
    assert (events[1]["type"], events[1]["text"]) == ("stdout", "ä😀\u2028\n")
    assert list(events[2]) == ["type", "name", "value", "traceback"]
    assert all(isinstance(value, str) for value in events[2].values())
    assert events[3:] == [{"type": "end_of_execution"}]


def test_each_line_is_a_chunk_of_its_own(box):
    # As the interpreter sends it: a proxy may cut anew.
    code = "import time\nfor i in range(3):\n    print(i)\n    time.sleep(0.1)\nx"
    raw = box.commands.run(f"curl -s --raw -d '{json.dumps({'code': code})}' http://127.0.0.1:49999/execute").stdout
    *pieces, end = re.split(r"(?:\r\n)?^[0-9a-f]+\r\n", raw, flags=re.M)[1:]
    assert end == "\r\n"
    assert len(pieces) == 6 and all(re.fullmatch(r"\{.*\}\n", piece) for piece in pieces), pieces


def test_results_name_only_what_they_have(box):
    events = _events(box, "7")
    assert events[1] == {"type": "result", "text": "7", "extra": {}, "is_main_result": True}


def test_the_head_comes_before_the_turn_and_keepalives_follow(box):
    context = _new_context(box)
    with execute(box, "import time; time.sleep(7)", context_id=context) as first:
        assert next(first.events())["type"] == "number_of_executions"
        started = time.monotonic()
        with execute(box, "print('mine')", context_id=context) as second:
            assert time.monotonic() - started < 4, "the head waited for the turn"
            kinds = [event["type"] for event in second.events()]
        assert kinds == ["keepalive", "number_of_executions", "stdout", "end_of_execution"]
        assert [event["type"] for event in first.events()] == ["keepalive", "end_of_execution"]


@pytest.mark.parametrize(
    ("body", "kind", "location"),
    [
        (b"", "json_invalid", ["body"]),
        (b"{", "json_invalid", ["body"]),
        (b'{"code": "1"} x', "json_invalid", ["body"]),
        (b'{"code": "\xff"}', "json_invalid", ["body"]),
        (b"[" * 100_000, "json_invalid", ["body"]),
        (b"[]", "model_attributes_type", ["body"]),
        (b"null", "model_attributes_type", ["body"]),
        ({}, "missing", ["body", "code"]),
        ({"code": None}, "string_type", ["body", "code"]),
        ({"code": 1}, "string_type", ["body", "code"]),
        ({"code": "1", "language": 5}, "string_type", ["body", "language"]),
        ({"code": "1", "context_id": []}, "string_type", ["body", "context_id"]),
        ({"code": "1", "env_vars": []}, "dict_type", ["body", "env_vars"]),
        ({"code": "1", "env_vars": {"A": 1}}, "string_type", ["body", "env_vars"]),
        ({"code": "1", "env_vars": {"A": None}}, "string_type", ["body", "env_vars"]),
        ({"code": "1", "env_vars": {"A=B": "x"}}, "value_error", ["body", "env_vars"]),
        ({"code": "1", "env_vars": {"": "x"}}, "value_error", ["body", "env_vars"]),
        ({"code": "1", "env_vars": {"A": "x\0y"}}, "value_error", ["body", "env_vars"]),
    ],
)
def test_bodies_that_are_refused(box, body, kind, location):
    reply = call(box, "POST", "/execute", body)
    assert (reply.status, reply.headers["content-type"]) == (422, _JSON)
    (detail,) = reply.json["detail"]
    assert (detail["type"], detail["loc"]) == (kind, location)
    assert isinstance(detail["msg"], str) and detail["msg"]


def test_bodies_of_context_requests_that_are_refused(box):
    for body in (b"", b"[]", b"{", {"language": 1}, {"cwd": {}}):
        assert call(box, "POST", "/contexts", body).status == 422


def test_unused_keys_may_be_missing_null_or_empty(box):
    for fields in ({}, dict.fromkeys(("context_id", "language", "env_vars")), {"context_id": "", "language": "", "env_vars": {}}, {"more": [1]}):
        assert [event["type"] for event in _events(box, "print()", **fields)][1:] == ["stdout", "end_of_execution"]


def test_refusals_are_plain_text(box):
    unknown = str(uuid.uuid4())
    for method, path, body, status, text in (
        ("POST", "/execute", {"code": "1", "context_id": "x", "language": "python"}, 400, "Only one of context_id or language can be provided"),
        ("POST", "/execute", {"code": "1", "context_id": unknown}, 404, f"Context {unknown} not found"),
        ("POST", "/execute", {"code": "1", "language": "cobol"}, 500, "Failed to create context: No such kernel: cobol"),
        ("POST", "/execute", {"code": "1", "language": "../x"}, 500, "Failed to create context: No such kernel: ../x"),
        ("POST", "/contexts", {"language": "deno"}, 500, "Failed to create context: No such kernel: deno"),
        ("POST", "/contexts", {"cwd": "/no/such"}, 400, "cwd '/no/such' is not a directory"),
        ("POST", "/contexts", {"cwd": "/etc/passwd"}, 400, "cwd '/etc/passwd' is not a directory"),
        ("POST", f"/contexts/{unknown}/restart", None, 404, f"Context {unknown} not found"),
        ("DELETE", f"/contexts/{unknown}", None, 404, f"Context {unknown} not found"),
    ):
        reply = call(box, method, path, body)
        assert (reply.status, reply.body.decode(), reply.headers["content-type"]) == (status, text, _TEXT), path


def test_other_paths_and_methods(box):
    for method, path, status in (
        ("GET", "/nowhere", 404),
        ("GET", "/", 404),
        ("GET", "/execute", 405),
        ("DELETE", "/contexts", 405),
        ("GET", "/contexts/x", 405),
        ("POST", "/health", 405),
    ):
        assert call(box, method, path).status == status, path


def test_health_and_unknown_parameters(box):
    reply = call(box, "GET", "/health?source=ci")
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, b'"OK"', _JSON)
    assert call(box, "POST", "/execute?source=ci", {"code": "1"}).status == 200


def test_context_answers(box):
    reply = call(box, "POST", "/contexts", {})
    assert (reply.status, reply.headers["content-type"]) == (200, _JSON)
    assert list(reply.json) == ["id", "language", "cwd"]
    assert (reply.json["language"], reply.json["cwd"]) == ("python", "/home/user")
    assert str(uuid.UUID(reply.json["id"])) == reply.json["id"]
    assert call(box, "GET", "/contexts").json[-1] == reply.json
    for method, path in (("POST", f"/contexts/{reply.json['id']}/restart"), ("DELETE", f"/contexts/{reply.json['id']}")):
        answer = call(box, method, path)
        assert (answer.status, answer.body, answer.headers["content-type"]) == (200, b"null", _JSON)


def test_any_page_may_ask(box):
    asks = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,x-access-token"}
    reply = call(box, "OPTIONS", "/execute", headers=asks)
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == "*"
    assert "POST" in reply.headers["access-control-allow-methods"]
    assert {"content-type", "x-access-token"} <= set(reply.headers["access-control-allow-headers"].replace(" ", "").split(","))
    reply = call(box, "POST", "/execute", {"code": "1"}, headers={"Origin": "https://a.example"})
    assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, "*")
    assert call(box, "GET", "/contexts", headers={"Origin": "https://a.example"}).headers["access-control-allow-origin"] == "*"


def test_a_chunked_request_and_requests_in_a_row(box):
    assert call(box, "POST", "/execute", {"code": "1"}, chunked=True).status == 200
    target = urllib.parse.urlsplit(SANDBOX_URL)
    body = json.dumps({"code": "print(5)"})
    head = f"POST /execute HTTP/1.1\r\nHost: x\r\nE2b-Sandbox-Id: {box.sandbox_id}\r\nE2b-Sandbox-Port: {PORT}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((target.hostname, target.port), timeout=30) as connection:
        reader = connection.makefile("rb")
        for _ in range(5):
            connection.sendall((head + body).encode())
            answer = b""
            while not answer.endswith(b"0\r\n\r\n"):
                answer += reader.readline()
            assert answer.startswith(b"HTTP/1.1 200") and answer.count(b"end_of_execution") == 1


@pytest.mark.parametrize("flush", [False, True])
def test_no_line_is_lost(box, flush):
    events = _events(box, f"for i in range(100_000): print(i, flush={flush})")
    text = "".join(event["text"] for event in events if event["type"] == "stdout")
    assert text == "".join(f"{i}\n" for i in range(100_000))
    assert {event["type"] for event in events} == {"number_of_executions", "stdout", "end_of_execution"}


@pytest.mark.limit(180)
def test_a_slow_reader_slows_the_code_and_nobody_else(box):
    slow, other = _new_context(box), _new_context(box)
    total = 40_000_000
    code = f"import os\nfor _ in range({total // 1000}): print('y' * 999)\nopen('/tmp/slow-done', 'w').close();"
    stream = Execute(box, {"code": code, "context_id": slow}, receive_buffer=8192)
    stream.head()
    events = stream.events()
    size = sum(len(event.get("text", "")) for event in itertools.islice(events, 20))
    time.sleep(1)
    # The code waits for its reader, somewhere between its buffers.
    assert not box.files.exists("/tmp/slow-done")
    assert [event["type"] for event in _events(box, "print(1)", context_id=other)][1:] == ["stdout", "end_of_execution"]
    assert _interpreter_rss(box) < 64 << 20
    for event in events:
        size += len(event.get("text", ""))
        last = event
    assert (size, last["type"]) == (total, "end_of_execution")
    stream.close()


@pytest.mark.parametrize(("method", "path", "error"), [("POST", "/restart", "ContextRestarting"), ("DELETE", "", "UnexpectedEndOfExecution")])
def test_a_context_is_ended_behind_a_reader_that_stopped(box, method, path, error):
    context = _new_context(box)
    stream = Execute(box, {"code": "while True: print('y' * 999)", "context_id": context}, receive_buffer=8192)
    stream.head()
    events = stream.events()
    next(events)
    # Until the buffers on the way are full.
    time.sleep(2)
    started = time.monotonic()
    assert call(box, method, f"/contexts/{context}{path}").status == 200
    assert time.monotonic() - started < 15
    *_, failed, end = events
    assert (failed["name"], end["type"]) == (error, "end_of_execution")
    stream.close()


def _interpreter_rss(box):
    """Bytes of resident memory of the interpreter itself."""
    script = "grep -h VmRSS $(dirname $(grep -lx alcove-interp /proc/[0-9]*/comm))/status"
    return int(box.commands.run(script, user="root").stdout.split()[1]) * 1024


def test_reset_by_the_client_frees_the_context(box):
    context = _new_context(box)
    for reset in (False, True):
        stream = Execute(box, {"code": "import time\nwhile True: time.sleep(0.01)", "context_id": context})
        stream.head()
        assert next(stream.events())["type"] == "number_of_executions"
        stream.close(reset=reset)
        assert [event["type"] for event in _events(box, "print(1)", context_id=context)][1:] == ["stdout", "end_of_execution"]


def test_a_killed_sandbox_cuts_the_stream():
    box = e2b_code_interpreter.Sandbox.create(timeout=120, secure=False)
    stream = Execute(box, {"code": "import time; print('on'); time.sleep(300)"})
    stream.head()
    events = stream.events()
    assert [next(events)["type"] for _ in range(2)] == ["number_of_executions", "stdout"]
    threading.Timer(0.3, box.kill).start()
    with pytest.raises(Cut):
        list(events)
    assert call(box, "GET", "/health").status == 502

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Logs of a sandbox by plain HTTP; no SDK has them. The CLI's view is in test_cli.py."""

import datetime
import json
import re
import time

import e2b
import pytest
from harness import TIMESTAMP, api, assert_error, eventually, to_sandbox
from memory import watch_memory

pytestmark = pytest.mark.wire

_CREATED = "sandbox created from template base"
_KILLED = "sandbox killed by request"


@pytest.fixture
def box():
    with e2b.Sandbox.create(timeout=120) as sandbox:
        yield sandbox


def _get(box, query="", generation="/v2", **options):
    sandbox_id = box if isinstance(box, str) else box.sandbox_id
    return api("GET", f"{generation}/sandboxes/{sandbox_id}/logs{query}", **options)


def _entries(box, query="?direction=forward"):
    reply = _get(box, query)
    assert reply.status == 200, reply.body
    return reply.json["logs"]


def _messages(box, query="?direction=forward"):
    return [entry["message"] for entry in _entries(box, query)]


def _milliseconds(entry):
    return int(datetime.datetime.fromisoformat(entry["timestamp"]).timestamp() * 1000)


def test_life_and_processes(box):
    box.commands.run("echo to be seen by nobody", envs={"SECRET": "hidden-value"})
    with pytest.raises(e2b.CommandExitException):
        box.commands.run("exit 3")
    background = box.commands.run("sleep 100", background=True)
    background.kill()
    box.set_timeout(200)
    entries = _entries(box)
    for entry in entries:
        assert set(entry) == {"timestamp", "level", "message", "fields"}
        assert TIMESTAMP.fullmatch(entry["timestamp"])
        assert entry["level"] in ("debug", "info", "warn", "error")
        assert all(isinstance(value, str) for value in entry["fields"].values())
    assert [entry["timestamp"] for entry in entries] == sorted(entry["timestamp"] for entry in entries)
    assert entries[0]["message"] == _CREATED

    processes = [entry for entry in entries if entry["fields"]["logger"] == "process"]
    starts = [entry for entry in processes if entry["fields"]["event_type"] == "process_start"]
    ends = {entry["fields"]["pid"]: entry for entry in processes if entry["fields"]["event_type"] == "process_end"}
    assert [start["fields"]["command"] for start in starts] == [
        "/bin/bash -l -c echo to be seen by nobody",
        "/bin/bash -l -c exit 3",
        "/bin/bash -l -c sleep 100",
    ]
    echo, failed, killed = (ends[start["fields"]["pid"]] for start in starts)
    assert echo["fields"]["exit_code"] == "0"
    assert failed["fields"]["exit_code"] == "3"
    assert failed["message"] == f"process {failed['fields']['pid']} ended with exit code 3"
    assert killed["fields"]["signal"] == "9" and "exit_code" not in killed["fields"]
    assert killed["fields"]["pid"] == str(background.pid)
    assert any(entry["fields"]["event_type"] == "sandbox_timeout_set" for entry in entries)
    # Neither the environment nor the output.
    text = json.dumps(entries)
    assert "hidden-value" not in text
    assert text.count("to be seen by nobody") == 2  # in the message and the field of one line


def test_old_route_has_lines_for_the_cli(box):
    box.commands.run("true")
    reply = _get(box, generation="")
    assert reply.status == 200
    assert set(reply.json) == {"logs", "logEntries"}
    assert reply.json["logEntries"] == _entries(box)
    for line, entry in zip(reply.json["logs"], reply.json["logEntries"], strict=True):
        assert set(line) == {"timestamp", "line"}
        assert line["timestamp"] == entry["timestamp"]
        assert json.loads(line["line"]) == {"level": entry["level"], "message": entry["message"]} | entry["fields"]


def test_following_shows_every_line_once(box):
    seen, start = [], 0
    for round in range(3):
        box.commands.run(f"echo {round}")
        new = _get(box, f"?start={start}", generation="").json["logEntries"]
        assert new
        seen += new
        start = _milliseconds(new[-1]) + 1
        time.sleep(0.005)
    assert seen == _entries(box)
    assert _get(box, f"?start={start}", generation="").json == {"logs": [], "logEntries": []}


def test_limits_and_filters(box):
    for word in ("apple", "banana", "Apple"):
        box.commands.run(f"echo {word}; exit 0")
        time.sleep(0.005)
    forward, backward = _messages(box), _messages(box, "")
    assert forward == backward[::-1]
    assert _messages(box, "?limit=2") == backward[:2]
    assert _messages(box, "?limit=2&direction=forward") == forward[:2]
    assert _messages(box, "?limit=0") == []
    assert [m.split("echo ")[1] for m in _messages(box, "?direction=forward&search=pple;")] == ["apple; exit 0", "Apple; exit 0"]
    assert len(_messages(box, "?search=apple")) == 1
    assert _messages(box, "?search=%C3%BC") == []
    assert _messages(box, "?level=info") == backward
    assert _messages(box, "?level=warn") == []
    middle = _entries(box)[3]
    assert _messages(box, f"?cursor={_milliseconds(middle)}&direction=forward")[0] == middle["message"]
    assert _messages(box, f"?cursor={_milliseconds(middle)}")[0] == middle["message"]
    old = _get(box, "?limit=1", generation="").json
    assert [entry["message"] for entry in old["logEntries"]] == forward[:1]
    assert len(old["logs"]) == 1


def test_log_outlives_the_sandbox(created, other_key):
    sandbox = e2b.Sandbox.create(timeout=120)
    sandbox.commands.run("echo last words; exit 0")
    before = _messages(sandbox)
    assert sandbox.kill()
    assert _messages(sandbox) == [*before, _KILLED]
    assert len(_get(sandbox, generation="").json["logs"]) == len(before) + 1
    for generation in ("", "/v2"):
        assert_error(_get(sandbox, generation=generation, key=other_key), 404, f"sandbox '{sandbox.sandbox_id}' was not found")


async def test_log_says_that_time_was_over(created):
    sandbox_id = created(timeout=1)["sandboxID"]
    assert await eventually(lambda: api("GET", f"/sandboxes/{sandbox_id}").status == 404, within=10)
    last = _entries(sandbox_id)[-1]
    assert last["message"] == "sandbox ended: its timeout was reached"
    assert last["fields"]["kill_reason"] == "timeout"


def test_a_log_is_there_at_every_moment_of_a_kill(created):
    for _ in range(10):
        sandbox_id = created()["sandboxID"]
        assert api("DELETE", f"/sandboxes/{sandbox_id}").status == 204
        assert _messages(sandbox_id) == [_CREATED, _KILLED]


@pytest.mark.limit(120)
def test_only_the_last_thousand_lines_are_kept(box):
    for n in range(550):
        box.commands.run(f"true {n}")
    # 1,000 about processes and the creation.
    assert len(_get(box, "?limit=5000", generation="").json["logs"]) == 1001
    newest = _messages(box, "?limit=1000")
    assert any(message.endswith("true 549") for message in newest)
    assert not any(message.endswith("true 10") for message in newest)


@pytest.mark.limit(120)
def test_long_commands_are_cut(box):
    long = "true " + "ü" * 60000
    box.commands.run("true")
    with watch_memory() as memory:
        for _ in range(300):
            box.commands.run(long)
    entry = next(entry for entry in _entries(box, "") if entry["fields"]["event_type"] == "process_start")
    assert entry["fields"]["command"].startswith("/bin/bash -l -c true üüü")
    assert len(entry["fields"]["command"].encode()) <= 512
    assert entry["fields"]["command"].rstrip("ü") == "/bin/bash -l -c true "
    assert memory.growth("alcove-agent") < 4 << 20, memory


def test_the_journal_is_not_for_clients_nor_for_the_sandbox(box):
    token = api("GET", f"/sandboxes/{box.sandbox_id}").json["envdAccessToken"]
    for path in ("/journal", "//journal", "/%6aournal", "/JOURNAL"):
        reply = to_sandbox("GET", path, box.sandbox_id, headers={"X-Access-Token": token})
        assert reply.status == 404 and "sandboxId" not in reply.json, (path, reply.body)
    inside = box.commands.run(f"curl -s -o /dev/null -w '%{{http_code}}' -H 'X-Access-Token: {token}' localhost:49983/journal").stdout
    assert inside == "401"


def test_unknown_sandboxes():
    for generation in ("", "/v2"):
        assert_error(_get("nonexistingsandbox", generation=generation), 404, "sandbox 'nonexistingsandbox' was not found")
        assert_error(_get("UPPER", generation=generation), 400, "Invalid sandbox ID")
        assert_error(_get("nonexistingsandbox", generation=generation, key=None), 401)
        assert_error(_get("nonexistingsandbox", generation=generation, key="e2b_00"), 401)


def test_refused_queries(created):
    sandbox_id = created()["sandboxID"]
    for query in ("start=x", "start=-1", "limit=-1", "limit=many", "start=%zz"):
        assert_error(_get(sandbox_id, f"?{query}", generation=""), 400)
    for query in ("cursor=x", "limit=1001", "limit=-1", "direction=sideways", "level=LOUD", f"search={'x' * 257}", "search=%zz"):
        assert_error(_get(sandbox_id, f"?{query}"), 400)
        assert re.match("validation error: ", _get(sandbox_id, f"?{query}").message)

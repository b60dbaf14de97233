# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The server stops, dies or is replaced: its sandboxes go on, and nothing else is left."""

import concurrent.futures
import contextlib
import http.client
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
import time

import e2b
import pytest
from harness import raises
from host import patiently
from machine import launcher_of, processes_of_sandbox

# A round of the long tests; the full tier asks for more.
_ROUNDS = int(os.environ.get("ALCOVE_CHAOS_ROUNDS", "3"))
# New ones in each round.
_KEYS = 8
_TICKING = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done"


def _each(function, arguments, threads=16):
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, arguments))


def _begin(sandbox, command):
    """A running command that has printed something."""
    handle = sandbox.commands.run(command, background=True, timeout=0)
    for _ in handle:
        break
    return handle


def _answers(host, sandbox_id):
    sandbox = patiently(lambda: host.connect(sandbox_id))
    assert sandbox.commands.run("echo $((40 + 2))").stdout == "42\n", sandbox_id
    return sandbox


def _output_after(sandbox, pid):
    """The next number that a ticking command prints on a new stream."""
    handle = sandbox.commands.connect(pid)
    try:
        for stdout, _, _ in handle:
            if stdout:
                return int(stdout.split()[0])
    finally:
        handle.disconnect()
    raise AssertionError("the stream ended")


@pytest.mark.limit(300)
@pytest.mark.parametrize("number", range(_ROUNDS))
def test_sigkill_in_the_middle_of_creates_and_commands(host, number):
    before = host.state()
    old = _each(lambda _: host.create(), range(10))
    running = [handle for handles in _each(lambda box: [_begin(box, _TICKING) for _ in range(5)], old) for handle in handles]
    assert len(running) == 50

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        creates = [pool.submit(host.try_create) for _ in range(50)]
        # Every round ends at another point of the creates.
        chance = random.Random(number)
        until, pause = chance.randrange(40), chance.uniform(0, 0.02)
        while sum(create.done() for create in creates) < until:
            time.sleep(0.001)
        time.sleep(pause)
        host.kill()
        answered = {name for create in creates if (name := create.result())}
    assert len(answered) < 50, "all creates were done before the kill: it was not in the middle"
    host.start()

    listed = host.listed()
    assert listed >= answered | {box.sandbox_id for box in old}
    # What the kernel and the disk hold is what the server says, no more and no less.
    now = host.state()
    assert now.cgroups == listed and now.uppers == listed
    assert len(now.namespaces) == len(listed)
    assert list(now.processes.values()).count("alcove-agent") == len(listed)
    _each(lambda name: _answers(host, name), listed)
    for box, handles in zip(old, [running[i : i + 5] for i in range(0, 50, 5)]):
        pids = {process.pid for process in box.commands.list()}
        assert pids == {handle.pid for handle in handles}
        first = _output_after(box, handles[0].pid)
        assert _output_after(box, handles[0].pid) > first > 1

    host.kill_all()
    assert not host.settled(before).difference(before)


@pytest.mark.limit(120)
def test_sigkill_while_starting(host):
    before = host.state()
    box = host.create()
    handle = _begin(box, _TICKING)
    host.kill()
    # Half-made: what a create leaves when it is cut short before its record.
    half_made = host.data / "pool" / "iaaaaaaaaaaaaaaaaaaaa"
    subprocess.run(["btrfs", "-q", "subvolume", "create", half_made], check=True)
    for delay in (0.01, 0.03, 0.06, 0.1, 0.15, 0.25):
        host.begin()
        time.sleep(delay)
        host.kill()
    host.start()
    assert host.listed() == {box.sandbox_id}
    assert host.state().sandboxes() == {box.sandbox_id}
    assert _output_after(box, handle.pid) > 1
    host.kill_all()
    assert not host.settled(before).difference(before)


def test_kills_that_were_cut_short(host):
    before = host.state()
    boxes = _each(lambda _: host.create(), range(20))
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        kills = [pool.submit(box.kill) for box in boxes]
        time.sleep(0.02)
        host.kill()
        ended = {box.sandbox_id for box, kill in zip(boxes, kills) if not kill.exception() and kill.result()}
    host.start()
    listed = host.listed()
    assert not listed & ended
    assert host.state().sandboxes() == listed
    for box in boxes:
        if box.sandbox_id in listed:
            assert box.commands.run("echo here").stdout == "here\n"
        else:
            with raises(e2b.SandboxNotFoundException):
                box.get_info()
    host.kill_all()
    assert not host.settled(before).difference(before)


def test_sandboxes_that_died_while_nobody_was_there_are_404(host):
    before = host.state()
    kept, dead = host.create(), host.create()
    host.kill()
    for pid in processes_of_sandbox(host.data, dead.sandbox_id):
        os.kill(pid, signal.SIGKILL)
    host.start()
    assert host.listed() == {kept.sandbox_id}
    path = f"/sandboxes/{dead.sandbox_id}"
    for method, target, body in (
        ("GET", path, None),
        ("DELETE", path, None),
        ("POST", f"{path}/timeout", {"timeout": 60}),
        ("POST", f"/v2{path}/connect", {}),
    ):
        assert host.api(method, target, body).status == 404, target
    assert not dead.is_running()
    assert kept.commands.run("echo here").stdout == "here\n"
    host.kill_all()
    assert not host.settled(before).difference(before)


@pytest.mark.limit(180)
def test_a_locked_database_does_not_keep_a_server_from_starting(host):
    before = host.state()
    kept, *dead = [host.create() for _ in range(4)]
    paths = [f"/sandboxes/{box.sandbox_id}" for box in dead]
    host.kill()
    for box in dead:
        for pid in processes_of_sandbox(host.data, box.sandbox_id):
            os.kill(pid, signal.SIGKILL)
    # As a backup that hangs: what has died cannot be forgotten.
    with contextlib.closing(sqlite3.connect(host.data / "alcove.db", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        host.begin()
        while not _reachable(host):
            assert host.running and time.monotonic() < begun + 30
            time.sleep(0.1)
        assert kept.commands.run("echo here").stdout == "here\n"
        for path in paths:
            reply = host.api("GET", path)
            assert (reply.status, reply.headers["retry-after"]) == (503, "1"), reply.body
        with raises(e2b.SandboxException, "could not be taken over yet"):
            dead[0].files.read("/etc/hostname")
        database.execute("ROLLBACK")
    deadline = time.monotonic() + 60
    while {host.api("GET", path).status for path in paths} != {404}:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    host.server.wait_until_ready(limit=60)
    assert host.listed() == {kept.sandbox_id}
    host.kill_all()
    assert not host.settled(before, within=30).difference(before)


def _reachable(host):
    try:
        return host.api("GET", "/sandboxes").status == 200
    except (OSError, http.client.HTTPException):
        return False


def _create_with(host, key):
    return host.api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 600}, headers={"Idempotency-Key": key})


@pytest.mark.limit(180)
def test_creates_with_a_key_that_are_repeated_during_kills(host):
    before = host.state()

    def repeat(key, killed):
        """The answers of one key, from the first try to one of the server after the kill."""
        answers = []
        while True:
            last = killed.is_set()
            try:
                reply = _create_with(host, key)
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.05)
                continue
            # Not ready yet, or the first one is still under way. Nothing else may be said.
            if reply.status == 503 or (reply.status == 409 and reply.json["error_code"] == "idempotency_in_progress"):
                time.sleep(0.05)
                continue
            assert reply.status == 201, (reply.status, reply.body)
            answers.append(reply.json["sandboxID"])
            if last:
                return answers
            time.sleep(0.1)

    keys = []
    answers = []
    with concurrent.futures.ThreadPoolExecutor(_KEYS) as pool:
        for number in range(_ROUNDS):
            fresh = [f"chaos-{number}-{each}-{time.time_ns()}" for each in range(_KEYS)]
            killed = threading.Event()
            repeated = [pool.submit(repeat, key, killed) for key in fresh]
            try:
                # Every other kill is one in the middle of the first creates.
                time.sleep(random.Random(number).uniform(*((0, 0.08), (0.05, 0.6))[number % 2]))
                host.kill()
                host.start()
            finally:
                killed.set()
            keys += fresh
            answers += [each.result() for each in repeated]
    assert [len(set(each)) for each in answers] == [1] * len(keys), answers
    ids = [each[0] for each in answers]
    assert len(set(ids)) == len(keys)
    assert [_create_with(host, key).json["sandboxID"] for key in keys] == ids
    # A create that was cut short has left the sandbox that its key is answered with, or nothing.
    assert host.listed() == set(ids)
    _each(lambda name: _answers(host, name), ids)
    assert host.state().sandboxes() == set(ids)
    host.kill_all()
    assert not host.settled(before).difference(before)


def test_create_with_a_key_that_is_cut_short_before_its_record(host):
    before = host.state()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        launcher = launcher_of(host.pid)
        os.kill(launcher, signal.SIGSTOP)
        try:
            first = pool.submit(_create_with, host, "unrecorded")
            deadline = time.monotonic() + 20
            while not _keyed_creates(host, "key = 'unrecorded' AND answered = 0"):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            host.kill()
            assert first.exception() is not None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(launcher, signal.SIGCONT)
    host.start()
    reply = _create_with(host, "unrecorded")
    assert reply.status == 201, reply.body
    assert host.listed() == host.state().sandboxes() == {reply.json["sandboxID"]}
    host.kill_all()
    assert not host.settled(before).difference(before)


def test_create_with_a_key_that_is_cut_short_after_its_record(host):
    reply = _create_with(host, "recorded")
    assert reply.status == 201
    host.kill()
    # As if the kill had come before the answer was kept.
    with contextlib.closing(sqlite3.connect(host.data / "alcove.db", isolation_level=None)) as database:
        database.execute("UPDATE keyed_creates SET answered = 0, answer = '' WHERE key = 'recorded'")
    host.start()
    again = _create_with(host, "recorded")
    assert (again.status, again.body) == (201, reply.body)
    assert host.listed() == {reply.json["sandboxID"]}
    host.kill_all()


def _keyed_creates(host, condition):
    with contextlib.closing(sqlite3.connect(host.data / "alcove.db")) as database:
        return database.execute(f"SELECT count(*) FROM keyed_creates WHERE {condition}").fetchone()[0]


def _agent_of(box):
    """The hash of the agent that the sandbox runs."""
    return box.commands.run("sha256sum /run/alcove/agent", user="root").stdout.split()[0]


def _kept_programs(host):
    """The hashes of the programs that sandboxes run: agents and code interpreters."""
    return {path.name for path in (host.data / "agents").iterdir()}


@pytest.mark.limit(120)
def test_replaced_by_a_newer_program(fresh_host, newer_program):
    host = fresh_host
    # The last one is still there when the next server is up, however busy the machine.
    box, brief, soon = host.create(), host.create(timeout=2), host.create(timeout=20)
    handle = _begin(box, _TICKING)
    box.files.write("/tmp/kept", "as it was")
    traffic = host.create(network={"allow_public_traffic": False})
    old_agent = _agent_of(box)
    before = _kept_programs(host)
    assert old_agent in before
    assert host.stop() < 5
    assert host.state().sandboxes() >= {box.sandbox_id, brief.sandbox_id}
    time.sleep(2.5)

    host.start(newer_program)
    # Its time was over while nobody was there.
    assert host.listed() == {box.sandbox_id, soon.sandbox_id, traffic.sandbox_id}
    with raises(e2b.SandboxNotFoundException):
        brief.get_info()
    # The old handle, with its token, goes on; and a new one works.
    assert box.files.read("/tmp/kept") == "as it was"
    assert host.connect(box.sandbox_id).commands.run("cat /tmp/kept").stdout == "as it was"
    first = _output_after(box, handle.pid)
    assert _output_after(box, handle.pid) > first
    assert traffic.traffic_access_token == host.connect(traffic.sandbox_id).traffic_access_token
    # New sandboxes run the new agent, old ones keep theirs.
    assert before < _kept_programs(host)
    assert {_agent_of(host.create())} == _kept_programs(host) - before
    assert _agent_of(box) == old_agent
    # Expiry goes on.
    deadline = time.monotonic() + 24
    while soon.is_running() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not soon.is_running()
    assert box.is_running()
    host.kill_all()
    # Nobody runs the old agent any more.
    host.stop()
    host.start()
    assert old_agent not in _kept_programs(host)


def test_stop_lets_creates_under_way_finish(host):
    before = host.state()
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        creates = [pool.submit(host.try_create) for _ in range(40)]
        while sum(create.done() for create in creates) < 10:
            time.sleep(0.001)
        took = host.stop()
        answered = {name for create in creates if (name := create.result())}
    assert took < 10
    # The server is down and has said what it left: nothing else runs.
    assert answered and host.state().sandboxes() == answered
    host.start()
    assert host.listed() == answered
    host.kill_all()
    assert not host.settled(before).difference(before)


@pytest.mark.limit(120)
def test_launcher_that_is_killed(host):
    before = host.state()
    boxes = [host.create() for _ in range(3)]
    handles = [_begin(box, _TICKING) for box in boxes]
    for _ in range(_ROUNDS):
        host.create()
        killed = host.kill_launcher()
        assert killed
        created = host.create()
        assert created.commands.run("echo up").stdout == "up\n"
        assert launcher_of(host.pid) not in (killed, None)
        # In the middle of creates: each is answered, because the next launcher is asked again.
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            creates = [pool.submit(host.try_create) for _ in range(10)]
            time.sleep(0.1)
            host.kill_launcher()
            assert all(create.result() for create in creates)
        assert host.state().sandboxes() == host.listed()
    for box, handle in zip(boxes, handles):
        first = _output_after(box, handle.pid)
        assert _output_after(box, handle.pid) > first
    host.kill_all()
    assert not host.settled(before).difference(before)


@pytest.mark.limit(120)
def test_backup_and_restore_as_documented(fresh_host, tmp_path):
    """docs/operations.md: the database and `env` are enough to get keys and tokens back."""
    host = fresh_host
    box = host.create()
    reply = host.api("POST", "/v2/sandboxes", {"templateID": "base"}, headers={"Idempotency-Key": "kept"})
    assert reply.status == 201
    host.stop()
    key = host.options["api_key"]
    for path in [*host.data.glob("alcove.db*"), host.data / "env"]:
        shutil.copy(path, tmp_path)
    # Sandboxes went on meanwhile.
    host.start()
    assert box.commands.run("echo here").stdout == "here\n"
    # A create that was answered once is not carried out again.
    again = host.api("POST", "/v2/sandboxes", {"templateID": "base"}, headers={"Idempotency-Key": "kept"})
    assert (again.status, again.json) == (201, reply.json)
    host.kill_all()
    host.stop()
    host.server.admin("end-all")

    for path in host.data.iterdir():
        if path.name != "owner":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in tmp_path.iterdir():
        shutil.copy(path, host.data)
    host.start()
    assert host.options["api_key"] == key
    assert host.listed() == set()
    assert host.create().commands.run("echo restored").stdout == "restored\n"

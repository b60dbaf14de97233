# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""docs/errors.md, of a server that is in trouble: what it answers then, and whether it lets clients
repeat the request by themselves."""

import concurrent.futures
import contextlib
import os
import signal
import sqlite3
import time

import pytest
from error_rows import assert_is
from harness import request
from host import Host
from machine import launcher_of

# What the test of the page (tests/docs/test_errors.py) leaves to this file.
PROVOKED_HERE = {
    "The create with this Idempotency-Key is still under way.",
    "The server does not know whether the create with this Idempotency-Key succeeded: list your sandboxes, then use another key.",
    "Failed to place sandbox: it could not be started; the server's log says why",
    "Failed to place sandbox: <why>",
    "The server is not ready yet: <what>",
    "Not ready yet: <what>",
    "<doing> failed; the server's log says why",
}
_BODY = {"templateID": "base", "timeout": 600}
# Reserves instead of writing, so that it takes no time.
_FILL = "i=0; for size in 64M 1M; do while fallocate -l $size /tmp/fill-$((i+=1)); do :; done; done 2>&1; true"


def _create(host, key=None):
    return host.api("POST", "/v2/sandboxes", _BODY, headers={"Idempotency-Key": key} if key else None)


@contextlib.contextmanager
def _stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def _store_is_busy(host):
    """Another program writes to the database, for longer than the server waits for it."""
    with contextlib.closing(sqlite3.connect(host.data / "alcove.db", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            database.execute("ROLLBACK")


@pytest.mark.limit(90)
def test_create_whose_outcome_nobody_knows(host):
    with concurrent.futures.ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as busy:
        with _stopped(launcher_of(host.pid)):
            first = pool.submit(_create, host, "lost")
            # Until the server has taken note of the key; asking earlier would be the create itself.
            time.sleep(1)
            assert_is("The create with this Idempotency-Key is still under way.", _create(host, "lost"))
            busy.enter_context(_store_is_busy(host))
        # The store takes neither the sandbox nor the news that there is none.
        assert_is("Failed to place sandbox: it could not be started; the server's log says why", first.result())
    for _ in range(2):
        reply = _create(host, "lost")
        assert_is(
            "The server does not know whether the create with this Idempotency-Key succeeded: list your sandboxes, then use another key.",
            reply,
        )
    assert _create(host, "another").status == 201
    # The next start finds out.
    host.kill()
    host.start()
    assert _create(host, "lost").status == 201
    host.kill_all()


def test_create_that_fails_here_is_not_repeated(host):
    before = host.state()
    agents = host.data / "agents"
    agents.rename(host.data / "agents-away")
    try:
        reply = _create(host)
    finally:
        (host.data / "agents-away").rename(agents)
    assert_is("Failed to place sandbox: it could not be started; the server's log says why", reply)
    assert str(host.data) not in reply.message
    assert not host.settled(before).difference(before)
    assert _create(host).status == 201
    host.kill_all()


def test_create_that_cannot_be_recorded(host):
    before = host.state()
    with _store_is_busy(host):
        reply = _create(host)
    assert_is("Failed to place sandbox: it could not be started; the server's log says why", reply)
    assert host.listed() == set()
    assert not host.settled(before).difference(before)


def test_failure_of_the_store_is_told_without_details(host):
    box = _create(host).json["sandboxID"]
    with _store_is_busy(host):
        reply = host.api("POST", f"/sandboxes/{box}/timeout", {"timeout": 100})
    assert_is("<doing> failed; the server's log says why", reply)
    assert reply.message == f"setting the timeout of sandbox {box} failed; the server's log says why"
    assert host.api("POST", f"/sandboxes/{box}/timeout", {"timeout": 100}).status == 204
    host.kill_all()


@pytest.mark.limit(120)
def test_no_room_in_the_pool(small_pool_host):
    host = small_pool_host
    # Each may have half of what is free when it is created.
    for box in [host.create(), host.create()]:
        box.commands.run(_FILL, timeout=50)
    reply = _create(host)
    assert_is("Failed to place sandbox: <why>", reply)
    assert reply.message == "Failed to place sandbox: the disk pool is nearly full: kill sandboxes or enlarge it"
    host.kill_all()


def test_server_that_builds_its_templates(tmp_path):
    folder = tmp_path / "templates" / "base"
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text('name = "base"\n[from]\ndebian = "bookworm"\n')
    host = Host(templates=(tmp_path / "templates",), layers=tmp_path / "layers")
    try:
        host.begin()
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError, KeyError):
                health = request("GET", "/health", url=host.options["api_url"])
                break
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert_is("Not ready yet: <what>", health)
        assert_is("The server is not ready yet: <what>", _create(host))
        assert host.api("GET", "/v2/sandboxes").json == []
    finally:
        host.close()

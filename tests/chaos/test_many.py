# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Many sandboxes and many connections at once; afterwards the machine is as it was."""

import concurrent.futures
import contextlib
import resource
import socket
import time
import urllib.parse

import pytest
from machine import launcher_of, usage_of

_SANDBOXES = 200
_CONNECTIONS = 10_000


def _each(function, arguments):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(function, arguments))


@pytest.mark.limit(300)
def test_two_hundred_sandboxes_and_then_none(host):
    # The first ones fill the pools, which stay.
    _each(lambda _: host.create(), range(20))
    host.kill_all()
    before = _at_rest(host)
    used, launcher = usage_of(host.pid), usage_of(launcher_of(host.pid))

    boxes = _each(lambda _: host.create(), range(_SANDBOXES))
    assert len(host.listed()) == _SANDBOXES
    assert len(host.state().sandboxes()) == _SANDBOXES
    answers = _each(lambda box: box.commands.run(f"echo {box.sandbox_id}; hostname").stdout.split()[0], boxes)
    assert answers == [box.sandbox_id for box in boxes]
    during = usage_of(host.pid)

    pid = host.pid
    host.kill_all()
    assert not host.settled(before).difference(before)
    assert host.pid == pid and host.running
    # Connections of this test's client are the only ones that may be more.
    assert _eventually(lambda: usage_of(pid).descriptors < used.descriptors + 100), (used, during, usage_of(pid))
    assert usage_of(pid).memory < used.memory + (32 << 20), (used, during, usage_of(pid))
    # Those of the pool, which is filled to 8 when half of it is gone: it may have had 3 fewer before.
    assert _eventually(lambda: usage_of(pid).networks <= used.networks + 3), (used, during, usage_of(pid))
    assert usage_of(launcher_of(pid)).descriptors <= launcher.descriptors
    assert usage_of(launcher_of(pid)).memory < launcher.memory + (8 << 20)
    assert host.create().commands.run("echo again").stdout == "again\n"


def _at_rest(host):
    """The state when what was killed is cleaned up."""
    assert _eventually(lambda: not host.state().sandboxes())
    return host.state()


def _eventually(probe, within=15):
    deadline = time.monotonic() + within
    while not probe():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.limit(180)
def test_ten_thousand_idle_connections(host):
    own, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert own >= _CONNECTIONS + 500, "conftest.py raises it"
    box = host.create()
    pid, before = host.pid, usage_of(host.pid)
    target = urllib.parse.urlsplit(host.options["api_url"])
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        slow = []
        for number in range(_CONNECTIONS):
            connection = stack.enter_context(socket.create_connection((target.hostname, target.port), timeout=30))
            if number % 10 == 0:
                # A tenth of them begins a request and goes on with it a byte at a time.
                connection.sendall(b"GET /health HTTP/1.1\r\nX: ")
                slow.append(connection)
        during = usage_of(pid)
        assert during.descriptors > before.descriptors + _CONNECTIONS * 0.9 - len(slow)
        assert during.memory < before.memory + (256 << 20), (before, during)
        # Everybody else is served as ever.
        assert box.commands.run("echo served").stdout == "served\n"
        assert host.create().commands.run("echo served").stdout == "served\n"
        # The slow ones are given up, whatever they send; the idle ones may stay.
        while time.monotonic() < begun + 14 or not _all_ended(slow):
            assert time.monotonic() < begun + 60, "a slow client still has its connection"
            for connection in slow:
                with contextlib.suppress(OSError):
                    connection.send(b"x", socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
            time.sleep(1)
        assert host.api("GET", "/health").status == 200
    assert _eventually(lambda: usage_of(pid).descriptors < before.descriptors + 100, within=30), usage_of(pid)
    assert usage_of(pid).memory < before.memory + (64 << 20), (before, usage_of(pid))
    assert host.running


def _all_ended(connections):
    for connection in connections:
        connection.setblocking(False)
        try:
            # The refusal, then the end.
            while connection.recv(4096):
                pass
        except BlockingIOError:
            return False
        except ConnectionError:
            pass
    return True

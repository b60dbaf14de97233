# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The relay dies or hangs under many sandboxes: its successor knows them all. That connections
outlive the server is tested in tests/network, where there is an internet."""

import concurrent.futures
import os
import resource
import signal
import time

import pytest
from machine import relays_of, usage_of

_FULL = int(os.environ.get("ALCOVE_CHAOS_ROUNDS", "3")) > 3
_SANDBOXES = 200 if _FULL else 40
# Descriptors of the relay for each: network, queue, two listeners.
_DESCRIPTORS_EACH = 4
# Refused by the relay at once; without a relay the first packet waits for one.
_KNOCK = "timeout 5 bash -c 'echo > /dev/tcp/10.1.2.3/80'; echo $?"


def _each(function, arguments):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        return list(pool.map(function, arguments))


def _knows(box):
    """Whether the relay serves the sandbox's network."""
    done = box.commands.run(_KNOCK, timeout=30)
    return "No route to host" in done.stderr and done.stdout == "1\n"


def _eventually(probe, within):
    deadline = time.monotonic() + within
    while not (value := probe()):
        if time.monotonic() > deadline:
            return value
        time.sleep(0.05)
    return value


def _replaced(host, old, within):
    """The relay that came after this one, once it serves."""
    found = _eventually(lambda: [pid for pid in relays_of(host.data) if pid != old], within)
    assert found and len(found) == 1, (old, relays_of(host.data))
    return found[0]


def _knows_all(boxes, relay):
    wanted = len(boxes) * _DESCRIPTORS_EACH
    assert _eventually(lambda: usage_of(relay).descriptors >= wanted, within=20), (usage_of(relay), wanted)
    assert all(_each(_knows, boxes))


@pytest.mark.limit(300)
def test_with_many_sandboxes_it_is_killed_alone_and_with_the_server(host):
    before = host.state()
    (first,) = relays_of(host.data)
    boxes = _each(lambda _: host.create(), range(_SANDBOXES))
    _knows_all(boxes, first)
    # What the comparisons of all these tests rest on.
    now = host.state()
    assert before.helpers == now.helpers == {"alcove-jail 1", "alcove-relay 1"}
    assert before.launcher_mounts == now.launcher_mounts != set()
    assert len(now.relay_holds - before.relay_holds) == len(boxes) * _DESCRIPTORS_EACH

    os.kill(first, signal.SIGKILL)
    second = _replaced(host, first, within=5)
    _knows_all(boxes, second)

    host.kill()
    os.kill(second, signal.SIGKILL)
    host.start()
    third = _replaced(host, second, within=5)
    assert host.listed() == {box.sandbox_id for box in boxes}
    _knows_all(boxes, third)
    assert _knows(host.create())

    host.kill_all()
    assert not host.settled(before).difference(before)
    assert relays_of(host.data) == [third]


@pytest.mark.limit(180)
def test_one_that_hangs_is_replaced(host):
    before = host.state()
    box = host.create()
    (stuck,) = relays_of(host.data)
    os.kill(stuck, signal.SIGSTOP)
    begun = time.monotonic()
    # Creates wait for its successor, not for ever.
    created = _each(lambda _: host.create(), range(4))
    assert time.monotonic() - begun < 25
    relay = _replaced(host, stuck, within=1)
    _knows_all([box, *created], relay)

    # Nobody asks for anything.
    os.kill(relay, signal.SIGSTOP)
    _replaced(host, relay, within=25)
    assert _knows(box)
    host.kill_all()
    assert not host.settled(before).difference(before)


def test_one_without_descriptors_serves_those_it_has(host):
    before = host.state()
    box = host.create()
    (relay,) = relays_of(host.data)
    normal = resource.prlimit(relay, resource.RLIMIT_NOFILE)
    # Enough for some of the next sandbox's sockets: it must not get a part of them.
    for more in range(_DESCRIPTORS_EACH):
        few = usage_of(relay).descriptors + more
        resource.prlimit(relay, resource.RLIMIT_NOFILE, (few, normal[1]))
        reply = host.api("POST", "/v2/sandboxes", {"templateID": "base"})
        assert (reply.status, reply.headers["retry-after"]) == (503, "1"), (more, reply.body)
        assert "short of what a sandbox needs" in reply.json["message"]
        assert _knows(box)
    assert host.listed() == {box.sandbox_id}
    assert _eventually(lambda: host.state().sandboxes() == {box.sandbox_id}, within=10)
    resource.prlimit(relay, resource.RLIMIT_NOFILE, normal)
    assert _knows(host.create())
    assert relays_of(host.data) == [relay]
    host.kill_all()
    assert not host.settled(before).difference(before)


@pytest.mark.limit(120)
def test_one_that_is_killed_again_and_again_comes_back(host):
    box = host.create()
    (relay,) = relays_of(host.data)
    for _ in range(4):
        os.kill(relay, signal.SIGKILL)
        relay = _replaced(host, relay, within=10)
    assert _eventually(lambda: _knows(box), within=10)
    assert host.create().commands.run("echo up").stdout == "up\n"

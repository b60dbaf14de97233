# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Egress outlives the server, and a killed relay is replaced before anybody could get past it."""

import json
import os
import signal
import time

import pytest
from bed import addresses as a
from bed import web_server
from server_process import copy_of_programs, kill_server, relay_pids, start_server, stop_server, wait_for
from test_refusals import assert_refused
from world_view import seen

V4 = a.ZONE[a.FILES][0][0]
GIB = 1 << 30


@pytest.mark.limit(180)
def test_a_download_goes_on_over_a_kill_of_the_server(make_box):
    box, closed = make_box(), make_box(allow_internet_access=False)
    # Slow enough to be under way all the time.
    url = f"http://{a.FILES}/download?bytes={GIB}&rate={GIB / 10}"
    box.leave(f"curl -sS --max-time 120 '{url}' | sha256sum", result="sum")
    time.sleep(2)
    relays = relay_pids()
    killed = kill_server()
    time.sleep(1)
    assert relay_pids() == relays, "the relay outlives the server"
    start_server(killed)
    assert relay_pids() == relays, "and the next server takes it over"
    assert not box.sandbox.files.exists("sum"), "the download was under way"
    wait_for(lambda: box.sandbox.files.exists("sum"), within=60)
    assert box.sandbox.files.read("sum").split()[0] == web_server.download_digest(GIB)
    # New connections are made, and the policies are as they were.
    assert box.probe("tcp", V4, a.ECHO_PORT)["error"] is None
    assert_refused(box.probe("tcp", a.PRIVATE_V4[0], a.ECHO_PORT))
    assert_refused(closed.probe("tcp", V4, a.ECHO_PORT))


@pytest.mark.limit(180)
def test_connections_live_on_over_a_stop_and_a_newer_program(make_box, tmp_path):
    box = make_box()
    # Says something every now and then, and hears it back, over one connection.
    box.leave_probe("keep_talking", V4, a.ECHO_PORT, 12, result="talk")
    time.sleep(1)
    relays = relay_pids()
    stopped = stop_server()
    time.sleep(1)
    command, environ = stopped
    start_server((copy_of_programs(command, tmp_path), environ))
    try:
        assert relay_pids() == relays, "a newer server takes the relay over"
        talk = json.loads(wait_for(lambda: box.read_if_there("talk"), within=40))
        assert talk["error"] is None and talk["heard"] > 100, talk
        assert box.probe("tcp", V4, a.ECHO_PORT)["error"] is None
        assert make_box().probe("tcp", V4, a.ECHO_PORT)["error"] is None
    finally:
        stop_server()
        start_server(stopped)
    assert box.probe("tcp", V4, a.ECHO_PORT)["error"] is None


def test_connections_are_made_while_the_server_is_down(make_box):
    box = make_box()
    box.leave_probe("keep_trying", V4, a.ECHO_PORT, 4, result="tries")
    killed = kill_server()
    time.sleep(2)
    start_server(killed)
    wait_for(lambda: box.sandbox.files.exists("tries"), within=20)
    tries = json.loads(box.sandbox.files.read("tries"))
    assert len(tries) > 20
    assert [attempt for attempt in tries if attempt["error"]] == []


@pytest.mark.limit(120)
def test_a_killed_relay_is_back_within_a_second(make_box):
    box, closed = make_box(), make_box(allow_internet_access=False)
    assert box.probe("tcp", V4, a.ECHO_PORT)["error"] is None
    before = len(seen()["tcp"])
    outcome = box.start_probe("keep_trying", V4, a.ECHO_PORT, 6)
    time.sleep(2)
    (old,) = relay_pids()
    killed_at = time.time()
    os.kill(old, signal.SIGKILL)
    (new,) = wait_for(lambda: [pid for pid in relay_pids() if pid != old], within=5)
    tries = outcome()
    answered = [tried["at"] + tried["seconds"] for tried in tries if tried["at"] > killed_at and not tried["error"]]
    gap = min(answered) - killed_at
    print(f"connections again after {gap:.3f} s")
    assert gap < 1
    # Nothing got out but by a relay: only attempts that the kill found under way can have arrived
    # in the world without their echo.
    got_out = len(seen()["tcp"]) - before
    succeeded = sum(1 for attempt in tries if not attempt["error"])
    under_way = sum(1 for attempt in tries if attempt["at"] < killed_at < attempt["at"] + attempt["seconds"])
    assert succeeded <= got_out <= succeeded + under_way
    # The new relay knows the policies.
    assert new in relay_pids()
    assert_refused(box.probe("tcp", a.PRIVATE_V4[0], a.ECHO_PORT))
    assert_refused(closed.probe("tcp", V4, a.ECHO_PORT))
    assert make_box().probe("tcp", V4, a.ECHO_PORT)["error"] is None

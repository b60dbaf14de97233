# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What a sandbox reaches, and how failures look from inside: as on a real network."""

import os
import socket
import time

import pytest
from bed import addresses as a
from bed import web_server
from server_process import relay_pids, wait_for
from world_view import seen

V4 = a.ZONE[a.FILES][0][0]
V6 = a.ZONE[a.FILES][1][0]
TEXT = "are you there"


@pytest.mark.parametrize("address", [V4, V6])
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_both_protocols_by_both_families(box, protocol, address):
    assert box.probe(protocol, address, a.ECHO_PORT)["value"] == TEXT


@pytest.mark.parametrize("address", [V4, V6])
@pytest.mark.parametrize("size", [1, 1400, 9000, 60000])
def test_datagrams_of_all_sizes(box, address, size):
    outcome = box.probe("udp", address, a.ECHO_PORT, "x" * size, 0, 3)
    assert outcome["error"] is None and outcome["value"] == "x" * min(size, 100), outcome


def test_names_are_resolved(box):
    v4, v6 = a.ZONE[a.FILES]
    assert box.probe("names", a.FILES)["value"] == sorted(v4 + v6)
    assert box.probe("names", a.V4_ONLY)["value"] == a.ZONE[a.V4_ONLY][0]
    assert box.probe("names", a.V6_ONLY)["value"] == a.ZONE[a.V6_ONLY][1]
    assert box.run(f"getent ahostsv4 {a.FILES}").split()[0] == v4[0]
    assert box.run(f"getent ahostsv6 {a.FILES}").split()[0] == v6[0]


@pytest.mark.parametrize("options", ["edns0", "use-vc", "use-vc edns0", "single-request", "trust-ad"])
def test_names_are_resolved_however_the_c_library_asks(box, options):
    v4, v6 = a.ZONE[a.FILES]
    shown = box.run(f"RES_OPTIONS='{options}' getent ahosts {a.FILES}")
    assert {line.split()[0] for line in shown.splitlines()} == {*v4, *v6}


def test_an_unknown_name_is_unknown_at_once(box):
    outcome = box.probe("names", "nobody.test")
    assert outcome["error"] == f"gai {socket.EAI_NONAME}", outcome
    assert outcome["seconds"] < 2


def test_a_long_answer_of_the_name_server_arrives(box):
    assert box.probe("names", a.MANY)["value"] == sorted(a.ZONE[a.MANY][0])


@pytest.mark.parametrize(("flag", "address"), [("-4", V4), ("-6", V6)])
def test_curl_by_both_families(box, flag, address):
    shown = box.run(f"curl -sS {flag} --max-time 10 -w '%{{remote_ip}}' http://{a.FILES}/hello")
    assert shown == f"hello from the world\n{address}"


def test_the_world_sees_the_host(box):
    assert box.run(f"curl -sS -4 --max-time 10 http://{a.FILES}/peer") == a.HOST_V4
    assert box.run(f"curl -sS -6 --max-time 10 http://{a.FILES}/peer") == a.HOST_V6


def test_curl_gets_along_when_ipv6_leads_nowhere(box):
    shown = box.run(f"curl -sS --max-time 10 -w ' %{{remote_ip}} %{{time_total}}' http://{a.DEAD_V6}/hello")
    text, address, seconds = shown.rsplit(" ", 2)
    assert (text, address) == ("hello from the world\n", a.ZONE[a.DEAD_V6][0][0])
    assert float(seconds) < 3


@pytest.mark.parametrize("address", [V4, V6])
def test_a_closed_port_is_refused_at_once(box, address):
    outcome = box.probe("tcp", address, a.CLOSED_PORT)
    assert outcome["error"] == "ECONNREFUSED", outcome
    assert outcome["seconds"] < 1


@pytest.mark.parametrize("address", [a.UNREACHABLE_V4, a.UNREACHABLE_V6])
def test_an_unreachable_address_is_reported_at_once(box, address):
    outcome = box.probe("tcp", address, 80)
    assert outcome["error"] in ("EHOSTUNREACH", "ENETUNREACH"), outcome
    assert outcome["seconds"] < 2


def test_a_black_hole_is_a_timeout_and_hinders_nobody_else(box):
    waiting = box.sandbox.commands.run(f"curl -sS --max-time 4 http://{a.BLACKHOLES[0]}/", background=True)
    assert box.probe("tcp", V4, a.ECHO_PORT)["value"] == TEXT
    with pytest.raises(Exception) as info:
        waiting.wait()
    assert info.value.exit_code == 28, info.value


@pytest.mark.parametrize("address", [V4, V6])
def test_what_is_sent_before_a_half_close_comes_back_whole(box, address):
    assert box.probe("half_close", address, a.ECHO_PORT, 3 << 20)["value"] == 3 << 20


def test_two_hundred_connections_at_once(box):
    outcome = box.probe("many", V4, a.ECHO_PORT, 200)
    assert outcome["value"] == 200, outcome
    assert box.probe("many", V6, a.ECHO_PORT, 200)["value"] == 200


@pytest.mark.limit(180)
def test_a_gibibyte_comes_whole(box):
    size = 1 << 30
    start = time.monotonic()
    shown = box.run(f"curl -sS --max-time 120 'http://{a.FILES}/download?bytes={size}' | sha256sum", timeout=150)
    print(f"1 GiB in {time.monotonic() - start:.1f} s")
    assert shown.split()[0] == web_server.download_digest(size)


def test_sandboxes_with_the_same_ports_do_not_mix(make_box):
    boxes = [make_box() for _ in range(3)]
    for protocol in ("tcp", "udp"):
        running = [
            box.start_probe(protocol, V4, a.ECHO_PORT, f"of sandbox {number}", 5555, 300)
            for number, box in enumerate(boxes)
        ]
        for number, outcome in enumerate(running):
            assert outcome()["value"] == f"of sandbox {number}"


def test_a_service_of_one_sandbox_is_not_reached_from_another(make_box):
    one, other = make_box(), make_box()
    one.sandbox.commands.run("python3 -m http.server 9999", background=True)
    own = one.run("ip -4 -o address show dev lo scope global | awk '{print $4}' | cut -d/ -f1").split()
    assert own, "the sandbox has an address"
    for address in own:
        one.run(f"curl -sS --retry 20 --retry-connrefused --retry-delay 1 -o /dev/null http://{address}:9999/")
        assert other.probe("tcp", address, 9999)["error"] == "ECONNREFUSED"


def test_a_killed_sandbox_leaves_nothing_in_the_relay(make_box):
    (relay,) = relay_pids()

    def descriptors():
        return len(os.listdir(f"/proc/{relay}/fd"))

    before = descriptors()
    box = make_box()
    url = f"http://{a.FILES}/download?bytes={1 << 30}&rate={1 << 20}"
    box.leave(f"for i in $(seq 20); do curl -sS '{url}' > /dev/null & done; wait", result="unused")
    box.probe("udp", V4, a.ECHO_PORT)
    wait_for(lambda: descriptors() >= before + 40, within=10)
    box.sandbox.kill()
    wait_for(lambda: descriptors() <= before, within=10)


def test_ping_does_not_lie(box):
    """ICMP does not leave, and no address pretends to answer."""
    before = len(seen()["tcp"])
    for address in (V4, a.BLACKHOLES[0]):
        shown = box.run(f"ping -n -c 1 -W 1 {address} || true")
        assert "1 received" not in shown, shown
    assert len(seen()["tcp"]) == before

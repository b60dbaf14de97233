# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What no sandbox may reach, although the host does (test_bed.py), and sandboxes that reach nothing."""

import contextlib
import socket
import threading
import uuid

import pytest
from bed import addresses as a
from world_view import seen

# Nothing tells a refused address from one that no route leads to.
REFUSED = "EHOSTUNREACH"
AT_ONCE = 1.0
PUBLIC = (a.ZONE[a.FILES][0][0], a.ZONE[a.FILES][1][0])
# The relay's own port in every sandbox (src/network/guest_network.h).
RELAY_PORT = 49982


@pytest.fixture
def host_listener():
    """Accepts connections to every address of the host; yields its port and who came."""
    came = []
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True))

        def serve():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                came.append(peer.getsockname()[0])
                peer.close()

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1], came
        listener.shutdown(socket.SHUT_RDWR)


def assert_refused(outcome):
    assert outcome["error"] == REFUSED, outcome
    assert outcome["seconds"] < AT_ONCE, outcome


@pytest.mark.parametrize("address", [*a.PRIVATE_V4, *a.PRIVATE_V6])
def test_private_addresses(box, address):
    before = seen()
    assert_refused(box.probe("tcp", address, a.ECHO_PORT))
    assert box.probe("udp", address, a.ECHO_PORT, "x", 0, 1, 1)["error"] is not None
    after = seen()
    assert after["tcp"].count(address) == before["tcp"].count(address)
    assert after["udp"].count(address) == before["udp"].count(address)


@pytest.mark.parametrize("address", [a.HOST_V4, a.HOST_V6])
def test_the_hosts_own_public_addresses(box, host_listener, address):
    port, came = host_listener
    socket.create_connection((address, port), timeout=5).close()
    assert_refused(box.probe("tcp", address, port))
    assert len(came) == 1


@pytest.mark.parametrize(
    "address",
    ["0.1.2.3", "127.1.2.3", "192.0.0.8", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
     "fe80::1", "ff02::1", "fc00::1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1"],
)  # fmt: skip
def test_addresses_that_are_nobodys(box, host_listener, address):
    port, came = host_listener
    outcome = box.probe("tcp", address, port)
    assert outcome["error"] not in (None, "timeout"), outcome
    assert outcome["seconds"] < AT_ONCE
    assert not came


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::"])
def test_loopback_is_the_sandboxs_own(box, host_listener, address):
    port, came = host_listener
    assert box.probe("tcp", address, port)["error"] == "ECONNREFUSED"
    assert not came


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_relays_own_port_leads_nowhere(box, address):
    """A connection straight to it has loopback as its destination, which on the host is the server."""
    with socket.create_server(("::", RELAY_PORT), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        listener.settimeout(1)
        outcome = box.probe("tcp", address, RELAY_PORT)
        assert outcome["error"] not in (None, "timeout"), outcome
        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.parametrize("address", PUBLIC)
def test_without_internet_access_nothing_is_reached(make_box, address):
    closed = make_box(allow_internet_access=False)
    before = seen()
    assert_refused(closed.probe("tcp", address, a.ECHO_PORT))
    outcome = closed.probe("udp", address, a.ECHO_PORT)
    assert outcome["error"] is not None and outcome["seconds"] < AT_ONCE, outcome
    after = seen()
    assert (after["tcp"], after["udp"]) == (before["tcp"], before["udp"])


def test_without_internet_access_no_name_is_asked_for(make_box):
    closed = make_box(allow_internet_access=False)
    name = f"{uuid.uuid4().hex}.files.test"
    outcome = closed.probe("names", name)
    assert str(outcome["error"]).startswith("gai"), outcome
    assert outcome["seconds"] < 2, outcome
    assert closed.probe("names", a.FILES)["error"] is not None
    # To another name server, and by TCP.
    assert closed.probe("udp", a.NAME_SERVER, 53)["error"] is not None
    assert_refused(closed.probe("tcp", a.NAME_SERVER, 53))
    assert name not in [asked for asked, _ in seen()["names"]]


def test_with_internet_access_said_aloud(make_box):
    assert make_box(allow_internet_access=True).probe("tcp", PUBLIC[0], a.ECHO_PORT)["error"] is None


def test_a_closed_sandbox_still_works_inside(make_box):
    closed = make_box(allow_internet_access=False)
    closed.sandbox.commands.run("python3 -m http.server 9999", background=True)
    closed.run("curl -sS --retry 20 --retry-connrefused --retry-delay 1 -o /dev/null http://127.0.0.1:9999/")

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What a sandbox must not reach, and how that looks to it. No internet is needed: the larger part,
where something answers, is in the unit tests of src/relay."""

import errno
import ipaddress
import json
import os
import select
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from e2b import Sandbox
from harness import DATA_DIR

# Tries each "address port" of its arguments and prints a JSON list of [errno or 0, seconds].
_CONNECT = """
import json, socket, sys, time
results = []
for target in sys.argv[1:]:
    address, port = target.rsplit(" ", 1)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    start = time.monotonic()
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(8)
        try:
            error = connection.connect_ex((address, int(port)))
            if error == 0:
                error = 0 if connection.recv(1) else -1
        except OSError as failure:
            error = failure.errno or -1
    results.append([error, time.monotonic() - start])
print(json.dumps(results))
"""

_PRIVATE = ["10.0.0.1", "10.11.12.1", "100.64.0.1", "168.63.129.16", "169.254.169.254", "172.17.0.1", "192.168.0.1", "198.18.0.1", "0.0.0.1"]
_PRIVATE_6 = ["fd00::1", "fe80::1", "64:ff9b::a00:1", "64:ff9b::7f00:1", "2002:7f00:1::1", "::7f00:1"]


@pytest.fixture(scope="module")
def box():
    with_internet = Sandbox.create(timeout=600, metadata={"test": "egress"})
    yield with_internet
    with_internet.kill()


@pytest.fixture(scope="module")
def closed_box():
    without = Sandbox.create(timeout=600, allow_internet_access=False, metadata={"test": "egress"})
    yield without
    without.kill()


def _connect(box, targets, user="root"):
    box.files.write("/tmp/connect.py", _CONNECT)
    arguments = " ".join(f"'{target}'" for target in targets)
    return json.loads(box.commands.run(f"python3 /tmp/connect.py {arguments}", user=user, timeout=50).stdout)


def _host_addresses():
    shown = subprocess.run(["ip", "-j", "addr"], capture_output=True, text=True, check=True).stdout
    found = [ipaddress.ip_address(a["local"]) for link in json.loads(shown) for a in link["addr_info"]]
    return [str(a) for a in found if not a.is_loopback and not (a.version == 6 and a.is_link_local)]


def _refused_at_once(results, targets):
    for (error, seconds), target in zip(results, targets, strict=True):
        assert error in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ECONNREFUSED, errno.EACCES, errno.EINVAL), (target, error)
        assert seconds < 2, (target, seconds)


def test_the_host_itself_is_out_of_reach(box):
    if not DATA_DIR:
        pytest.skip("needs the server on this machine (ALCOVE_DATA)")
    addresses = _host_addresses()
    if not addresses:
        pytest.skip("this machine has no address but loopback")
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
        port = listener.getsockname()[1]
        mapped = [f"::ffff:{address}" for address in addresses if "." in address]
        targets = [f"{address} {port}" for address in addresses + mapped]
        _refused_at_once(_connect(box, targets), targets)
        # Its loopback is the sandbox's own, where nobody listens.
        (own, _), (own6, _) = _connect(box, [f"127.0.0.1 {port}", f"::1 {port}"])
        assert (own, own6) == (errno.ECONNREFUSED, errno.ECONNREFUSED)
        assert select.select([listener], [], [], 0.3)[0] == []


def test_private_networks_are_out_of_reach(box):
    targets = [f"{address} 80" for address in _PRIVATE + _PRIVATE_6]
    _refused_at_once(_connect(box, targets), targets)


def test_broadcast_and_multicast_go_nowhere(box):
    targets = [f"{address} 80" for address in ("255.255.255.255", "224.0.0.1", "240.0.0.1")]
    for error, seconds in _connect(box, targets):
        assert error > 0
        assert seconds < 2


def test_the_relay_itself_serves_nobody(box):
    # Its port inside leads nowhere: the destination is the sandbox's own address.
    for error, _ in _connect(box, ["127.0.0.1 49982", "::1 49982", "10.11.12.2 49982"]):
        assert error in (errno.ECONNRESET, errno.ECONNREFUSED, -1)


def test_without_internet_everything_is_refused_at_once(closed_box):
    targets = ["198.51.100.7 443", "8.8.8.8 53", "1.1.1.1 443", "2001:db8::1 443", "10.0.0.1 80"]
    for error, seconds in _connect(closed_box, targets, user="user"):
        assert error == errno.EHOSTUNREACH
        assert seconds < 1


def test_without_internet_names_are_not_resolved_and_nobody_waits(closed_box):
    source = "import socket\ntry:\n    print(socket.getaddrinfo('example.com', 80))\nexcept socket.gaierror as e:\n    print(e.errno)\n"
    closed_box.files.write("/tmp/name.py", source)
    start = time.monotonic()
    result = closed_box.commands.run("python3 /tmp/name.py", timeout=30)
    assert result.stdout.strip() == str(socket.EAI_AGAIN)
    assert time.monotonic() - start < 3


def test_without_internet_root_inside_cannot_change_that(closed_box):
    # Its network is its own: it may remove the rules, and then nothing leads out at all.
    closed_box.commands.run("ip route flush table main 2>/dev/null; true", user="root")
    (error, seconds), = _connect(closed_box, ["198.51.100.7 443"])
    assert error in (errno.EHOSTUNREACH, errno.ENETUNREACH)
    assert seconds < 1


def test_there_is_no_way_but_the_relay(box):
    links = json.loads(box.commands.run("ip -j link", user="root").stdout)
    assert [link["ifname"] for link in links] == ["lo"]


def _relay_pid():
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            program = os.path.basename(os.readlink(entry / "exe"))
            data = (entry / "cmdline").read_bytes().split(b"\0")[1:2]
        except OSError:
            continue
        if program == "alcove-relay" and data == [DATA_DIR.encode()]:
            return int(entry.name)
    return None


def test_a_killed_relay_is_back_within_a_second_and_still_refuses(box, closed_box):
    if not DATA_DIR:
        pytest.skip("needs the server on this machine (ALCOVE_DATA)")
    killed = _relay_pid()
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    deadline = time.monotonic() + 1
    while _relay_pid() in (None, killed):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.2)
    (error, seconds), = _connect(closed_box, ["198.51.100.7 443"])
    assert error in (errno.EHOSTUNREACH, errno.ENETUNREACH)
    (error, seconds), = _connect(box, ["169.254.169.254 80"])
    assert error == errno.EHOSTUNREACH
    assert box.commands.run("echo ok").stdout == "ok\n"

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What a program finds otherwise here than in a virtual machine of its own. Each test's title and
text are a row of docs/compatibility.md."""

import os

import e2b
import pytest
from recorder import record

pytestmark = pytest.mark.wire


@pytest.fixture
def run():
    """A function that runs a command as root and returns its exit code and all that it printed."""
    with e2b.Sandbox.create(timeout=120) as sandbox:

        def run(command, user="root"):
            try:
                result = sandbox.commands.run(f"{command} 2>&1", user=user)
            except e2b.CommandExitException as error:
                result = error
            return result.exit_code, result.stdout.strip()

        yield run


def test_systemd(run):
    assert run("cat /proc/1/comm") == (0, "alcove-agent")
    assert run("systemctl status")[0] == 127
    record.differs("systemd", "pid 1 is our agent: start services by their programs, in the background")


def test_docker_inside(run):
    code, shown = run("{ mount -t cgroup -o pids none /mnt || mount -t cgroup2 none /mnt; } && mkdir /mnt/engine")
    assert code == 1 and "Permission denied" in shown, shown
    code, shown = run("mknod /tmp/disk b 8 0")
    assert code == 1 and "Operation not permitted" in shown
    record.differs("Docker inside", "no: a container engine needs cgroups and devices of its own")


def test_ping(run):
    code, shown = run("ping -n -c 1 -W 1 198.51.100.7")
    assert code == 1 and "100% packet loss" in shown, shown
    code, shown = run("ping -n -c 1 -W 1 198.51.100.7", user="user")
    assert code == 2 and "Operation not permitted" in shown, shown
    record.differs("ping", "gets no answer: TCP and UDP leave the sandbox, ICMP does not")


def test_kernel(run):
    assert run("uname -r") == (0, os.uname().release)
    assert run("ls /dev/kvm /lib/modules")[0] == 2
    code, shown = run("sysctl -w kernel.panic=1")
    assert code == 1 and "permission denied" in shown
    assert run("sysctl -w net.ipv4.ip_local_port_range='2000 3000'")[0] == 0
    record.differs("kernel", "the machine's own, shared: no modules, no KVM, no `sysctl` but those of the network")


def test_clock(run):
    code, shown = run("date -s 2020-01-01")
    assert code == 1 and "Operation not permitted" in shown
    record.differs("clock", "cannot be set")


def test_disks(run):
    assert run("mount -t tmpfs none /mnt && touch /mnt/x && umount /mnt")[0] == 0
    assert run("losetup -f /tmp/no-image")[0] != 0
    record.differs("disks", "no block or loop devices; `mount` makes file systems in memory only")


def test_asynchronous_io(run):
    # io_setup and io_uring_setup.
    call = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); print([(libc.syscall(n, 1, ctypes.create_string_buffer(120)), os.strerror(ctypes.get_errno())) for n in (206, 425)])"
    assert run(f'python3 -c "{call}"') == (0, "[(-1, 'Function not implemented'), (-1, 'Function not implemented')]")
    record.differs("asynchronous I/O", "no `io_uring`, no `io_setup`: programs use threads instead")


def test_network_card(run):
    assert run("ls /sys/class/net") == (0, "lo")
    record.differs("network card", "none: `lo` is all, and connections leave through it")

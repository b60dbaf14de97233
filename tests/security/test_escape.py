# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Attempts to get out of a sandbox, as its root user. Each test says what must not be reachable."""

import os
import random
import re
import urllib.parse
from pathlib import Path

import pytest
from e2b import CommandExitException, Sandbox
from harness import API_URL, DATA_DIR


@pytest.fixture(scope="module")
def box():
    sandbox = Sandbox.create(timeout=600, metadata={"test": "security"})
    yield sandbox
    sandbox.kill()


def _root(box, command, **options):
    return box.commands.run(command, user="root", **options).stdout


def _python(box, source, user="root"):
    """Runs a program inside and returns its output."""
    box.files.write("/tmp/attempt.py", source)
    return box.commands.run("python3 /tmp/attempt.py 2>&1", user=user, timeout=30).stdout.strip()


def _syscall(box, number, *arguments):
    """The errno of a bare system call made by root inside; 0 if it worked."""
    source = (
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"result = libc.syscall({number}, {', '.join(map(str, arguments)) or 0})\n"
        "print(ctypes.get_errno() if result == -1 else 0)\n"
    )
    return int(_python(box, source))


class Outside:
    """A process of the sandbox as the host sees it. Only where tests and server share a machine."""

    def __init__(self, box, user="root"):
        if not DATA_DIR:
            pytest.skip("needs the server on this machine (ALCOVE_DATA)")
        mark = f"54321.{random.randrange(10**9)}"
        self._handle = box.commands.run(f"exec sleep {mark}", user=user, background=True, timeout=120)
        self.pid = _wait_for_process(mark)

    @property
    def proc(self):
        return Path(f"/proc/{self.pid}")

    def siblings(self):
        """All processes of the same pid namespace."""
        mine = os.readlink(self.proc / "ns/pid")
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if os.readlink(entry / "ns/pid") == mine:
                        yield entry
                except OSError:
                    continue

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._handle.kill()


def _wait_for_process(mark):
    for _ in range(100):
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    arguments = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if arguments[:2] == [b"sleep", mark.encode()]:
                    return int(entry.name)
    raise AssertionError(f"no process sleeps for {mark}")


def _socket_inodes(process):
    """Inodes of all sockets of the process's network namespace."""
    found = set()
    for name, column in (("tcp", 9), ("tcp6", 9), ("udp", 9), ("udp6", 9), ("raw", 9), ("unix", 6), ("netlink", 9), ("packet", 8)):
        try:
            lines = (process / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        found |= {line.split()[column] for line in lines}
    return found


_EPERM, _ENOSYS, _EACCES, _EAFNOSUPPORT = 1, 38, 13, 97


# --- file descriptors and files of the host -------------------------------------------------------


def test_no_host_file_descriptor_in_any_process(box):
    with Outside(box) as outside:
        sockets = 0
        for process in outside.siblings():
            own_sockets = _socket_inodes(process)
            for link in (process / "fd").iterdir():
                target = os.readlink(link)
                kind, _, rest = target.partition(":")
                if kind == "socket":
                    # A socket that was made in the host's network namespace is not in this list.
                    assert rest.strip("[]") in own_sockets, f"{process.name} {link.name} {target}"
                    sockets += 1
                else:
                    assert kind in ("pipe", "anon_inode") or target in ("/dev/null", "/null"), f"{process.name} {link.name} {target}"
        assert sockets > 0, "not even the agent's listener was seen"


def test_every_namespace_is_its_own(box):
    with Outside(box) as outside:
        for name in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts", "time"):
            assert os.readlink(outside.proc / "ns" / name) != os.readlink(f"/proc/self/ns/{name}"), name


def test_root_directory_is_not_the_hosts(box):
    with Outside(box) as outside:
        inside, host = os.stat(outside.proc / "root"), os.stat("/")
        assert (inside.st_dev, inside.st_ino) != (host.st_dev, host.st_ino)


def test_mounts_name_no_path_of_the_host(box):
    mounts = _root(box, "cat /proc/self/mountinfo")
    for word in ("/var/lib/", "/var/tmp/", "/root/", "/home/runner", "alcove-test", DATA_DIR or "/var/lib/alcove"):
        assert word not in mounts, mounts


def test_old_root_is_gone(box):
    assert _root(box, "ls -d /oldroot /old_root /.pivot_root /put_old 2>/dev/null || true") == ""
    root, above = _root(box, "stat -c %d:%i / /..").split()
    assert root == above


def test_classic_chroot_escape_fails(box):
    source = (
        "import os\n"
        "os.makedirs('/tmp/hole', exist_ok=True)\n"
        "here = os.open('/', os.O_RDONLY)\n"
        "os.chroot('/tmp/hole')\n"
        "os.fchdir(here)\n"
        "for _ in range(64):\n"
        "    os.chdir('..')\n"
        "os.chroot('.')\n"
        "print(os.path.exists('/run/e2b/.E2B_SANDBOX'))\n"
    )
    assert _python(box, source) == "True"


def test_open_by_handle_is_refused(box):
    assert _syscall(box, 304, -100, "b'x' * 64", 0) in (_EPERM, _ENOSYS)


@pytest.mark.parametrize("path", ["/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/kvm", "/dev/sda", "/dev/vda", "/dev/loop-control", "/dev/btrfs-control"])
def test_kernel_files_are_closed(box, path):
    shown = _root(box, f"head -c 1 {path} 2>/dev/null | wc -c")
    assert shown.strip() == "0"


@pytest.mark.parametrize(
    "path",
    [
        "/proc/sysrq-trigger",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/kernel/hostname_does_not_exist",
        "/proc/sys/fs/binfmt_misc/register",
        "/proc/self/uid_map",
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
    ],
)
def test_kernel_knobs_cannot_be_turned(box, path):
    with pytest.raises(CommandExitException):
        _root(box, f"echo x > {path}")


def test_device_nodes_cannot_be_made_or_used(box):
    for device in ("b 254 0", "b 8 0", "c 1 1", "c 10 232"):
        assert _root(box, f"rm -f /tmp/node; mknod /tmp/node {device} 2>/dev/null && head -c 1 /tmp/node 2>/dev/null | wc -c || echo 0").strip() == "0"


# --- privileges -----------------------------------------------------------------------------------


def _ranges(process, name):
    return [tuple(map(int, line.split())) for line in (process / name).read_text().splitlines()]


@pytest.mark.parametrize("user", ["root", "user"])
def test_nobody_inside_is_anybody_outside(box, user):
    with Outside(box, user) as outside:
        for process in outside.siblings():
            status = process.stat()
            assert status.st_uid >= 65536 and status.st_gid >= 65536, process.name
        for name in ("uid_map", "gid_map"):
            # Read from the host, the second number is the host's id.
            assert all(first >= 65536 for _, first, _ in _ranges(outside.proc, name))
            assert sum(count for _, _, count in _ranges(outside.proc, name)) <= 65536


def test_two_sandboxes_share_no_ids(box):
    other = Sandbox.create(timeout=60)
    try:
        with Outside(box) as first, Outside(other) as second:
            for _, start, count in _ranges(first.proc, "uid_map"):
                for _, other_start, other_count in _ranges(second.proc, "uid_map"):
                    assert start + count <= other_start or other_start + other_count <= start
            assert os.readlink(first.proc / "ns/user") != os.readlink(second.proc / "ns/user")
    finally:
        other.kill()


def test_sudo_works_so_no_new_privs_is_off(box):
    assert box.commands.run("sudo -n id -u").stdout == "0\n"
    assert "NoNewPrivs:\t0" in box.commands.run("grep NoNewPrivs /proc/self/status").stdout


def test_seccomp_filter_is_on_everywhere(box):
    shown = _root(box, "grep -h ^Seccomp: /proc/[0-9]*/status | sort -u")
    assert shown.split() == ["Seccomp:", "2"]


@pytest.mark.parametrize(
    "name, number, arguments",
    [
        ("kexec_load", 246, (0, 0, 0, 0)),
        ("init_module", 175, (0, 0, "b''")),
        ("finit_module", 313, (0, "b''", 0)),
        ("delete_module", 176, ("b'x'", 0)),
        ("bpf", 321, (0, 0, 0)),
        ("perf_event_open", 298, (0, 0, -1, -1, 0)),
        ("keyctl", 250, (0, 0)),
        ("add_key", 248, ("b'user'", "b'x'", "b'y'", 1, -4)),
        ("swapon", 167, ("b'/tmp/x'", 0)),
        ("reboot", 169, (0xFEE1DEAD, 672274793, 0x1234567, 0)),
        ("settimeofday", 164, (0, 0)),
        ("iopl", 172, (3,)),
        ("ioperm", 173, (0, 1, 1)),
        ("quotactl", 179, (0, 0, 0, 0)),
        ("lookup_dcookie", 212, (0, 0, 0)),
        ("userfaultfd", 323, (0,)),
        ("open_by_handle_at", 304, (-1, 0, 0)),
        ("io_uring_setup", 425, (1, 0)),
    ],
)
def test_dangerous_system_calls_are_refused(box, name, number, arguments):
    assert _syscall(box, number, *arguments) in (_EPERM, _ENOSYS, _EACCES), name


def test_hypervisor_sockets_are_refused(box):
    source = "import socket\ntry:\n    socket.socket(40, socket.SOCK_STREAM)\n    print('open')\nexcept OSError as error:\n    print(error.errno)\n"
    assert _python(box, source) in (str(_EPERM), str(_EAFNOSUPPORT), str(_EACCES))


@pytest.mark.parametrize("command", ["mount -t proc proc /mnt", "mount -o remount,rw /proc/sys", "umount -l /proc/kcore", "mount -t cgroup2 none /mnt", "mount -o loop /tmp/x /mnt"])
def test_mounts_of_the_host_kind_are_refused(box, command):
    # A mount that the sandbox may make in its own namespace must at least not unmask anything.
    _root(box, f"truncate -s 1M /tmp/x; {command} 2>/dev/null; true")
    assert _root(box, "head -c 1 /proc/kcore 2>/dev/null | wc -c").strip() == "0"
    with pytest.raises(CommandExitException):
        _root(box, "echo x > /proc/sys/kernel/core_pattern")
    _root(box, "umount /mnt 2>/dev/null; true")


def test_cgroups_cannot_be_changed(box):
    shown = _root(box, "find /sys/fs/cgroup -name '*max*' -o -name 'memory.limit_in_bytes' -o -name release_agent 2>/dev/null | head -50")
    for path in shown.split():
        with pytest.raises(CommandExitException):
            _root(box, f"echo 99999999999 > {path}")
    assert "/" in _root(box, "cat /proc/self/cgroup")


# --- other processes and sandboxes ----------------------------------------------------------------


def test_only_own_processes_are_visible(box):
    programs = _root(box, "cat /proc/[0-9]*/comm").split()
    assert "alcove" not in programs and "alcove-jail" not in programs
    assert programs.count("alcove-agent") == 1


def test_agent_cannot_be_stopped_or_traced_from_inside(box):
    _root(box, "kill -9 1; kill -STOP 1; true")
    assert box.commands.run("echo alive").stdout == "alive\n"
    source = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.ptrace(16, 1, 0, 0), ctypes.get_errno())\n"
    assert _python(box, source, user="user").split()[0] == "-1"


def test_agent_program_is_read_only(box):
    with pytest.raises(CommandExitException):
        _root(box, "echo x >> /proc/1/exe")


def test_network_is_loopback_only(box):
    assert _root(box, "ls /sys/class/net 2>/dev/null || cut -d: -f1 /proc/net/dev | tail -n +3").split() == ["lo"]


def test_there_is_no_way_out_yet(box):
    routes = _root(box, "cat /proc/net/route").splitlines()[1:]
    assert [line for line in routes if line.split()[0] != "lo"] == []


def test_host_services_are_not_reachable(box):
    port = urllib.parse.urlsplit(API_URL).port
    source = (
        "import socket\n"
        "for family, address in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):\n"
        "    probe = socket.socket(family)\n"
        "    probe.settimeout(1)\n"
        f"    print(probe.connect_ex((address, {port})) != 0)\n"
    )
    assert _python(box, source).split() == ["True", "True"]


def test_abstract_sockets_are_apart(box):
    other = Sandbox.create(timeout=60)
    try:
        server = "import socket, time\ns = socket.socket(socket.AF_UNIX); s.bind('\\0shared'); s.listen(); time.sleep(30)\n"
        box.files.write("/tmp/server.py", server)
        box.commands.run("python3 /tmp/server.py", background=True)
        client = "import socket\ns = socket.socket(socket.AF_UNIX)\ntry:\n    s.connect('\\0shared'); print('reached')\nexcept OSError as e:\n    print('refused')\n"
        assert _python(other, client) == "refused"
    finally:
        other.kill()


def test_shared_memory_and_queues_are_apart(box):
    other = Sandbox.create(timeout=60)
    try:
        make = "import ctypes\nprint(ctypes.CDLL(None).shmget(4242, 4096, 0o1666))\n"
        find = "import ctypes\nprint(ctypes.CDLL(None).shmget(4242, 4096, 0))\n"
        assert int(_python(box, make)) >= 0
        assert _python(other, find) == "-1"
        box.files.write("/dev/shm/mark", "x", user="root")
        assert other.files.exists("/dev/shm/mark") is False
    finally:
        other.kill()


def test_hostname_change_stays_inside(box):
    other = Sandbox.create(timeout=60)
    try:
        before = other.commands.run("hostname").stdout
        _root(box, "hostname renamed 2>/dev/null; true")
        assert other.commands.run("hostname").stdout == before
    finally:
        other.kill()


def test_secrets_of_the_server_are_not_in_the_sandbox(box):
    shown = _root(box, "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
    assert "E2B_API_KEY" not in shown and "ALCOVE_" not in shown


def test_agents_control_paths_are_closed_inside_too(box):
    """A process in the sandbox must not re-initialise its agent and so drop the access token."""
    code = _root(box, "curl -s -o /dev/null -w '%{http_code}' -X POST -H 'Content-Type: application/json' -d '{}' http://127.0.0.1:49983/init || true")
    assert code in ("401", "403", "404", "000"), code
    assert box.commands.run("echo ok").stdout == "ok\n"

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The two network namespaces. Processes hold them, and those end with the process that started
them, however it ends: then the kernel removes namespaces, devices and routes by itself."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

from bed import addresses

_HERE = Path(__file__).resolve().parent
# Of every process that belongs to a bed: the prefix, and the pid of the process that made the bed.
PREFIX = "alcove-bed-"
_CLONE_NEWNET = 0x40000000


class Process:
    """A process of the bed. It says "ready" and ends when its standard input does."""

    def __init__(self, args):
        self._process = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._process.stdout.readline().strip() != "ready":
            self.close()
            raise RuntimeError(f"{' '.join(map(str, args))} did not start")

    @property
    def pid(self):
        return self._process.pid

    @property
    def netns(self):
        return Path(f"/proc/{self.pid}/ns/net")

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def name_of(role):
    return f"{PREFIX}{os.getpid()}-{role}"


def hold(role):
    """A fresh namespace, as the process that keeps it."""
    return Process(["unshare", "--net", sys.executable, "-B", _HERE / "holder.py", name_of(role)])


@contextlib.contextmanager
def inside(netns):
    """The calling thread is in that namespace, and so is what it starts."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    other = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _set(other)
        try:
            yield
        finally:
            _set(own)
    finally:
        os.close(own)
        os.close(other)


def _set(fd):
    # os.setns() comes with Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def connect(host, world):
    """Joins the two: the host's default route leads to the world, which has all the addresses."""
    a = addresses
    with inside(host.netns):
        _ip(f"link add up0 type veth peer name down0 netns {world.pid}")
        _ip("link set lo up")
        _ip("link set up0 up")
        _ip(f"address add {a.HOST_V4}/24 dev up0")
        _ip(f"address add {a.HOST_V6}/64 dev up0 nodad")
    with inside(world.netns):
        # As a router it answers for what it cannot reach.
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("1")
        _ip("link set lo up")
        _ip("link set down0 up")
        _ip(f"address add {a.ROUTER_V4}/24 dev down0")
        _ip(f"address add {a.ROUTER_V6}/64 dev down0 nodad")
        for address in a.served():
            # The name server is on the link, and must answer there.
            device = "down0" if address == a.NAME_SERVER else "lo"
            _ip(f"address add {address}/{128 if ':' in address else 32} dev {device} {'nodad' if ':' in address else ''}")
        for address in (a.UNREACHABLE_V4, a.UNREACHABLE_V6):
            _ip(f"route add unreachable {address}")
        for address in a.BLACKHOLES:
            _ip(f"route add blackhole {address}")
    with inside(host.netns):
        _ip(f"route add default via {a.ROUTER_V4}")
        _ip(f"-6 route add default via {a.ROUTER_V6}")


def _ip(command):
    subprocess.run(["ip", *command.split()], check=True)


def is_orphan(name):
    """Whether the maker of a bed is gone, by the name of one of its parts."""
    maker = name.removeprefix(PREFIX).split("-")[0]
    return maker.isdigit() and not Path("/proc", maker).exists()


def end_orphans():
    """Ends processes of beds whose maker is gone; returns their names."""
    ended = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            args = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        name = next((arg for arg in args if arg.startswith(PREFIX)), None)
        if name is None or not any(arg.startswith(str(_HERE.parent)) for arg in args):
            continue
        if is_orphan(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(entry.name), signal.SIGKILL)
            ended.append(name)
    return ended

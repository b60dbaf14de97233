# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What the machine still holds of a data directory, and how to make it let go. Needs no build and
no living server: after a crash there may be neither."""

import ctypes
import errno
import fcntl
import hashlib
import os
import signal
import struct
import time
from pathlib import Path

import console
import serving
from attempts import Attempts

_PATIENCE = 10
_LOOP_CLR_FD = 0x4C01
_LOOP_GET_STATUS64 = 0x4C05
_ID_BLOCKS = Path("/run/alcove/id-blocks")


def end_processes(data):
    """Ends server, launcher and whatever else of ours names the directory. Returns how many."""
    ended = 0
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + _PATIENCE
        signaled = set()
        while (pids := serving.processes_of(data)) and time.monotonic() < deadline:
            for pid in set(pids) - signaled:
                _signal(pid, number)
                ended += number == signal.SIGTERM
            signaled |= set(pids)
            time.sleep(0.02)
        if not pids:
            return ended
    raise console.DevError(f"processes that do not end: {pids}")


def end_sandboxes(data):
    """Kills what runs in the directory's cgroups and removes them. Returns how many sandboxes."""
    bases = [base for base in _cgroup_bases(data) if base.is_dir()]
    names = {path.name for base in bases for path in base.iterdir() if path.is_dir()}
    attempts = Attempts()
    for base in bases:
        attempts.run(remove_cgroups, base)
    attempts.finish()
    return len(names)


def test_cgroups(place):
    """The cgroups of a test that makes a machine of its own in this directory, in every hierarchy."""
    return [point / Path(place).name for point in _cgroup_points()]


def remove_cgroups(base):
    """Kills every process in a cgroup and those below it, and removes them all."""
    deadline = time.monotonic() + _PATIENCE
    while members := set(_members(base)):
        if time.monotonic() > deadline:
            raise console.DevError(f"processes that do not end: {sorted(members)}")
        for pid in members:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.02)
    for folder, _, _ in os.walk(base, topdown=False):
        _patiently(os.rmdir, folder)


def unmount(data):
    """Unmounts all below the directory, innermost first. Returns the mount points."""
    points = serving.mounts_below(data)
    attempts = Attempts()
    busy = []
    for point in reversed(points):
        # What holds another one is as busy.
        if any(Path(other).is_relative_to(point) for other in busy):
            continue
        before = len(attempts.errors)
        attempts.run(_unmount_one, point)
        if len(attempts.errors) > before:
            busy.append(point)
    attempts.finish()
    return points


def users_below(folder):
    """The processes that are in the directory or have a file of it open, by id, with their names."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            links = [entry / "cwd", entry / "root", entry / "exe", *(entry / "fd").iterdir()]
            if any(_leads_below(link, folder) for link in links):
                found[int(entry.name)] = (entry / "comm").read_text().strip()
        except OSError:
            continue
    return found


def free_loops(data):
    """Detaches loop devices on files below the directory, also deleted ones. Returns those."""
    found = set()
    deadline = time.monotonic() + _PATIENCE
    # A device goes with its last user: perhaps a mount namespace that ends only now.
    while devices := set(_loops(data)):
        found |= devices
        for device in devices:
            try:
                with open(device, "rb") as handle:
                    fcntl.ioctl(handle, _LOOP_CLR_FD)
            except OSError:
                continue
        if time.monotonic() > deadline:
            console.say(f"{', '.join(sorted(devices))}: in use by another mount namespace; will go with it")
            break
        time.sleep(0.05)
    return found


def free_id_blocks():
    """Removes the lock files of blocks of host ids that no server holds. Returns how many."""
    freed = 0
    for path in _ID_BLOCKS.glob("*"):
        with open(path, "rb") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            # While it is locked: whoever opened it before looks whether it is still there.
            path.unlink(missing_ok=True)
            freed += 1
    for folder in (_ID_BLOCKS, _ID_BLOCKS.parent):
        try:
            folder.rmdir()
        except OSError:
            break
    return freed


def remove_network_namespace(path):
    """A name that `ip netns add` made."""
    try:
        _umount(path)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    path.unlink(missing_ok=True)


def _loops(data):
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            file = backing.read_text().strip().removesuffix(" (deleted)")
        except OSError:
            continue
        device = f"/dev/{backing.parts[3]}"
        if Path(file).is_relative_to(data) and _is_on(device, file):
            yield device


def _is_on(device, file):
    """The kernel tells a file's path in its own mount namespace: another machine of ours, made for a
    test, may have another file by that name."""
    status = bytearray(232)  # struct loop_info64, which begins with device and inode
    try:
        with open(device, "rb") as handle:
            fcntl.ioctl(handle, _LOOP_GET_STATUS64, status)
        return struct.unpack_from("=QQ", status)[1] == os.stat(file).st_ino
    except OSError:
        # Deleted, or the device is just going.
        return True


def _cgroup_bases(data):
    name = f"alcove-{hashlib.sha256(str(data).encode()).hexdigest()[:8]}"
    return [point / name for point in _cgroup_points()]


def _cgroup_points():
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] in ("cgroup", "cgroup2"):
            yield Path(fields[4])


def _members(base):
    for folder, _, _ in os.walk(base):
        try:
            yield from map(int, (Path(folder) / "cgroup.procs").read_text().split())
        except OSError:
            continue


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _leads_below(link, folder):
    try:
        return Path(os.readlink(link)).is_relative_to(folder)
    except OSError:
        return False


def _unmount_one(point):
    try:
        _patiently(_umount, point)
    except console.DevError as error:
        users = ", ".join(f"{pid} ({name})" for pid, name in sorted(users_below(point).items()))
        raise console.DevError(f"{error}: in use by {users}; end them, then try again" if users else str(error)) from None


def _umount(point):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(point), 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(point))


def _patiently(function, path):
    """The kernel needs a moment after the last process has ended."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return function(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise console.DevError(f"{path}: {error.strerror}") from None
            time.sleep(0.05)

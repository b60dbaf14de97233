# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What the kernel and the disk hold of one data directory: to compare with what the server says,
and with an earlier moment."""

import collections
import dataclasses
import hashlib
import os
import re
from pathlib import Path

_PROC = Path("/proc")
# The name of a sandbox; build jails have other names.
_SANDBOX = re.compile(r"i[a-z0-9]{20}")
# The server and the helpers that live beside it, not for a sandbox.
_SERVER = ("alcove", "alcove-jail", "alcove-relay")
# Of those, the ones that a data directory has one of.
_HELPERS = ("alcove-jail", "alcove-relay")
# Folders with more files than are worth looking at, and files that come and go while a server works.
_SKIPPED = ("pool", "layers", "log")
_PASSING = re.compile(r"alcove\.db-.*|server\.pid(\.new)?|env\.new")


@dataclasses.dataclass
class State:
    processes: dict  # pid: name; the server and its helpers are not among them
    cgroups: set  # names of sandboxes and build jails
    uppers: set  # names in the disk pool
    namespaces: set  # network namespaces that a process is in
    mounts: set  # mount points of the host below the data directory
    loops: set  # loop devices on the pool
    files: set  # below the data directory
    helpers: set  # "alcove-relay 1", and "alcove-relay 2" if there is a second one
    relay_holds: set  # what the relay has open, counted in the same way by its kind
    launcher_mounts: set  # mount points of the launcher's own small root

    def sandboxes(self):
        """Every name that any part of the machine still has; one that is whole is in all of them."""
        return {name for name in self.cgroups | self.uppers if _SANDBOX.fullmatch(name)}

    def difference(self, other):
        """What `self` has that `other` has not, as texts."""
        found = []
        for field in dataclasses.fields(self):
            more = set(getattr(self, field.name)) - set(getattr(other, field.name))
            if field.name == "processes":
                more = {f"{pid} {self.processes[pid]}" for pid in more}
            if more:
                found.append(f"{field.name}: {sorted(more)}")
        return found


def state_of(data):
    data = Path(data).resolve()
    prefix = cgroup_prefix(data)
    processes, namespaces, helpers = {}, set(), {}
    for pid in _pids():
        try:
            command = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace")
            inside = f"/{prefix}/" in (_PROC / str(pid) / "cgroup").read_text()
            name = (_PROC / str(pid) / "comm").read_text().strip()
            if not inside and not (name.startswith("alcove") and str(data) in command.split("\0")):
                continue
            if _is_zombie(pid):
                continue
            if name in _HELPERS and not inside and _name_of_parent(pid) != name:
                helpers[pid] = name
            if name in _SERVER:
                continue
            processes[pid] = name
            namespaces.add(os.readlink(_PROC / str(pid) / "ns" / "net"))
        except OSError:
            continue
    return State(
        processes=processes,
        cgroups={path.name for path in _cgroup_dirs(prefix)},
        uppers={path.name for path in _entries(data / "pool")} | {path.name for path in _entries(data / "uppers")},
        namespaces=namespaces,
        mounts={point for point in _mount_points() if Path(point).is_relative_to(data)},
        loops=loops_of(data),
        files=set(_files(data)),
        helpers=_numbered(helpers.values()),
        # The launcher keeps what it has prepared for templates; test_many.py compares that.
        relay_holds=_numbered(
            kind for pid, name in helpers.items() if name == "alcove-relay" for kind in _kinds_held(pid)
        ),
        launcher_mounts={
            point for pid, name in helpers.items() if name == "alcove-jail" for point in _mount_points(pid)
        },
    )


def relays_of(data):
    """The process ids of the data directory's relays: one, if all is well."""
    wanted = str(Path(data).resolve())
    found = []
    for pid in _pids():
        try:
            name = (_PROC / str(pid) / "comm").read_text().strip()
            arguments = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if name == "alcove-relay" and wanted in arguments and not _is_zombie(pid):
            found.append(pid)
    return found


def processes_of_sandbox(data, sandbox_id):
    """The process ids of all that runs in a sandbox."""
    found = set()
    for path in _cgroup_dirs(cgroup_prefix(Path(data).resolve())):
        if path.name == sandbox_id:
            for folder, _, _ in os.walk(path):
                found |= {int(pid) for pid in (Path(folder) / "cgroup.procs").read_text().split()}
    return found


def cgroup_prefix(data):
    return f"alcove-{hashlib.sha256(str(data).encode()).hexdigest()[:8]}"


def launcher_of(server):
    """The launcher of a server's process, or None. Its own children are boots under way."""
    for pid in _pids():
        try:
            name, _, rest = (_PROC / str(pid) / "stat").read_text().rpartition(")")
        except OSError:
            continue
        if name.endswith("(alcove-jail") and rest.split()[0] not in "ZX" and int(rest.split()[1]) == server:
            return pid
    return None


def processes_naming(folder):
    """[(process id, name)] of those that have the folder, or a path below it, as an argument."""
    found = []
    for pid in _pids():
        try:
            arguments = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if any(f"{argument}/".startswith(f"{folder}/") for argument in arguments) and not _is_zombie(pid):
                found.append((pid, (_PROC / str(pid) / "comm").read_text().strip()))
        except OSError:
            continue
    return found


@dataclasses.dataclass
class Usage:
    """What one process uses."""

    descriptors: int
    networks: int  # network namespaces that it holds open
    memory: int

    def __str__(self):
        return f"{self.descriptors} descriptors, {self.networks} networks, {self.memory >> 20} MiB"


def usage_of(pid):
    proc = _PROC / str(pid)
    return Usage(
        descriptors=len(list((proc / "fd").iterdir())),
        networks=_kinds_held(pid).count("net"),
        memory=int((proc / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE"),
    )


def loops_of(data):
    found = set()
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            if Path(backing.read_text().strip()).is_relative_to(data):
                found.add(backing.parts[3])
        except OSError:
            continue
    return found


def _pids():
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]


def _files(data):
    for folder, folders, names in os.walk(data):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        for name in names:
            path = str((Path(folder) / name).relative_to(data))
            if not _PASSING.fullmatch(path):
                yield path


def _is_zombie(pid):
    """Holds nothing any more; init takes it when it comes round."""
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"


def _cgroup_dirs(prefix):
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] in ("cgroup", "cgroup2"):
            yield from (path for path in _entries(Path(fields[4]) / prefix) if path.is_dir())


def _entries(folder):
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _mount_points(pid="self"):
    return [line.split()[4] for line in (_PROC / str(pid) / "mountinfo").read_text().splitlines()]


def _name_of_parent(pid):
    """A boot under way is a child of the launcher, and has its name and arguments."""
    parent = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1]
    return (_PROC / parent / "comm").read_text().strip()


def _kinds_held(pid):
    """The kinds of what a process has open: socket, pipe, net (a network namespace), file."""
    found = []
    for descriptor in (_PROC / str(pid) / "fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:
            continue
        found.append(target.partition(":")[0] if ":[" in target else "file")
    return found


def _numbered(names):
    """So that sets show when there is more of the same."""
    return {f"{name} {number + 1}" for name, count in collections.Counter(names).items() for number in range(count)}

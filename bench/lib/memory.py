# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What processes and the machine hold, in KiB."""

import contextlib
from pathlib import Path

from lib import wire

_PRIVATE = ("Private_Clean", "Private_Dirty")


def available():
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    raise wire.Failed("no MemAvailable")


def processes(ids):
    """The processes of these sandboxes, as lists of pids by id; the agent comes first."""
    found = {id: [] for id in ids}
    for pid in sorted(_pids()):
        # Each cgroup of a sandbox is named after it.
        for name in {line.rpartition("/")[2] for line in _text(pid, "cgroup").splitlines()}:
            if name in found:
                found[name].append(pid)
    for pids in found.values():
        pids.sort(key=lambda pid: _text(pid, "comm") != "alcove-agent\n")
    return found


def total(pids):
    """Sums of what `of` says."""
    facts = [found for pid in pids if (found := of(pid))]
    return {name: sum(entry[name] for entry in facts) for name in facts[0]}


def of(pid):
    """Rss, Pss and Private; nothing for a process that ended."""
    facts = {"Rss": 0, "Pss": 0, "Private": 0}
    lines = _text(pid, "smaps_rollup").splitlines()[1:]
    for line in lines:
        name, value = line.split(":")
        name = "Private" if name in _PRIVATE else name
        if name in facts:
            facts[name] += int(value.split()[0])
    return facts if lines else None


def text(kib):
    return f"{kib:,.0f} KiB" if abs(kib) < 10_000 else f"{kib / 1024:,.1f} MiB"


def _pids():
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _text(pid, name):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_text()
    return ""

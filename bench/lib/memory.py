# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What processes and the machine hold, in KiB."""

import contextlib
import os
from pathlib import Path

from lib import wire

_PRIVATE = ("Private_Clean", "Private_Dirty")


def available():
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    raise wire.Failed("no MemAvailable")


def agents():
    """First processes of all sandboxes of this machine."""
    return {pid for pid in _pids() if _text(pid, "comm") == "alcove-agent\n" and _is_first(pid)}


def members(agent):
    """Processes of the sandbox whose first process this is, itself among them."""
    place = _namespace(agent)
    return [pid for pid in _pids() if place and _namespace(pid) == place]


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


def _is_first(pid):
    """Pid 1 of its own namespace: the last number of NSpid."""
    numbers = [line for line in _text(pid, "status").splitlines() if line.startswith("NSpid:")]
    return bool(numbers) and numbers[0].split()[-1] == "1"


def _namespace(pid):
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/pid")
    return None


def _text(pid, name):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_text()
    return ""

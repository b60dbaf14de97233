# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Memory of idle sandboxes: what the machine has less of with all of them alive than before and
after (the mean of both), and what their agents hold. Other work on the machine shows in the first
figure, and can make it negative."""

import contextlib
import time
from pathlib import Path

from lib import report, wire

_SANDBOXES = 50
_SETTLE = 2.0


def main():
    api = wire.Api()
    others = set(_agents())
    # What the first one of all brings with it is not part of the next.
    api.kill(api.create())
    before = _settled()
    with contextlib.ExitStack() as ends:
        for _ in range(_SANDBOXES):
            ends.callback(api.kill, api.create())
        alive = _settled()
        figures = [facts for pid in set(_agents()) - others if (facts := _memory(pid))]
    used = ((before + _settled()) / 2 - alive) / _SANDBOXES
    rows = [report.Row("idle sandbox, share of MemAvailable", _kib(used), n=str(_SANDBOXES))]
    for name in ("Rss", "Pss", "Private"):
        samples = [facts[name] for facts in figures]
        if samples:
            p50, p99 = (_kib(report.percentile(samples, share)) for share in (0.5, 0.99))
            rows.append(report.Row(f"agent, {name}", p50, p99, str(len(samples))))
    return rows


def _settled():
    """KiB available once the creates or kills before have had their time."""
    time.sleep(_SETTLE)
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    raise wire.Failed("no MemAvailable")


def _agents():
    """First processes of sandboxes, by name."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text() == "alcove-agent\n":
                yield int(entry.name)


def _memory(pid):
    """KiB by kind; nothing for a process that ended."""
    facts = {"Rss": 0, "Pss": 0, "Private": 0}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, value = line.split(":")
            name = "Private" if name in ("Private_Clean", "Private_Dirty") else name
            if name in facts:
                facts[name] += int(value.split()[0])
        return facts
    return None


def _kib(value):
    return f"{value:,.0f} KiB"


if __name__ == "__main__":
    report.run(main)

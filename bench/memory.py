# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Memory of idle sandboxes: what the machine has less of with all of them alive than before and
after (the mean of both), and what their agents hold. Other work on the machine shows in the first
figure, and can make it negative."""

import contextlib
import time

from lib import memory, report, wire

_SANDBOXES = 50
_SETTLE = 2.0


def main():
    api = wire.Api()
    # What the first one of all brings with it is not part of the next.
    api.kill(api.create())
    before = _settled()
    with contextlib.ExitStack() as ends:
        ids = []
        for _ in range(_SANDBOXES):
            created = api.create()
            ends.callback(api.kill, created)
            ids.append(created["sandboxID"])
        alive = _settled()
        figures = [memory.of(pids[0]) for pids in memory.processes(ids).values()]
    used = ((before + _settled()) / 2 - alive) / _SANDBOXES
    rows = [report.Row("idle sandbox, share of MemAvailable", memory.text(used), n=str(_SANDBOXES))]
    for name in ("Rss", "Pss", "Private"):
        samples = [facts[name] for facts in figures]
        p50, p99 = (memory.text(report.percentile(samples, share)) for share in (0.5, 0.99))
        rows.append(report.Row(f"agent, {name}", p50, p99, str(len(samples))))
    return rows


def _settled():
    """KiB available once the creates or kills before have had their time."""
    time.sleep(_SETTLE)
    return memory.available()


if __name__ == "__main__":
    report.run(main)

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What idle sandboxes cost: processor time of 200 of them that nobody uses, in shares of one core,
and the private memory of an agent a minute after the last of 1,000 commands, with two sandboxes
alive."""

import contextlib
import os
import time
from pathlib import Path

from lib import memory, report, wire

_SANDBOXES = 200
# Until what a create leaves to do is done, and longer than an agent waits before it tidies up.
_SETTLE = 60.0
_WATCHED = 60.0
_COMMANDS = 1000


def main():
    with _sandboxes(2) as used:
        sandbox = used[0]
        command = sandbox.start("/bin/true")
        for _ in range(_COMMANDS):
            wire.expect(sandbox.connection.exchange(command)[0], 200)
        time.sleep(_SETTLE)
        private = [memory.of(pids[0])["Private"] for pids in memory.processes([_id(sandbox)]).values()]
    rows = [report.Row(f"agent, Private, after {_COMMANDS:,} commands", memory.text(private[0]))]
    with _sandboxes(_SANDBOXES) as idle:
        time.sleep(_SETTLE)
        found = memory.processes(map(_id, idle)).values()
        if not all(found):
            raise wire.Failed("a sandbox without processes")
        watched = {f"processor time of {_SANDBOXES} idle sandboxes": [pid for pids in found for pid in pids]}
        if server := _server():
            watched["of their server meanwhile"] = [server]
        before, start = {name: _cpu_seconds(pids) for name, pids in watched.items()}, time.monotonic()
        time.sleep(_WATCHED)
        for name, pids in watched.items():
            share = (_cpu_seconds(pids) - before[name]) / (time.monotonic() - start)
            rows.append(report.Row(name, f"{share * 100:.4f} % of a core"))
    return rows


@contextlib.contextmanager
def _sandboxes(count):
    api = wire.Api()
    made = [api.create() for _ in range(count)]
    try:
        yield [wire.Sandbox(created) for created in made]
    finally:
        # The connection has stood idle for long.
        api = wire.Api()
        for created in made:
            api.kill(created)


def _server():
    """Its process, where it runs on this machine and from a known data directory."""
    with contextlib.suppress(KeyError, OSError, ValueError):
        return int(Path(os.environ["ALCOVE_DATA"], "server.pid").read_text())
    return None


def _id(sandbox):
    return sandbox.headers["E2b-Sandbox-Id"]


def _cpu_seconds(pids):
    """Of all their threads; to the nanosecond, where the clock ticks of /proc/PID/stat would be 0."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


if __name__ == "__main__":
    report.run(main)

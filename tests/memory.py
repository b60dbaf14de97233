# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Watches the resident memory of the server and of all agents while something happens."""

import contextlib
import threading
from pathlib import Path

import pytest
from harness import SANITIZED, server_pid

_PERIOD = 0.01


class Watch:
    def __init__(self):
        server = server_pid()
        self._pids = {server: "alcove"} | {pid: "alcove-agent" for pid in _agents()}
        assert len(self._pids) > 1, "no agent process found"
        self._first = {pid: _resident(pid) for pid in self._pids}
        self._peak = dict(self._first)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def growth(self, name):
        """The largest growth of one process with this name, in bytes. Under a sanitizer, which keeps
        what was freed, it bounds nothing: the test ends here."""
        if SANITIZED:
            pytest.skip("passed so far; memory is not measured under a sanitizer")
        return max(self._peak[pid] - self._first[pid] for pid, each in self._pids.items() if each == name)

    def _run(self):
        while not self._stop.wait(_PERIOD):
            for pid in self._pids:
                self._peak[pid] = max(self._peak[pid], _resident(pid))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._stop.set()
        self._thread.join()

    def __repr__(self):
        lines = (f"{name} {pid}: {self._first[pid] >> 10} -> {self._peak[pid] >> 10} KiB" for pid, name in self._pids.items())
        return "; ".join(lines)


@contextlib.contextmanager
def watch_memory():
    with Watch() as watch:
        yield watch


def _agents():
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "comm").read_text().strip() == "alcove-agent":
                    yield int(entry.name)


def _resident(pid):
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0

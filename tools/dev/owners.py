# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Who a temporary data directory belongs to: a file in it names the process that made it, so that
`./dev clean` can tell an abandoned one from one whose server is just down."""

import os
from pathlib import Path

_FILE = "owner"


def mark(data):
    (Path(data) / _FILE).write_text(f"{os.getpid()} {_start_time(os.getpid())}\n")


def is_alive(data):
    """None if nobody has marked it."""
    try:
        pid, started = map(int, (Path(data) / _FILE).read_text().split())
    except (OSError, ValueError):
        return None
    return _start_time(pid) == started


def _start_time(pid):
    """Tells a process from a later one with the same number."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return None

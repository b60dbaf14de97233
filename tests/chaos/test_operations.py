# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Commands of docs/operations.md, run as they are written there."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(_ROOT / "tools" / "dev"))

import serving  # noqa: E402


def test_relay_is_replaced_as_documented(host):
    """docs/operations.md, after an upgrade: the server starts the new one at once."""
    (command,) = re.findall(r"^    (kill .*alcove-relay.*)$", (_ROOT / "docs" / "operations.md").read_text(), re.M)
    assert "/var/lib/alcove" in command
    box = host.create()
    [old] = _relays(host)
    subprocess.run(["bash", "-c", command.replace("/var/lib/alcove", str(host.data))], check=True)
    deadline = time.monotonic() + 10
    while not (now := _relays(host)) or old in now:
        assert time.monotonic() < deadline, now
        time.sleep(0.05)
    assert len(now) == 1 and host.running
    assert box.commands.run("echo here").stdout == "here\n"
    host.kill_all()


def _relays(host):
    return [pid for pid in serving.processes_of(host.data) if os.readlink(f"/proc/{pid}/exe").endswith("/alcove-relay")]

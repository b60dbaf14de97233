# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The server under test and its relay, as processes that tests kill and watch."""

import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

from harness import DATA_DIR, api, server_pid

_START_LIMIT = 30


def kill_server():
    """SIGKILL; returns what start_server() needs to start the same one again."""
    return _end_server(signal.SIGKILL)


def stop_server():
    """The same with SIGTERM."""
    return _end_server(signal.SIGTERM)


def copy_of_programs(command, folder):
    """The command with the same programs in another place, as an update installs them. Its agent is
    another file than the one that runs."""
    for program in Path(command[0]).parent.glob("alcove*"):
        shutil.copy(program, folder)
    # Bytes behind the end of an ELF file change its hash and nothing else.
    with open(folder / "alcove-agent", "ab") as agent:
        agent.write(b"newer")
    return [str(folder / "alcove"), *command[1:]]


def _end_server(number):
    pid = server_pid()
    command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    environ = dict(entry.split("=", 1) for entry in Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0") if entry)
    handle = os.pidfd_open(pid)
    signal.pidfd_send_signal(handle, number)
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    assert poller.poll(_START_LIMIT * 1000), "the server did not end"
    os.close(handle)
    return command, environ


def start_server(killed):
    """Starts it again and waits until creates succeed."""
    command, environ = killed
    with open(Path(DATA_DIR, "log", "server.log"), "ab") as log:
        subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + _START_LIMIT
    while time.monotonic() < deadline:
        try:
            if api("GET", "/health").status == 200:
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise TimeoutError("the server did not come back")


def relay_pids():
    """The relays of this server's data directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            program = os.path.basename(os.readlink(entry / "exe"))
            args = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if program.startswith("alcove-relay") and DATA_DIR in args:
            found.append(int(entry.name))
    return found


def wait_for(probe, within):
    """The first true value of `probe()`."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if value := probe():
            return value
        time.sleep(0.02)
    raise TimeoutError(f"nothing within {within} s")

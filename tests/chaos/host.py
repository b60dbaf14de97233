# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A server that a test may stop, kill, replace and start again on the same data directory."""

import concurrent.futures
import contextlib
import dataclasses
import http.client
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

import e2b
import httpx
from harness import request
from machine import launcher_of, loops_of, state_of

_ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(_ROOT / "tools" / "dev"))

import cache  # noqa: E402
import owners  # noqa: E402
import serving  # noqa: E402

_POOL_SIZE = "2GiB"


def patiently(call, times=40):
    """Calls again while the client picks connections to a server that is gone from its pool."""
    for _ in range(times):
        with contextlib.suppress(httpx.TransportError):
            return call()
    return call()


class Host:
    """One data directory with its server, driven through the official client and plain HTTP."""

    def __init__(self, pool_size=_POOL_SIZE, templates=None, layers=None):
        self.data = Path(tempfile.mkdtemp(prefix="alcove-test-", dir="/var/tmp"))
        self.data.chmod(0o755)
        owners.mark(self.data)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.server = serving.Server(
            data=self.data,
            listen=f"127.0.0.1:{port}",
            pool_size=pool_size,
            templates=templates or (_ROOT / "templates", _ROOT / "tests" / "chaos" / "templates"),
            layers=layers or cache.folder("layers"),
            options=("--slim",),
            program=Path(os.environ["ALCOVE_BIN"]),
        )
        self._process = None

    # --- the server's process ---

    def start(self, program=None):
        """Starts it and returns when sandboxes can be created."""
        self.begin(program)
        self.server.wait_until_ready(self._process, limit=60)

    def begin(self, program=None):
        if program:
            self.server = dataclasses.replace(self.server, program=program)
        self._process = self.server.start_detached()

    @property
    def pid(self):
        return self._process.pid

    @property
    def running(self):
        return self._process.poll() is None

    def kill(self):
        """SIGKILL, as the kernel does it when memory runs out."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(30)

    def stop(self):
        """SIGTERM, as `./dev down` and systemd do it. Returns how long it took."""
        begun = time.monotonic()
        self._process.terminate()
        assert self._process.wait(30) == 0
        return time.monotonic() - begun

    def kill_launcher(self):
        """SIGKILL to the program that boots sandboxes. Returns its process id."""
        launcher = launcher_of(self.pid)
        if launcher:
            os.kill(launcher, signal.SIGKILL)
        return launcher

    def close(self):
        if self.running:
            self.stop()
        self.server.admin("end-all")
        left = [*serving.processes_of(self.data), *serving.mounts_below(self.data)]
        assert not left, left
        deadline = time.monotonic() + 30
        # Another program's new mount namespace may hold the pool a little longer.
        while loops_of(self.data):
            assert time.monotonic() < deadline, loops_of(self.data)
            time.sleep(0.1)
        shutil.rmtree(self.data)

    # --- sandboxes ---

    @property
    def options(self):
        """What the official client needs to talk to this server."""
        settings = self.server.settings()
        return {
            "api_key": settings["E2B_API_KEY"],
            "api_url": settings["E2B_API_URL"],
            "sandbox_url": settings["E2B_SANDBOX_URL"],
        }

    def create(self, template=None, timeout=600, **options):
        return e2b.Sandbox.create(template, timeout=timeout, **options, **self.options)

    def connect(self, sandbox_id):
        return e2b.Sandbox.connect(sandbox_id, **self.options)

    def api(self, method, path, body=None, **options):
        known = self.options
        return request(method, path, body=body, url=known["api_url"], key=known["api_key"], **options)

    def try_create(self):
        """The id of a sandbox, or None if the server did not answer."""
        try:
            reply = self.api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 600})
        except (OSError, http.client.HTTPException):
            return None
        assert reply.status == 201, (reply.status, reply.body)
        return reply.json["sandboxID"]

    def listed(self):
        paginator = e2b.Sandbox.list(limit=100, **self.options)
        found = set()
        while paginator.has_next:
            found |= {entry.sandbox_id for entry in patiently(paginator.next_items)}
        return found

    def kill_all(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            statuses = set(pool.map(lambda name: self.api("DELETE", f"/sandboxes/{name}").status, self.listed()))
        assert statuses <= {204}, statuses

    # --- the machine ---

    def state(self):
        return state_of(self.data)

    def settled(self, before, within=15):
        """The state, once it has nothing that `before` has not; clean-up goes on in the background."""
        deadline = time.monotonic() + within
        while (now := self.state()).difference(before) and time.monotonic() < deadline:
            time.sleep(0.1)
        return now

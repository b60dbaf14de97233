# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Much of everything in one sandbox: nothing is lost, memory stays flat, nothing leaks. With
ALCOVE_LOAD=full (`./dev test --full`) in the large counts."""

import asyncio
import base64
import contextlib
import hashlib
import io
import os
import time
from pathlib import Path

import e2b
import fuse
import pytest
from harness import eventually, requires, server_pid, to_sandbox
from memory import watch_memory
from pattern import Pattern
from streams import start

pytestmark = [pytest.mark.wire, pytest.mark.limit(900)]

_FULL = os.environ.get("ALCOVE_LOAD") == "full"
_COMMANDS_AT_ONCE = 1000 if _FULL else 200
_COMMANDS_IN_A_ROW = 10_000 if _FULL else 500
_OUTPUT_BYTES = 10**9 if _FULL else 10**8
_FILE_BYTES = 5 * 10**9 if _FULL else 3 * 10**8
_MEBIBYTE = 1 << 20


@pytest.fixture
def large():
    """A sandbox with room for all of it."""
    sandbox = e2b.Sandbox.create("large", timeout=1800)
    yield sandbox
    sandbox.kill()


class _Use:
    """What the server and the agent of a sandbox hold at one moment."""

    def __init__(self, sandbox_id):
        self.pids = {"server": server_pid(), "agent": _agent_of(sandbox_id)}
        self.fds = {name: len(os.listdir(f"/proc/{pid}/fd")) for name, pid in self.pids.items()}
        self.threads = {name: len(os.listdir(f"/proc/{pid}/task")) for name, pid in self.pids.items()}
        self.processes = len(_processes_of(sandbox_id))

    def within(self, other, kept):
        """Nowhere more than `other`, but for connections that are kept for the next request."""
        fds = all(self.fds[name] <= other.fds[name] + kept for name in self.fds)
        threads = all(self.threads[name] <= other.threads[name] for name in self.threads)
        return fds and threads and self.processes <= other.processes

    def __repr__(self):
        return f"fds {self.fds}, threads {self.threads}, {self.processes} processes"


def _processes_of(sandbox_id):
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"/{sandbox_id}\n" in (entry / "cgroup").read_text():
                found.append(int(entry.name))
    return found


def _agent_of(sandbox_id):
    return next(pid for pid in _processes_of(sandbox_id) if Path(f"/proc/{pid}/comm").read_text() == "alcove-agent\n")


async def _returns_to(sandbox_id, before, kept=0):
    """Waits for what lives on for a while by design: idle threads, and connections for half a minute."""
    assert await eventually(lambda: _Use(sandbox_id).within(before, kept), within=45, every=0.5), (before, _Use(sandbox_id))


async def test_many_commands_at_once(large):
    assert int(os.environ["E2B_MAX_CONNECTIONS"]) > _COMMANDS_AT_ONCE, "the client would wait for itself"
    sandbox = await e2b.AsyncSandbox.connect(large.sandbox_id)
    await sandbox.commands.run("mkfifo /tmp/gate")
    before = _Use(large.sandbox_id)

    async def wait_at_gate(number):
        # All wait for the gate, so all are there at the same time.
        script = f"read line < /tmp/gate; echo out {number}; echo err {number} >&2; exit {number % 7}"
        return await sandbox.commands.run(script, background=True, timeout=0, request_timeout=300)

    handles = await asyncio.gather(*(wait_at_gate(number) for number in range(_COMMANDS_AT_ONCE)))
    assert len({handle.pid for handle in handles}) == _COMMANDS_AT_ONCE
    listed = {process.pid for process in await sandbox.commands.list(request_timeout=60)}
    assert listed == {handle.pid for handle in handles}
    # Others are served meanwhile.
    assert (await sandbox.commands.run("echo also", timeout=60)).stdout == "also\n"

    waits = [asyncio.ensure_future(handle.wait()) for handle in handles]
    await sandbox.commands.run(": > /tmp/gate", timeout=60)
    ends = await asyncio.gather(*waits, return_exceptions=True)
    for number, end in enumerate(ends):
        assert (end.stdout, end.stderr, end.exit_code) == (f"out {number}\n", f"err {number}\n", number % 7), number
    assert await sandbox.commands.list() == []
    # The gateway keeps some idle connections to the agent, the client some to the gateway.
    await _returns_to(large.sandbox_id, before, kept=100)


def test_much_output_for_a_slow_reader(large):
    pauses = 10
    with watch_memory() as memory:
        stream = start(large, f"seq -w 1 999999999 | head -c {_OUTPUT_BYTES}", receive_buffer=1 << 16)
        received, digest, paused, ended = 0, hashlib.sha256(), 0, None
        for event in stream.events():
            if "data" in event:
                data = base64.b64decode(event["data"]["stdout"])
                received += len(data)
                digest.update(data)
                if received * pauses // _OUTPUT_BYTES > paused:
                    paused += 1
                    time.sleep(0.5)
            ended = event.get("end", ended)
    assert (received, paused) == (_OUTPUT_BYTES, pauses)
    assert ended == {"exited": True, "status": "exit status 0"}
    assert digest.digest() == _digest_of_numbers(_OUTPUT_BYTES)
    assert memory.growth("alcove") < 24 * _MEBIBYTE, memory
    assert memory.growth("alcove-agent") < 8 * _MEBIBYTE, memory


def _digest_of_numbers(size):
    digest, first, step = hashlib.sha256(), 1, 100_000
    while size > 0:
        block = b"".join(b"%09d\n" % number for number in range(first, first + step))[:size]
        digest.update(block)
        size -= len(block)
        first += step
    return digest.digest()


async def test_a_client_that_vanishes(large):
    large.commands.run("true")
    before = _Use(large.sandbox_id)
    size = 64 * _MEBIBYTE
    streams = []
    for number in range(20):
        stream = start(large, f"sleep 1; head -c {size} /dev/zero; echo done > /tmp/done{number}", receive_buffer=1 << 16)
        assert "start" in next(stream.events())
        streams.append(stream)
    # Some go before there is output, some while much of it waits for them.
    for stream in streams[:10]:
        stream.vanish()
    await asyncio.sleep(2.5)
    assert len(large.commands.list()) == 10, "a reader that does not read holds its command up"
    for stream in streams[10:]:
        stream.vanish()
    assert await eventually(lambda: large.commands.run("ls /tmp/done* | wc -l").stdout == "20\n", within=60, every=0.5)
    assert large.commands.list() == []
    await _returns_to(large.sandbox_id, before)


async def test_many_commands_in_a_row(large):
    for _ in range(20):
        large.commands.run("true")
    before = _Use(large.sandbox_id)
    with watch_memory() as memory:
        for number in range(_COMMANDS_IN_A_ROW):
            assert large.commands.run(f"echo {number}").stdout == f"{number}\n"
    await _returns_to(large.sandbox_id, before)
    assert memory.growth("alcove") < 24 * _MEBIBYTE, memory
    assert memory.growth("alcove-agent") < 16 * _MEBIBYTE, memory


@requires(2, 50, why="sends a stream in one piece")
def test_a_large_file_in_flat_memory(large):
    source = io.BufferedReader(Pattern(_FILE_BYTES), buffer_size=_MEBIBYTE)
    with watch_memory() as memory:
        large.files.write("/home/user/large", source, request_timeout=0)
        digest, total = hashlib.sha256(), 0
        for chunk in large.files.read("/home/user/large", format="stream", request_timeout=0):
            digest.update(chunk)
            total += len(chunk)
    assert total == _FILE_BYTES
    assert digest.digest() == source.raw.digest.digest()
    assert memory.growth("alcove") < 24 * _MEBIBYTE, memory
    assert memory.growth("alcove-agent") < 8 * _MEBIBYTE, memory


async def test_a_file_system_that_hangs_stops_nothing_else(large):
    large.files.write("/tmp/hung.py", fuse.PROGRAM)
    daemon = start(large, "sudo python3 /tmp/hung.py /mnt/hung hung")
    output = (base64.b64decode(event["data"]["stdout"]) for event in daemon.events() if "data" in event)
    assert next(output) == b"mounted\n"
    hung = await e2b.AsyncSandbox.connect(large.sandbox_id)
    fast = await e2b.AsyncSandbox.connect(large.sandbox_id)
    asked = []
    # More than the agent has threads for.
    for number in range(30):
        asked += [
            asyncio.ensure_future(hung.files.read(f"/mnt/hung/{number}", request_timeout=600)),
            asyncio.ensure_future(hung.files.list(f"/mnt/hung/{number}", request_timeout=600)),
            asyncio.ensure_future(hung.files.write(f"/mnt/hung/{number}", "x", request_timeout=600)),
            asyncio.ensure_future(hung.commands.run("true", cwd=f"/mnt/hung/{number}", request_timeout=600)),
        ]
    await asyncio.sleep(1)
    assert not [task for task in asked if task.done()]

    async def works():
        assert (await fast.commands.run("echo fine", timeout=20)).stdout == "fine\n"
        await fast.files.write("/tmp/other", "fine")
        assert await fast.files.read("/tmp/other") == "fine"
        assert "other" in {entry.name for entry in await fast.files.list("/tmp")}

    started = time.monotonic()
    for _ in range(10):
        await works()
    assert time.monotonic() - started < 20
    assert to_sandbox("GET", "/health", large.sandbox_id).status == 204
    # When it answers at last (its end is an answer), all go on.
    await fast.commands.run("sudo pkill -f hung.py", timeout=20)
    ends = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 60)
    assert all(isinstance(end, Exception) for end in ends), ends
    await works()
    daemon.vanish()

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Much of everything in one sandbox: nothing is lost, memory stays flat, nothing leaks. With
ALCOVE_LOAD=full (`./dev test --full`) in the large counts."""

import asyncio
import base64
import contextlib
import hashlib
import http.client
import io
import json
import os
import time
import urllib.parse
from pathlib import Path

import e2b
import fuse
import pytest
from harness import SANDBOX_URL, eventually, requires, server_pid, to_sandbox
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
    await sandbox.commands.run("mkfifo /tmp/gate && ln /tmp/gate /tmp/first-gate")
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
    # On a busy machine some are on their way to the gate: they find it open, and it is held open for
    # those who are just stepping in.
    opened = "touch /tmp/open && mv /tmp/open /tmp/gate && exec 3<> /tmp/first-gate && sleep 2"
    await sandbox.commands.run(opened, timeout=60)
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


def test_a_large_form_in_flat_memory(large):
    """Several files in one request, which no client sends in pieces."""
    # One is ignored, because it is not called "file".
    sizes = {"file": _FILE_BYTES - 10**6, "other": 10**6}
    boundary = "alcove-load-test"
    heads = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="/home/user/{name}"\r\n\r\n'.encode()
        for name in sizes
    ]
    end = f"\r\n--{boundary}--\r\n".encode()
    parts = {name: Pattern(size) for name, size in sizes.items()}
    target = urllib.parse.urlsplit(SANDBOX_URL)
    connection = http.client.HTTPConnection(target.hostname, target.port, timeout=600)
    with watch_memory() as memory:
        connection.putrequest("POST", "/files?username=user")
        fields = {
            "E2b-Sandbox-Id": large.sandbox_id,
            "E2b-Sandbox-Port": "49983",
            "X-Access-Token": large._envd_access_token,
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Content-Length": sum(sizes.values()) + sum(map(len, heads)) + len(b"\r\n") + len(end),
        }
        for name, value in fields.items():
            connection.putheader(name, str(value))
        connection.endheaders()
        for number, (head, part) in enumerate(zip(heads, parts.values(), strict=True)):
            connection.send(b"\r\n" * (number > 0) + head)
            while piece := part.read(_MEBIBYTE):
                connection.send(piece)
        connection.send(end)
        reply = connection.getresponse()
        assert (reply.status, [file["path"] for file in json.loads(reply.read())]) == (200, ["/home/user/file"])
    connection.close()
    stored = large.commands.run("sha256sum < /home/user/file", timeout=300).stdout.split()[0]
    assert stored == parts["file"].digest.hexdigest()
    assert not large.files.exists("/home/user/other")
    assert memory.growth("alcove") < 24 * _MEBIBYTE, memory
    assert memory.growth("alcove-agent") < 8 * _MEBIBYTE, memory


async def test_a_hundred_hung_calls_and_what_becomes_of_them(large):
    large.files.write("/tmp/hung.py", fuse.PROGRAM)
    daemon = start(large, "sudo python3 /tmp/hung.py /mnt/hung hung")
    output = (base64.b64decode(event["data"]["stdout"]) for event in daemon.events() if "data" in event)
    assert next(output) == b"mounted\n"
    large.commands.run("ln -s /mnt/hung/x /tmp/to-hung; mkdir -p /tmp/own/below; echo text > /tmp/own/below/file", user="root")
    before = _Use(large.sandbox_id)
    hung = await e2b.AsyncSandbox.connect(large.sandbox_id)
    fast = await e2b.AsyncSandbox.connect(large.sandbox_id)
    begin = time.monotonic()
    asked = []
    for number in range(100):
        path = f"/mnt/hung/{number}"
        asked += [
            asyncio.ensure_future(call)
            for call in (
                hung.files.read(path, request_timeout=15),
                hung.files.get_info(path, request_timeout=15),
                hung.files.write(path, "x", request_timeout=15),
                # Its entries lie there, though itself it does not.
                hung.files.list("/tmp", request_timeout=15),
                hung.commands.run("true", cwd=path, timeout=15, request_timeout=15),
            )
        ]
    await asyncio.sleep(2)
    for _ in range(5):
        assert (await fast.commands.run("echo fine", timeout=20)).stdout == "fine\n"
        await fast.files.write("/tmp/own/new", "fine", request_timeout=20)
        assert await fast.files.read("/tmp/own/new", request_timeout=20) == "fine"
        assert {entry.name for entry in await fast.files.list("/tmp/own", depth=3, request_timeout=20)} == {"below", "file", "new"}
        watch = await fast.files.watch_dir("/tmp/own", lambda event: None, recursive=True, request_timeout=20)
        await watch.stop()
        await fast.files.remove("/tmp/own/new", request_timeout=20)
    # Each call ends by itself, and nothing of it stays but threads that the kernel does not give back.
    ends = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 60)
    assert all(isinstance(end, Exception) for end in ends), ends
    assert time.monotonic() - begin < 60
    # A start that hangs holds five descriptors for its streams.
    most = before.fds["agent"] + 5 * 100 + 100
    assert await eventually(lambda: _Use(large.sandbox_id).fds["agent"] < most, within=30, every=0.5), _Use(large.sandbox_id)
    assert (await fast.commands.run("echo fine", timeout=20)).stdout == "fine\n"
    await fast.commands.run("sudo pkill -f hung.py", timeout=20)
    assert await fast.files.exists("/tmp/own/below/file")
    daemon.vanish()


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

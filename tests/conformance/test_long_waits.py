# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What happens, or must not happen, after a minute and more: idle streams stay open, stalled uploads
do not, results are forgotten, connections are used again. All at the same time, and only in the full
tier or by name."""

import asyncio
import http.client
import os
import time
import urllib.parse

import e2b
import pytest
from e2b import CommandExitException, NotFoundException
from harness import BY_DOMAIN, SANDBOX_URL, eventually, requires, trusted
from hostile import dial, to_agent

pytestmark = [
    pytest.mark.wire,
    pytest.mark.limit(600),
    pytest.mark.skipif(os.environ.get("ALCOVE_LOAD") != "full", reason="takes five minutes (./dev test --full)"),
]

_LONG = 130
_POOLED = 310


async def _silent_command(sandbox):
    """Nothing but keepalives on the way, every 50 s."""
    assert (await sandbox.commands.run(f"sleep {_LONG}; echo woke", timeout=0)).stdout == "woke\n"


async def _input_after_silence(sandbox):
    handle = await sandbox.commands.run("head -n 2", background=True, stdin=True, timeout=0)
    async with sandbox.commands.stream_input(handle.pid, timeout=0) as stream:
        await stream.send("first\n")
        await asyncio.sleep(_LONG)
        await stream.send("second\n")
        assert (await handle.wait()).stdout == "first\nsecond\n"


async def _watch_after_silence(sandbox):
    events = []
    await sandbox.files.make_dir("/tmp/quiet")
    handle = await sandbox.files.watch_dir("/tmp/quiet", on_event=events.append, timeout=0)
    await asyncio.sleep(_LONG)
    await sandbox.files.write("/tmp/quiet/f", "x")
    assert await eventually(lambda: any(event.name == "f" for event in events), within=10)
    await handle.stop()


async def _results_are_kept_for_half_a_minute(sandbox):
    handle = await sandbox.commands.run("exit 5", background=True)
    with pytest.raises(CommandExitException):
        await handle.wait()
    await asyncio.sleep(20)
    with pytest.raises(CommandExitException) as info:
        await (await sandbox.commands.connect(handle.pid)).wait()
    assert info.value.exit_code == 5
    await asyncio.sleep(20)
    with pytest.raises(NotFoundException):
        await sandbox.commands.connect(handle.pid)


def _upload(sandbox, name, pauses):
    """Sends a byte after each pause; the time until the server ended the connection, and its answer."""
    with dial(timeout=_LONG + 60) as connection:
        head = f"POST /files?path=/tmp/{name} HTTP/1.1\r\nContent-Type: application/octet-stream\r\n".encode()
        connection.sendall(head + to_agent(sandbox) + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(pauses))
        begin = time.monotonic()
        for pause in pauses:
            connection.settimeout(pause)
            try:
                if not connection.recv(1, 0x2):  # MSG_PEEK
                    return time.monotonic() - begin, b""
            except TimeoutError:
                pass
            except ConnectionError:
                return time.monotonic() - begin, b""
            connection.sendall(b"x")
        connection.settimeout(60)
        return time.monotonic() - begin, connection.recv(65536)


async def _stalled_upload_is_cut(sandbox):
    waited, answer = await asyncio.to_thread(_upload, sandbox, "stalled", [1, 200])
    # The agent cuts it; what the gateway says about that is no success.
    assert not answer.startswith(b"HTTP/1.1 2") and 80 < waited < 150, (waited, answer)


async def _slow_upload_is_not(sandbox):
    _, answer = await asyncio.to_thread(_upload, sandbox, "slow", [30] * 4)
    assert answer.startswith(b"HTTP/1.1 200"), answer
    assert await sandbox.files.read("/tmp/slow") == "xxxx"


def _use_again(connection, host, pause):
    """Two requests for the agent over one connection, with a pause between them."""
    connection.connect()
    socket = connection.sock
    for wait in (pause, 0):
        connection.request("GET", "/health", headers={"Host": host})
        reply = connection.getresponse()
        assert (reply.status, reply.read(), connection.sock) == (204, b"", socket)
        time.sleep(wait)
    connection.close()


async def _idle_connections_outlive_the_clients_pools(sandbox):
    """The clients keep theirs for 300 s."""
    origin = urllib.parse.urlsplit(SANDBOX_URL)
    host = f"49983-{sandbox.sandbox_id}.{BY_DOMAIN['E2B_DOMAIN']}"
    plain = http.client.HTTPConnection(origin.hostname, origin.port, timeout=10)
    tls = http.client.HTTPSConnection(host, timeout=10, context=trusted())
    await asyncio.gather(*(asyncio.to_thread(_use_again, connection, host, _POOLED) for connection in (plain, tls)))


@requires(2, 58, why="has no stream_input")
async def test_long_waits():
    sandbox = await e2b.AsyncSandbox.create(timeout=600)
    try:
        await asyncio.gather(
            *(
                wait(sandbox)
                for wait in (
                    _silent_command,
                    _input_after_silence,
                    _watch_after_silence,
                    _results_are_kept_for_half_a_minute,
                    _stalled_upload_is_cut,
                    _slow_upload_is_not,
                    _idle_connections_outlive_the_clients_pools,
                )
            )
        )
    finally:
        await sandbox.kill()

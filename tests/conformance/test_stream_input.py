# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""commands.stream_input: one call that feeds a command while its request body stays open. The sync
client takes it from an iterator, the async one gives a handle."""

import asyncio
import base64
import threading

import pytest
from e2b import NotFoundException, PtySize, SandboxException, TimeoutException
from harness import eventually, got, raises, requires
from streams import Stream

pytestmark = requires(2, 58, why="has no stream_input")


async def _cat(sandbox, script="exec cat > /tmp/got", **options):
    """A command that stores what it gets as it comes."""
    return await got(sandbox.commands.run(script, background=True, stdin=True, timeout=0, **options))


async def _stored(sandbox, text):
    async def complete():
        return await got(sandbox.files.exists("/tmp/got")) and await got(sandbox.files.read("/tmp/got")) == text

    assert await eventually(complete, within=20), await got(sandbox.files.read("/tmp/got"))


async def _feed(client, sandbox, pid, pieces, **options):
    """Streams all pieces in one call."""
    if client.flavour == "sync":
        sandbox.commands.stream_input(pid, iter(pieces), **options)
        return
    async with sandbox.commands.stream_input(pid, **options) as handle:
        for piece in pieces:
            await handle.send(piece)


async def test_each_piece_arrives_while_the_call_goes_on(client, sandbox):
    handle = await _cat(sandbox)
    if client.flavour == "async":
        stream = sandbox.commands.stream_input(handle.pid)
        for number in range(1, 4):
            await stream.send(f"line {number}\n")
            await _stored(sandbox, "".join(f"line {n}\n" for n in range(1, number + 1)))
        await stream.close()
        return

    def pieces():
        for number in range(1, 4):
            yield f"line {number}\n"
            # Asked by the iterator itself: the next piece is not there before this one arrived.
            asyncio.run(_stored(sandbox, "".join(f"line {n}\n" for n in range(1, number + 1))))

    sandbox.commands.stream_input(handle.pid, pieces())


async def test_text_bytes_and_nothing_pass_unchanged(client, sandbox):
    handle = await _cat(sandbox, "sha256sum; sleep 0.2")
    pieces = ["ünï & <b>\n", b"\x00\xff\xfe", "", b"", bytes(range(256)) * 300, "end"]
    await _feed(client, sandbox, handle.pid, pieces)
    await got(sandbox.commands.close_stdin(handle.pid))
    joined = b"".join(piece if isinstance(piece, bytes) else piece.encode() for piece in pieces)
    local = await got(sandbox.files.write("/tmp/same", joined))
    expected = (await got(sandbox.commands.run(f"sha256sum < {local.path}"))).stdout
    assert (await got(handle.wait())).stdout == expected


async def test_end_of_the_call_leaves_stdin_open(client, sandbox):
    handle = await _cat(sandbox, "cat; echo end")
    await _feed(client, sandbox, handle.pid, ["first "])
    await got(sandbox.commands.send_stdin(handle.pid, "second "))
    await _feed(client, sandbox, handle.pid, ["third\n"])
    await got(sandbox.commands.close_stdin(handle.pid))
    assert (await got(handle.wait())).stdout == "first second third\nend\n"


async def test_more_than_a_pipe_holds_waits_for_the_reader(client, sandbox):
    handle = await _cat(sandbox, "sleep 2; wc -c")
    await _feed(client, sandbox, handle.pid, [b"x" * 100_000] * 50)
    await got(sandbox.commands.close_stdin(handle.pid))
    assert (await got(handle.wait())).stdout == "5000000\n"


@pytest.mark.limit(100)
async def test_unknown_pid_is_said_before_the_input_ends(client, sandbox):
    if client.flavour == "async":
        stream = sandbox.commands.stream_input(999999)

        async def refused():
            try:
                await stream.send("x")
            except NotFoundException:
                return True
            return False

        # Nobody closes it: the answer comes by itself.
        assert await eventually(refused, within=20)
        with raises(NotFoundException):
            await stream.close()
        return
    with raises(NotFoundException):
        sandbox.commands.stream_input(999999, iter(["x"]))


async def test_its_own_timeout_ends_the_call_but_not_the_command(client, sandbox):
    handle = await _cat(sandbox)
    if client.flavour == "async":
        stream = sandbox.commands.stream_input(handle.pid, timeout=1)
        await stream.send("before\n")

        async def expired():
            try:
                await stream.send("")
            except TimeoutException:
                return True
            return False

        assert await eventually(expired, within=20)
    else:
        never = threading.Event()

        def pieces():
            yield "before\n"
            never.wait(3)
            yield ""

        with raises(TimeoutException):
            sandbox.commands.stream_input(handle.pid, pieces(), timeout=1)
    await got(sandbox.commands.send_stdin(handle.pid, "after\n"))
    await _stored(sandbox, "before\nafter\n")


async def test_input_that_the_command_cannot_take(client, sandbox):
    without = await got(sandbox.commands.run("sleep 300", background=True, stdin=False))
    with raises(SandboxException):
        await _feed(client, sandbox, without.pid, ["x"])
    callback = {} if client.flavour == "sync" else {"on_data": lambda data: None}
    terminal = await got(sandbox.pty.create(PtySize(rows=24, cols=80), **callback))
    with raises(SandboxException):
        await _feed(client, sandbox, terminal.pid, ["x"])
    closed = await _cat(sandbox, "exec 0<&-; echo closed > /tmp/state; sleep 300")
    assert await eventually(lambda: sandbox.files.exists("/tmp/state"), within=10)
    with raises(SandboxException):
        await _feed(client, sandbox, closed.pid, ["x"])


async def test_two_streams_into_one_command(client, sandbox):
    if client.flavour == "sync":
        pytest.skip("the sync client's call blocks")
    handle = await _cat(sandbox, "sort > /tmp/got")
    pieces = [[f"{name}{n:03}\n" for n in range(200)] for name in "ab"]
    await asyncio.gather(*(_feed(client, sandbox, handle.pid, own) for own in pieces))
    await got(sandbox.commands.close_stdin(handle.pid))
    await got(handle.wait())
    assert await got(sandbox.files.read("/tmp/got")) == "".join(pieces[0] + pieces[1])


@pytest.mark.wire
@pytest.mark.parametrize(
    ("first", "code"),
    [
        ({"start": {"process": {"pid": 999999}}}, "not_found"),
        ({"start": {"process": {"tag": "of nobody"}}}, "not_found"),
        ({"start": {"process": {}}}, "unimplemented"),
        ({"data": {"input": {"stdin": "eA=="}}}, "invalid_argument"),
    ],
    ids=["unknown pid", "unknown tag", "no selector", "data first"],
)
async def test_refusal_does_not_wait_for_the_body(client, sandbox, first, code):
    stream = Stream(sandbox, "StreamInput")
    stream.send(first)
    # The body is never finished.
    assert [message.get("error", {}).get("code") for message in stream.messages()] == [code]
    stream.vanish()


@pytest.mark.wire
async def test_keepalives_mean_nothing_and_a_cut_call_harms_nothing(client, sandbox):
    handle = await _cat(sandbox)
    stream = Stream(sandbox, "StreamInput")
    stream.send({"start": {"process": {"pid": handle.pid}}})
    for piece in (b"one ", b"two "):
        stream.send({"keepalive": {}})
        stream.send({"data": {"input": {"stdin": base64.b64encode(piece).decode()}}})
    await _stored(sandbox, "one two ")
    stream.vanish()
    await got(sandbox.commands.send_stdin(handle.pid, "three"))
    await _stored(sandbox, "one two three")

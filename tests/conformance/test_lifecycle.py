# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A sandbox's life by the official client: create, find, connect, time out, kill."""

import asyncio
import datetime
import time

import e2b
import pytest
from e2b import (
    AuthenticationException,
    NotFoundException,
    SandboxException,
    SandboxNotFoundException,
    SandboxQuery,
    SandboxState,
    TimeoutException,
)
from harness import API_KEY, SANDBOX_ID, VERSION, NotRunning, assert_kill_is_told, eventually, got, raises, requires

_has_order = requires(2, 40, why="has no order, startedAfter or template filter")


@pytest.mark.smoke
async def test_create_gives_a_running_sandbox(client, sandbox):
    assert SANDBOX_ID.fullmatch(sandbox.sandbox_id)
    assert await got(sandbox.is_running()) is True
    assert sandbox.get_host(3000).startswith(f"3000-{sandbox.sandbox_id}.")


@pytest.mark.smoke
async def test_info(client, make_sandbox):
    before = datetime.datetime.now(datetime.timezone.utc)
    sandbox = await make_sandbox(timeout=200, metadata={"a": "1", "ü": "ß & ="})
    info = await got(sandbox.get_info())
    assert info.sandbox_id == sandbox.sandbox_id
    assert info.metadata == {"a": "1", "ü": "ß & ="}
    assert info.state == SandboxState.RUNNING
    assert info.name == "base"
    assert (info.cpu_count, info.memory_mb) == (2, 1024)
    assert info.envd_version == "0.6.13"
    assert abs((info.started_at - before).total_seconds()) < 10
    assert (info.end_at - info.started_at).total_seconds() == pytest.approx(200, abs=1)
    assert (await got(client.Sandbox.get_info(sandbox.sandbox_id))).sandbox_id == sandbox.sandbox_id


@pytest.mark.smoke
async def test_kill(client, make_sandbox):
    sandbox = await make_sandbox()
    assert await got(sandbox.kill()) is True
    # At once, not after a while.
    assert await got(sandbox.is_running()) is False
    assert await got(sandbox.kill()) is False
    assert sandbox.sandbox_id not in [entry.sandbox_id for entry in await client.listed()]
    with raises(SandboxNotFoundException):
        await got(sandbox.get_info())


async def test_kill_by_id(client, make_sandbox):
    sandbox = await make_sandbox()
    assert await got(client.Sandbox.kill(sandbox.sandbox_id)) is True
    assert await got(sandbox.is_running()) is False
    assert await got(client.Sandbox.kill("nonexistingsandbox")) is False


@pytest.mark.smoke
async def test_calls_to_a_killed_sandbox(client, make_sandbox):
    sandbox = await make_sandbox()
    await got(sandbox.kill())
    with raises(NotRunning):
        await got(sandbox.commands.run("true"))
    with raises(NotRunning):
        await got(sandbox.commands.list())
    with raises(NotRunning):
        await got(sandbox.files.read("/etc/hostname"))
    with raises(NotRunning):
        await got(sandbox.files.write("/tmp/x", "x"))
    with raises(NotRunning):
        await got(sandbox.files.exists("/etc/hostname"))
    with raises(SandboxNotFoundException):
        await got(client.Sandbox.connect(sandbox.sandbox_id))
    with raises(SandboxNotFoundException):
        await got(sandbox.set_timeout(10))


@pytest.mark.skipif(VERSION < (2, 40), reason="does not look at the sandbox's health")
async def test_killed_while_a_command_runs(client, make_sandbox):
    await assert_kill_is_told(client, await make_sandbox())


@pytest.mark.smoke
@pytest.mark.limit(30)
async def test_ends_by_itself_at_its_time(client, make_sandbox):
    sandbox = await make_sandbox(timeout=3)
    handle = await got(sandbox.commands.run("sleep 60", background=True))
    end = (await got(sandbox.get_info())).end_at

    def seconds_left():
        return (end - datetime.datetime.now(datetime.timezone.utc)).total_seconds()

    await asyncio.sleep(max(0, seconds_left() - 0.7))
    assert await got(sandbox.is_running()) is True

    async def ended():
        return not await got(sandbox.is_running())

    assert await eventually(ended, within=seconds_left() + 1.5)
    assert seconds_left() <= 0.05
    with raises(SandboxNotFoundException):
        await got(sandbox.get_info())
    assert sandbox.sandbox_id not in [entry.sandbox_id for entry in await client.listed()]
    # Older clients show the cut connection as it is.
    with pytest.raises(TimeoutException if VERSION >= (2, 40) else Exception):
        await got(handle.wait())


async def test_set_timeout_lengthens_and_shortens(make_sandbox):
    sandbox = await make_sandbox(timeout=100)
    for seconds in (500, 50):
        before = datetime.datetime.now(datetime.timezone.utc)
        await got(sandbox.set_timeout(seconds))
        left = ((await got(sandbox.get_info())).end_at - before).total_seconds()
        assert left == pytest.approx(seconds, abs=3)


async def test_set_timeout_keeps_a_sandbox_alive(make_sandbox):
    sandbox = await make_sandbox(timeout=3)
    await got(sandbox.set_timeout(60))
    await asyncio.sleep(4)
    assert await got(sandbox.is_running()) is True


async def test_set_timeout_zero_ends_it_now(make_sandbox):
    sandbox = await make_sandbox(timeout=60)
    await got(sandbox.set_timeout(0))

    async def ended():
        return not await got(sandbox.is_running())

    assert await eventually(ended, within=2)


async def test_set_timeout_by_id_of_an_unknown_sandbox(client):
    with raises(SandboxNotFoundException):
        await got(client.Sandbox.set_timeout("nonexistingsandbox", 10))


@requires(2, 40, why="its connected handles send no routing headers: needs the TLS domain (issue 7)")
@pytest.mark.smoke
async def test_connect_shares_the_sandbox(client, make_sandbox):
    sandbox = await make_sandbox()
    await got(sandbox.files.write("/tmp/mark", "here"))
    other = await got(client.Sandbox.connect(sandbox.sandbox_id))
    assert other.sandbox_id == sandbox.sandbox_id
    assert await got(other.files.read("/tmp/mark")) == "here"
    assert (await got(other.commands.run("echo connected"))).stdout == "connected\n"
    assert await got(other.is_running()) is True


async def test_connect_with_the_old_suffix(client, make_sandbox):
    sandbox = await make_sandbox()
    other = await got(client.Sandbox.connect(f"{sandbox.sandbox_id}-6532622b"))
    assert (await got(other.commands.run("echo ok"))).stdout == "ok\n"


async def test_connect_never_shortens(client, make_sandbox):
    sandbox = await make_sandbox(timeout=300)
    end = (await got(sandbox.get_info())).end_at
    await got(client.Sandbox.connect(sandbox.sandbox_id, timeout=10))
    assert (await got(sandbox.get_info())).end_at == end
    await got(client.Sandbox.connect(sandbox.sandbox_id, timeout=1000))
    assert (await got(sandbox.get_info())).end_at > end + datetime.timedelta(seconds=600)


async def test_connect_to_an_unknown_sandbox(client):
    with raises(SandboxNotFoundException):
        await got(client.Sandbox.connect("nonexistingsandbox"))


@pytest.mark.smoke
async def test_list_by_metadata(client, make_sandbox):
    mark = f"m-{time.time_ns()}"
    first = await make_sandbox(metadata={"mark": mark, "my key": "a&b=c d"})
    await make_sandbox(metadata={"mark": mark, "my key": "other"})
    both = await client.listed(query=SandboxQuery(metadata={"mark": mark}))
    assert len(both) == 2
    one = await client.listed(query=SandboxQuery(metadata={"mark": mark, "my key": "a&b=c d"}))
    assert [entry.sandbox_id for entry in one] == [first.sandbox_id]
    assert one[0].metadata == {"mark": mark, "my key": "a&b=c d"}
    assert await client.listed(query=SandboxQuery(metadata={"mark": "nothing has this"})) == []


async def test_list_by_state(client, sandbox):
    running = await client.listed(query=SandboxQuery(state=[SandboxState.RUNNING]))
    assert sandbox.sandbox_id in [entry.sandbox_id for entry in running]
    paused = await client.listed(query=SandboxQuery(state=[SandboxState.PAUSED]))
    assert sandbox.sandbox_id not in [entry.sandbox_id for entry in paused]


async def test_list_in_pages(client, make_sandbox):
    mark = f"m-{time.time_ns()}"
    made = [(await make_sandbox(metadata={"mark": mark})).sandbox_id for _ in range(5)]
    query = SandboxQuery(metadata={"mark": mark})
    pages = [[entry.sandbox_id for entry in page] async for page in client.pages(query=query, limit=2)]
    # Newest first.
    assert pages == [[made[4], made[3]], [made[2], made[1]], [made[0]]]


@_has_order
async def test_list_in_order(client, make_sandbox):
    mark = f"m-{time.time_ns()}"
    made = [(await make_sandbox(metadata={"mark": mark})).sandbox_id for _ in range(3)]
    query = SandboxQuery(metadata={"mark": mark})
    upwards = [entry.sandbox_id for entry in await client.listed(query=query, order="asc")]
    assert upwards == made
    pages = [[entry.sandbox_id for entry in page] async for page in client.pages(query=query, limit=2, order="asc")]
    assert pages == [made[:2], made[2:]]


@_has_order
async def test_list_started_after(client, make_sandbox):
    mark = f"m-{time.time_ns()}"
    sandbox = await make_sandbox(metadata={"mark": mark})
    started = (await got(sandbox.get_info())).started_at

    async def found(after):
        query = SandboxQuery(metadata={"mark": mark}, started_after=after)
        return [entry.sandbox_id for entry in await client.listed(query=query)]

    assert await found(started) == [sandbox.sandbox_id]
    assert await found(started + datetime.timedelta(seconds=1)) == []


@_has_order
async def test_list_by_template(client, make_sandbox):
    mark = f"m-{time.time_ns()}"
    sandbox = await make_sandbox(metadata={"mark": mark})
    template = (await got(sandbox.get_info())).template_id
    for wanted, expected in ((template, [sandbox.sandbox_id]), ("base", [sandbox.sandbox_id]), ("no-such-template", [])):
        query = SandboxQuery(metadata={"mark": mark}, template=wanted)
        assert [entry.sandbox_id for entry in await client.listed(query=query)] == expected


async def test_sandboxes_are_apart(make_sandbox):
    first = await make_sandbox()
    second = await make_sandbox()
    await got(first.files.write("/tmp/only-here", "x"))
    assert await got(second.files.exists("/tmp/only-here")) is False
    await got(first.commands.run("sleep 300", background=True))
    assert await got(second.commands.list()) == []
    hostnames = {(await got(box.commands.run("cat /run/e2b/.E2B_SANDBOX_ID"))).stdout for box in (first, second)}
    assert hostnames == {first.sandbox_id, second.sandbox_id}


@pytest.mark.smoke
async def test_wrong_api_key(client):
    with raises(AuthenticationException):
        await got(client.Sandbox.create(api_key="e2b_" + "0" * 40))
    with raises(AuthenticationException):
        await got(client.Sandbox.list(api_key="e2b_" + "0" * 40).next_items())


async def test_sandbox_of_another_team_does_not_exist(client, sandbox, other_key):
    assert other_key != API_KEY
    with raises(SandboxNotFoundException):
        await got(client.Sandbox.get_info(sandbox.sandbox_id, api_key=other_key))
    with raises(SandboxNotFoundException):
        await got(client.Sandbox.connect(sandbox.sandbox_id, api_key=other_key))
    with raises(SandboxNotFoundException):
        await got(client.Sandbox.set_timeout(sandbox.sandbox_id, 1, api_key=other_key))
    assert await got(client.Sandbox.kill(sandbox.sandbox_id, api_key=other_key)) is False
    assert sandbox.sandbox_id not in [entry.sandbox_id for entry in await client.listed(api_key=other_key)]
    assert await got(sandbox.is_running()) is True


async def test_unknown_template(client):
    with raises(SandboxException, "template 'no-such-template' not found"):
        await got(client.Sandbox.create("no-such-template"))


async def test_timeout_above_the_limit(client):
    with raises(SandboxException, "400: "):
        await got(client.Sandbox.create(timeout=24 * 3600 + 1))


async def test_no_egress_with_internet_off(make_sandbox):
    sandbox = await make_sandbox(allow_internet_access=False)
    # 7: could not connect; at once, not after a wait.
    command = "curl -s -o /dev/null -m 20 -w '%{time_total}' http://198.51.100.7/; echo \" $?\""
    seconds, status = (await got(sandbox.commands.run(command))).stdout.split()
    assert status == "7"
    assert float(seconds) < 1


async def test_private_traffic_gives_a_token(make_sandbox):
    sandbox = await make_sandbox(network={"allow_public_traffic": False})
    assert sandbox.traffic_access_token
    public = await make_sandbox()
    assert not public.traffic_access_token


async def test_features_that_are_not_built_say_so(client, sandbox):
    with raises(SandboxException, "is not available on this server yet."):
        await got(sandbox.pause())
    # The refused pause changed nothing.
    assert await got(sandbox.is_running()) is True


@requires(2, 40, why="has no snapshots")
async def test_no_snapshots(client, sandbox):
    assert await got(client.Sandbox.list_snapshots().next_items()) == []
    with raises(SandboxException, "is not available on this server yet."):
        await got(sandbox.create_snapshot())


async def test_unknown_process_of_a_live_sandbox_is_no_sandbox_error(sandbox):
    with raises(NotFoundException):
        await got(sandbox.commands.connect(424242))
    assert await got(sandbox.is_running()) is True

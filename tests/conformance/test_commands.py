# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""commands.run and what belongs to it: output, exit codes, background, stdin, environment."""

import asyncio
import hashlib
import time

import pytest
from e2b import (
    AuthenticationException,
    CommandExitException,
    InvalidArgumentException,
    NotFoundException,
    SandboxException,
    TimeoutException,
)
from harness import VERSION, eventually, got, raises, requires

_has_close_stdin = requires(2, 40, why="has no close_stdin")


@pytest.mark.smoke
async def test_output_is_exact(sandbox):
    result = await got(sandbox.commands.run("echo hello; echo oops >&2"))
    no_error = None if VERSION >= (2, 40) else ""
    assert (result.stdout, result.stderr, result.exit_code, result.error) == ("hello\n", "oops\n", 0, no_error)


async def test_special_characters_and_lines_pass_unchanged(sandbox):
    text = "!@#$%^&*()_+{}|:<>?~`-=[];,./ \"quoted\" ünï 😀\ttab\n second line"
    result = await got(sandbox.commands.run(f"cat <<'EOF'\n{text}\nEOF"))
    assert result.stdout == f"{text}\n"


async def test_broken_utf8_becomes_one_replacement_character(sandbox):
    result = await got(sandbox.commands.run("printf 'a%.0s' $(seq 8191); printf '\\xe2'"))
    assert result.stdout == "a" * 8191 + "\ufffd"


async def test_large_output_is_complete_and_in_order(sandbox):
    result = await got(sandbox.commands.run("seq 1 400000"))
    assert result.stdout == "".join(f"{n}\n" for n in range(1, 400001))


@pytest.mark.smoke
async def test_output_streams_while_the_command_runs(sandbox):
    arrivals = []
    started = time.monotonic()
    await got(
        sandbox.commands.run(
            "for i in 1 2 3; do echo line$i; sleep 0.7; done; echo late >&2",
            on_stdout=lambda text: arrivals.append((text, time.monotonic() - started)),
            on_stderr=lambda text: arrivals.append((text, time.monotonic() - started)),
        )
    )
    assert [text for text, _ in arrivals] == ["line1\n", "line2\n", "line3\n", "late\n"]
    # Each line comes when it is written, not when the command ends.
    gaps = [after[1] - before[1] for before, after in zip(arrivals, arrivals[1:])]
    assert all(0.4 < gap < 2.5 for gap in gaps), gaps


@pytest.mark.smoke
@pytest.mark.parametrize("code", [1, 42, 255])
async def test_exit_code_raises(sandbox, code):
    with raises(CommandExitException) as info:
        await got(sandbox.commands.run(f"echo out; echo err >&2; exit {code}"))
    error = info.value
    assert (error.exit_code, error.stdout, error.stderr) == (code, "out\n", "err\n")
    assert error.error == f"exit status {code}"


async def test_missing_command_exits_127(sandbox):
    with raises(CommandExitException) as info:
        await got(sandbox.commands.run("no-such-command-anywhere"))
    assert info.value.exit_code == 127


async def test_death_by_signal_of_the_shell(sandbox):
    with raises(CommandExitException) as info:
        await got(sandbox.commands.run("kill -SEGV $$"))
    assert info.value.exit_code == -1
    assert info.value.error.removesuffix(" (core dumped)") == "signal: segmentation fault"


@pytest.mark.smoke
async def test_background_command_is_listed_and_killed(sandbox):
    handle = await got(sandbox.commands.run("sleep 300", background=True))
    listed = {process.pid: process for process in await got(sandbox.commands.list())}
    assert handle.pid in listed
    assert listed[handle.pid].cmd == "/bin/bash"
    assert listed[handle.pid].args == ["-l", "-c", "sleep 300"]
    assert await got(handle.kill()) is True
    with raises(CommandExitException) as info:
        await got(handle.wait())
    assert (info.value.exit_code, info.value.error) == (-1, "signal: killed")
    # Reaped at once: a zombie would still answer `kill -0`.
    with raises(CommandExitException):
        await got(sandbox.commands.run(f"kill -0 {handle.pid}"))
    assert await got(sandbox.commands.list()) == []


async def test_kill_by_pid(sandbox):
    handle = await got(sandbox.commands.run("sleep 300", background=True))
    assert await got(sandbox.commands.kill(handle.pid)) is True
    with raises(CommandExitException):
        await got(sandbox.commands.run(f"kill -0 {handle.pid}"))
    assert await got(sandbox.commands.kill(999999)) is False


async def test_all_background_commands_are_listed(sandbox):
    handles = [await got(sandbox.commands.run(f"sleep {300 + n}", background=True, stdin=bool(n))) for n in range(3)]
    listed = {process.pid: process.args for process in await got(sandbox.commands.list())}
    assert listed == {handle.pid: ["-l", "-c", f"sleep {300 + n}"] for n, handle in enumerate(handles)}


async def test_kill_does_not_wait_for_those_who_hold_the_output(sandbox):
    handle = await got(sandbox.commands.run("sleep 300 & echo $! > /tmp/child; wait", background=True))
    assert await eventually(lambda: sandbox.files.exists("/tmp/child"), within=10)
    assert await got(handle.kill()) is True
    with raises(CommandExitException) as info:
        await got(handle.wait())
    assert (info.value.exit_code, info.value.error) == (-1, "signal: killed")
    # Only the command itself got the signal; its child is an orphan now.
    assert (await got(sandbox.commands.run("ps -o ppid= -p $(cat /tmp/child)"))).stdout.strip() == "1"


async def test_two_background_commands_are_independent(sandbox):
    first = await got(sandbox.commands.run("sleep 0.5; echo first", background=True))
    second = await got(sandbox.commands.run("echo second", background=True))
    assert first.pid != second.pid
    assert (await got(second.wait())).stdout == "second\n"
    assert (await got(first.wait())).stdout == "first\n"


async def test_command_survives_its_client(sandbox):
    handle = await got(sandbox.commands.run("sleep 1; echo done > /tmp/done", background=True))
    await got(handle.disconnect())
    assert await eventually(lambda: sandbox.files.exists("/tmp/done"), within=10)


@pytest.mark.smoke
async def test_connect_to_a_running_command(sandbox):
    handle = await got(sandbox.commands.run("sleep 1; echo later; exit 3", background=True))
    await got(handle.disconnect())
    again = await got(sandbox.commands.connect(handle.pid))
    assert again.pid == handle.pid
    with raises(CommandExitException) as info:
        await got(again.wait())
    assert (info.value.exit_code, info.value.stdout) == (3, "later\n")


async def test_connect_after_the_end_gives_the_retained_result(sandbox):
    handle = await got(sandbox.commands.run("exit 5", background=True))
    with raises(CommandExitException):
        await got(handle.wait())
    again = await got(sandbox.commands.connect(handle.pid))
    with raises(CommandExitException) as info:
        await got(again.wait())
    assert info.value.exit_code == 5


async def test_connect_gives_no_output_from_before(sandbox):
    handle = await got(sandbox.commands.run("echo early; touch /tmp/said; sleep 2; echo late", background=True))
    await got(handle.disconnect())
    assert await eventually(lambda: sandbox.files.exists("/tmp/said"), within=10)
    again = await got(sandbox.commands.connect(handle.pid))
    assert (await got(again.wait())).stdout == "late\n"


async def test_timeout_of_connect_ends_the_watching_only(sandbox):
    handle = await got(sandbox.commands.run("sleep 300", background=True))
    again = await got(sandbox.commands.connect(handle.pid, timeout=1))
    with raises(TimeoutException):
        await got(again.wait())
    assert [process.pid for process in await got(sandbox.commands.list())] == [handle.pid]
    assert await got(handle.kill()) is True


async def test_connect_to_unknown_pid(sandbox):
    with raises(NotFoundException):
        await got(sandbox.commands.connect(999999))


async def test_two_watchers_of_one_command_see_the_same(sandbox):
    handle = await got(sandbox.commands.run("sleep 0.5; seq 1 1000; exit 0", background=True))
    other = await got(sandbox.commands.connect(handle.pid))
    expected = "".join(f"{n}\n" for n in range(1, 1001))
    assert (await got(handle.wait())).stdout == expected
    assert (await got(other.wait())).stdout == expected


@pytest.mark.smoke
async def test_stdin_reaches_the_command(sandbox):
    handle = await got(sandbox.commands.run("head -n 1", background=True, stdin=True))
    await got(sandbox.commands.send_stdin(handle.pid, "ünï & <b>\n"))
    assert (await got(handle.wait())).stdout == "ünï & <b>\n"


async def test_small_input_comes_back_in_one_piece(client, sandbox):
    chunks = []
    # Only the async client takes a callback for a background command; the sync handle is iterated.
    callback = {} if client.flavour == "sync" else {"on_stdout": chunks.append}
    handle = await got(sandbox.commands.run("cat", background=True, stdin=True, **callback))
    await got(sandbox.commands.send_stdin(handle.pid, ""))
    await got(sandbox.commands.send_stdin(handle.pid, "two\nlines\n"))
    if client.flavour == "sync":
        chunks.append(next(iter(handle))[0])
    assert await eventually(lambda: bool(chunks), within=10)
    assert chunks == ["two\nlines\n"]


@_has_close_stdin
async def test_close_stdin_ends_the_input(sandbox):
    # It lives a little longer than its input, so that there is something to close again.
    handle = await got(sandbox.commands.run("cat; sleep 1; echo end", background=True, stdin=True))
    await got(sandbox.commands.send_stdin(handle.pid, "text"))
    await got(sandbox.commands.close_stdin(handle.pid))
    await got(sandbox.commands.close_stdin(handle.pid))
    assert (await got(handle.wait())).stdout == "textend\n"


@_has_close_stdin
@pytest.mark.parametrize("size", [0, 6, 65536, 65537, 300000])
async def test_input_is_counted_exactly(sandbox, size):
    handle = await got(sandbox.commands.run("wc -c", background=True, stdin=True))
    data = bytes(n % 256 for n in range(size))
    for start in range(0, size, 65536):
        await got(sandbox.commands.send_stdin(handle.pid, data[start : start + 65536]))
    await got(sandbox.commands.close_stdin(handle.pid))
    assert int((await got(handle.wait())).stdout) == size


async def test_stdin_of_an_ordinary_command_is_empty(sandbox):
    assert (await got(sandbox.commands.run("wc -c"))).stdout.strip() == "0"


async def test_stdin_of_unknown_pid(sandbox):
    with raises(NotFoundException):
        await got(sandbox.commands.send_stdin(999999, "x"))


@_has_close_stdin
async def test_stdin_by_the_handle(sandbox):
    handle = await got(sandbox.commands.run("cat; echo end", background=True, stdin=True))
    await got(handle.send_stdin("by the handle\n"))
    await got(handle.send_stdin(b"\xc3\xbc\n"))
    await got(handle.close_stdin())
    assert (await got(handle.wait())).stdout == "by the handle\nü\nend\n"


async def test_calls_for_the_input_of_a_command_that_ended(sandbox):
    handle = await got(sandbox.commands.run("exit 0", background=True, stdin=True))
    await got(handle.wait())
    with raises(NotFoundException):
        await got(sandbox.commands.send_stdin(handle.pid, "x"))


async def test_stdin_that_was_not_asked_for(sandbox):
    handle = await got(sandbox.commands.run("sleep 300", background=True, stdin=False))
    with raises(SandboxException):
        await got(sandbox.commands.send_stdin(handle.pid, "x"))


@pytest.mark.smoke
async def test_environment_of_the_sandbox_and_of_the_command(make_sandbox):
    sandbox = await make_sandbox(envs={"FROM_SANDBOX": "a b", "BOTH": "sandbox"})
    show = 'echo "$FROM_SANDBOX|$BOTH|$FROM_COMMAND"'
    result = await got(sandbox.commands.run(show, envs={"FROM_COMMAND": "$x 'y'", "BOTH": "command"}))
    assert result.stdout == "a b|command|$x 'y'\n"
    # A command's variables are its own.
    assert (await got(sandbox.commands.run(show))).stdout == "a b|sandbox|\n"


async def test_environment_reaches_sudo_free_programs(sandbox):
    result = await got(sandbox.commands.run("python3 -c 'import os; print(os.environ[\"NAME\"])'", envs={"NAME": "v=1=2"}))
    assert result.stdout == "v=1=2\n"


@pytest.mark.smoke
async def test_working_directory(sandbox):
    assert (await got(sandbox.commands.run("pwd"))).stdout == "/home/user\n"
    assert (await got(sandbox.commands.run("pwd", cwd="/tmp"))).stdout == "/tmp\n"
    await got(sandbox.files.make_dir("deep/er"))
    assert (await got(sandbox.commands.run("pwd", cwd="deep/er"))).stdout == "/home/user/deep/er\n"
    assert (await got(sandbox.commands.run("pwd", cwd="~/deep"))).stdout == "/home/user/deep\n"


@pytest.mark.parametrize("place", ["/no/such/place", "no/such/place", "/etc/passwd", "/root/.ssh", "~root"])
async def test_missing_working_directory(sandbox, place):
    await got(sandbox.commands.run("mkdir -p -m 700 /root/.ssh", user="root"))
    # Nor one that this user may not enter.
    with raises(InvalidArgumentException, place):
        await got(sandbox.commands.run("pwd", cwd=place))


async def test_groups_are_those_of_the_sandbox(sandbox):
    await got(sandbox.commands.run("groupadd -g 4321 team && usermod -aG team user && useradd -m -s /bin/sh -G team other", user="root"))
    # Looked up anew when the files changed, by the agent as by programs.
    assert "4321" in (await got(sandbox.commands.run("id -G"))).stdout.split()
    assert "team" in (await got(sandbox.commands.run("id -Gn", user="other"))).stdout.split()
    written = await got(sandbox.files.write("mine", "x", user="other"))
    assert (written.path, (await got(sandbox.files.get_info("/home/other/mine"))).owner) == ("/home/other/mine", "other")
    await got(sandbox.commands.run("userdel other", user="root"))
    with raises(AuthenticationException):
        await got(sandbox.commands.run("true", user="other"))


async def test_input_of_megabytes_in_one_call(sandbox):
    handle = await got(sandbox.commands.run("head -c 2500000 | sha256sum", background=True, stdin=True))
    data = bytes(range(250)) * 10_000
    await got(sandbox.commands.send_stdin(handle.pid, data))
    assert (await got(handle.wait())).stdout.split()[0] == hashlib.sha256(data).hexdigest()


@pytest.mark.smoke
async def test_user_of_the_command(sandbox):
    show = 'echo "$(id -un) $(id -u) $HOME $USER $LOGNAME $(pwd)"'
    assert (await got(sandbox.commands.run(show))).stdout == "user 1000 /home/user user user /home/user\n"
    assert (await got(sandbox.commands.run(show, user="user"))).stdout == "user 1000 /home/user user user /home/user\n"
    assert (await got(sandbox.commands.run(show, user="root"))).stdout == "root 0 /root root root /root\n"


async def test_unknown_user(sandbox):
    with raises(AuthenticationException):
        await got(sandbox.commands.run("true", user="nobody-of-that-name"))


@pytest.mark.smoke
async def test_timeout_raises_and_kills(sandbox):
    started = time.monotonic()
    with raises(TimeoutException):
        # Printing, because 2.22 waits no longer for the next piece than for the command's end.
        await got(sandbox.commands.run("echo $$ > /tmp/pid; while sleep 0.2; do echo; done", timeout=2))
    assert 1.5 < time.monotonic() - started < 6
    pid = (await got(sandbox.files.read("/tmp/pid"))).strip()

    # The client's clock started first: it may raise a moment before the server's kills.
    async def gone():
        return (await got(sandbox.commands.run(f"kill -0 {pid} 2>&1 || echo gone"))).stdout.endswith("gone\n")

    assert await eventually(gone, within=8)


async def test_timeout_while_the_output_is_read(client, sandbox):
    seen = []
    callback = {} if client.flavour == "sync" else {"on_stdout": seen.append}
    handle = await got(sandbox.commands.run("echo begun; exec sleep 300", background=True, timeout=2, **callback))
    with raises(TimeoutException):
        if client.flavour == "sync":
            for stdout, _, _ in handle:
                seen.append(stdout)
        else:
            await handle.wait()
    assert seen == ["begun\n"]


async def test_timeout_is_no_exit_even_when_the_command_dies_of_it(sandbox):
    # A grandchild holds the output: only the main process is killed, and that is no end with -1.
    with raises(TimeoutException):
        await got(sandbox.commands.run("sleep 300 & sleep 300", timeout=2))

    async def gone():
        return await got(sandbox.commands.list()) == []

    assert await eventually(gone, within=8)


async def test_timeout_that_is_long_enough(sandbox):
    assert (await got(sandbox.commands.run("sleep 0.5; echo ok", timeout=10))).stdout == "ok\n"


async def test_timeout_of_a_background_command_kills_it_too(sandbox):
    handle = await got(sandbox.commands.run("sleep 300", background=True, timeout=2))
    await got(handle.disconnect())

    async def gone():
        return handle.pid not in [process.pid for process in await got(sandbox.commands.list())]

    assert not await gone()
    assert await eventually(gone, within=8)


async def test_no_timeout_with_zero(sandbox):
    handle = await got(sandbox.commands.run("sleep 3; echo ok", background=True, timeout=0))
    assert (await got(handle.wait())).stdout == "ok\n"


async def test_end_waits_for_everybody_who_holds_the_output(sandbox):
    result = await got(sandbox.commands.run("(sleep 1; echo child) & echo parent"))
    assert result.stdout == "parent\nchild\n"


async def test_daemon_with_closed_output_does_not_hold_the_command(sandbox):
    started = time.monotonic()
    await got(sandbox.commands.run("nohup sleep 20 >/dev/null 2>&1 </dev/null & echo up"))
    assert time.monotonic() - started < 10


async def test_many_commands_at_once(client, sandbox):
    if client.flavour == "sync":
        handles = [sandbox.commands.run(f"sleep 0.2; echo {n}", background=True) for n in range(20)]
        outputs = [handle.wait().stdout for handle in handles]
    else:
        results = await asyncio.gather(*(sandbox.commands.run(f"sleep 0.2; echo {n}") for n in range(20)))
        outputs = [result.stdout for result in results]
    assert outputs == [f"{n}\n" for n in range(20)]


async def test_open_files_of_a_command(sandbox):
    # 3 is the directory that ls itself reads.
    assert (await got(sandbox.commands.run("ls /proc/self/fd"))).stdout.split() == ["0", "1", "2", "3"]


async def test_limits_and_priorities_of_a_command(sandbox):
    result = await got(sandbox.commands.run("umask; nice; cat /proc/self/oom_score_adj; ionice"))
    assert result.stdout.splitlines() == ["0022", "0", "100", "best-effort: prio 4"]


async def test_signals_of_a_command_are_as_usual(sandbox):
    shown = (await got(sandbox.commands.run("exec cat /proc/self/status"))).stdout.splitlines()
    masks = dict(line.split() for line in shown if line.startswith(("SigBlk", "SigIgn", "SigCgt")))
    assert masks == dict.fromkeys(("SigBlk:", "SigIgn:", "SigCgt:"), "0" * 16)


async def test_a_command_is_no_session_of_its_own(sandbox):
    shown = (await got(sandbox.commands.run("ps -o sid= -p $$; ps -o sid= -p 1"))).stdout.split()
    assert shown[0] == shown[1], shown


@requires(2, 40, why="takes no mcp configuration")
async def test_a_gateway_that_the_template_lacks(client):
    with raises(SandboxException, "Failed to start MCP gateway"):
        await got(client.Sandbox.create("base", timeout=60, mcp={"duckduckgo": {}}))

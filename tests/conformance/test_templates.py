# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Other templates than `base` (tests/templates): the agent runs in any Linux root, limits are a recipe's."""

import base64
import io

import pytest
from e2b import CommandExitException, NotEnoughSpaceException
from harness import api, eventually, got, raises, static_agent, to_sandbox
from streams import envelope, messages_of

# These are built after `base`, while other tests run already.
_BUILD_LIMIT = 600


@pytest.fixture
def make_from(make_sandbox):
    async def make(template):
        def is_built():
            return any(template in entry["names"] for entry in api("GET", "/templates").json)

        assert await eventually(is_built, within=_BUILD_LIMIT, every=0.5)
        return await make_sandbox(template)

    return make


async def _out(sandbox, command, **options):
    return (await got(sandbox.commands.run(command, **options))).stdout


def _run_argv(sandbox, *argv):
    """Runs a program by one bare call, because the SDK knows no shell but bash: output and end."""
    reply = to_sandbox(
        "POST",
        "/process.Process/Start",
        sandbox.sandbox_id,
        body=envelope({"process": {"cmd": argv[0], "args": argv[1:]}, "stdin": False}),
        headers={
            "X-Access-Token": sandbox._envd_access_token,
            "Content-Type": "application/connect+json",
            "Connect-Protocol-Version": "1",
        },
    )
    assert reply.status == 200, reply.body
    output, end = b"", None
    for message in messages_of(reply.body):
        event = message.get("event", {})
        output += base64.b64decode(event.get("data", {}).get("stdout", ""))
        end = event.get("end", end)
    return output.decode(), end


@pytest.mark.limit(700)
async def test_limits_are_the_recipes(make_from):
    sandbox = await make_from("large")
    info = await got(sandbox.get_info())
    assert (info.cpu_count, info.memory_mb) == (4, 4096)
    assert await _out(sandbox, "awk '/MemTotal/ {print $2}' /proc/meminfo") == f"{4096 * 1024}\n"
    # 2,048 is the default; each of these is a process.
    assert await _out(sandbox, "for i in $(seq 2200); do sleep 20 & done; jobs -p | wc -l; kill $(jobs -p)") == "2200\n"


@pytest.mark.limit(700)
async def test_full_disk_is_said_to_be_full(make_from):
    sandbox = await make_from("small-disk")
    # Reserves instead of writing, so that it takes no time; the rest in small pieces.
    fill = "i=0; for size in 64M 1M 16K; do while fallocate -l $size /tmp/fill-$((i+=1)); do :; done; done 2>&1; true"
    await _out(sandbox, fill, timeout=50)
    data = b"x" * (4 << 20)
    for upload in (data, io.BytesIO(data)):
        with raises(NotEnoughSpaceException, "not enough disk space"):
            await got(sandbox.files.write("/tmp/more", upload))
    await _out(sandbox, "rm -f /tmp/fill-* /tmp/more")
    await got(sandbox.files.write("/tmp/more", data))
    assert await _out(sandbox, "stat -c %s /tmp/more") == f"{len(data)}\n"


@pytest.mark.limit(700)
@pytest.mark.parametrize(
    ("template", "release"), [("debian-12", "bookworm"), pytest.param("old-debian", "bullseye", marks=static_agent)]
)
async def test_an_older_debian(make_from, template, release):
    sandbox = await make_from(template)
    assert release in await _out(sandbox, "cat /etc/os-release")
    assert await _out(sandbox, "whoami; pwd") == "user\n/home/user\n"
    await got(sandbox.files.write("a/b.txt", "hello"))
    assert await _out(sandbox, "stat -c %U a/b.txt; cat a/b.txt") == "user\nhello"


@static_agent
@pytest.mark.limit(700)
async def test_a_bare_busybox(make_from):
    sandbox = await make_from("busybox")
    # The SDK's shell is not there: that is the command's end, not an error of the sandbox.
    with raises(CommandExitException) as failure:
        await got(sandbox.commands.run("true"))
    assert failure.value.exit_code == 127
    await got(sandbox.files.write("note.txt", "small"))
    assert await got(sandbox.files.read("/home/user/note.txt")) == "small"
    names = [entry.name for entry in await got(sandbox.files.list("/bin"))]
    assert "busybox" in names
    info = await got(sandbox.get_info())
    assert info.memory_mb == 128
    assert _run_argv(sandbox, "sh", "-l", "-c", "whoami; pwd; exit 4") == (
        "user\n/home/user\n",
        {"exitCode": 4, "exited": True, "status": "exit status 4", "error": "exit status 4"},
    )


@static_agent
@pytest.mark.limit(700)
async def test_a_root_with_one_program_and_nothing_else(make_from):
    sandbox = await make_from("one-program")
    done = {"exited": True, "status": "exit status 0"}
    # It, and what alcove puts into every sandbox.
    files, end = _run_argv(sandbox, "/bin/busybox", "find", "/", "-xdev", "-type", "f")
    assert set(files.split()) == {"/bin/busybox", "/.e2b", "/etc/hosts", "/etc/resolv.conf", "/etc/hostname"}
    assert end == done
    assert _run_argv(sandbox, "/bin/busybox", "id", "-u") == ("0\n", done)
    entry = await got(sandbox.files.write("/new/place/note.txt", "small", user="root"))
    assert entry.path == "/new/place/note.txt"
    assert await got(sandbox.files.read("/new/place/note.txt", user="root")) == "small"
    assert _run_argv(sandbox, "/bin/busybox", "cat", "/new/place/note.txt") == ("small", done)
    with raises(CommandExitException) as failure:
        await got(sandbox.commands.run("true", user="root"))
    assert failure.value.exit_code == 127


@static_agent
@pytest.mark.limit(700)
async def test_musl_and_busybox_as_alpine(make_from):
    sandbox = await make_from("alpine")
    assert "ID=alpine\n" in await got(sandbox.files.read("/etc/os-release"))
    assert await _out(sandbox, "whoami; pwd; cat /etc/alpine-release") == "user\n/home/user\n3.20.0\n"
    # Linked to musl: its loader runs, and finds the same users as the agent.
    assert await _out(sandbox, "musl-whoami") == "user by musl\n"
    assert await _out(sandbox, "musl-whoami", user="root") == "root by musl\n"
    entry = await got(sandbox.files.write("a/b.txt", "hello"))
    assert entry.path == "/home/user/a/b.txt"
    assert await _out(sandbox, "stat -c %U a/b.txt; cat a/b.txt") == "user\nhello"
    with raises(CommandExitException) as failure:
        await got(sandbox.commands.run("echo no >&2; exit 3"))
    assert (failure.value.exit_code, failure.value.stderr) == (3, "no\n")

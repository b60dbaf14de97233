# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Programs in a sandbox that take all they can get: processes, memory, disk, what the kernel counts
for all. Others must not notice."""

import asyncio
import contextlib
import time
from pathlib import Path

import fuse
import pytest
from e2b import CommandExitException, Sandbox
from harness import DATA_DIR, api, assert_error, eventually
from hostile import BYTES, JSON, call

pytestmark = pytest.mark.usefixtures("server_is_unharmed")


def _answers_quickly(box):
    begin = time.monotonic()
    assert box.commands.run("echo ok", timeout=10).stdout == "ok\n"
    assert api("GET", f"/sandboxes/{box.sandbox_id}").status == 200
    return time.monotonic() - begin < 5


def test_fork_bomb_stops_at_its_limit(box, victim):
    source = (
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while made < 20000:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(60)\n"
        "            os._exit(0)\n"
        "        made += 1\n"
        "except OSError as error:\n"
        "    print('stopped', error.errno, flush=True)\n"
        "time.sleep(60)\n"
    )
    victim.files.write("/tmp/bomb.py", source)
    seen = []
    handle = victim.commands.run("exec python3 /tmp/bomb.py", background=True, timeout=60)
    for stdout, _, _ in handle:
        seen.append(stdout)
        break
    assert seen == ["stopped 11\n"]
    assert _answers_quickly(box)
    # The agent itself still answers, even if it cannot start anything.
    assert call(victim, "GET", "/health", token=False).status == 204
    assert call(victim, "POST", "/filesystem.Filesystem/Stat", {"path": "/tmp"}, JSON).status == 200
    handle.disconnect()
    assert victim.kill() is True


def test_fork_bomb_by_root_leaves_the_agent_usable(box, victim):
    victim.commands.run("(while :; do (sleep 30 &) ; done) >/dev/null 2>&1 &", user="root", background=True, timeout=30)
    time.sleep(4)
    assert _answers_quickly(box)
    assert call(victim, "GET", "/health", token=False).status == 204
    assert victim.kill() is True


def test_memory_hog_ends_alone(box, victim):
    with pytest.raises(CommandExitException) as info:
        # Touches at most 3 GB, in case there is no limit.
        victim.commands.run("python3 -c \"held = [bytearray(b'x' * 2**20) for _ in range(3000)]\"", timeout=50)
    # Either Python gave up, or the kernel ended it.
    assert info.value.exit_code == 1 or info.value.error == "signal: killed", info.value
    assert _answers_quickly(box)
    assert victim.commands.run("echo alive").stdout == "alive\n"


def test_memory_hog_in_shared_memory(box, victim):
    """/dev/shm is memory, too."""
    with contextlib.suppress(CommandExitException):
        victim.commands.run("head -c 3G /dev/zero > /dev/shm/fill", user="root", timeout=50)
    assert _answers_quickly(box)
    assert int(victim.commands.run("stat -c %s /dev/shm/fill").stdout) <= 2**30


# What the kernel counts for all sandboxes together unless each has a limit of its own. Each line
# takes as much as it gets (up to a bound) and prints how much that was.
_SHARED = {
    "pseudo terminals": "lambda: os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)",
    "inotify instances": "lambda: checked(libc.inotify_init1(0))",
    "message queues": "lambda: checked(libc.mq_open(b'/queue%d' % len(taken), 0o102, 0o600, (ctypes.c_long * 8)(0, 10, 8192)))",
    "fanotify groups": "lambda: checked(libc.fanotify_init(0x200, os.O_RDONLY))",
    "timers": "lambda: checked(libc.syscall(222, 1, None, ctypes.byref(ctypes.c_void_p())))",
}


@pytest.mark.parametrize("kind", _SHARED)
def test_one_sandbox_cannot_use_up_what_all_share(victim, kind):
    other = Sandbox.create(timeout=60)
    try:
        source = (
            "import ctypes, os, sys, time\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "def checked(result):\n"
            "    if result < 0:\n"
            "        raise OSError(ctypes.get_errno(), 'refused')\n"
            "    return result\n"
            f"take = {_SHARED[kind]}\n"
            "taken = []\n"
            "try:\n"
            "    while len(taken) < int(sys.argv[1]):\n"
            "        taken.append(take())\n"
            "except OSError:\n"
            "    pass\n"
            "print(len(taken), flush=True)\n"
            "time.sleep(float(sys.argv[2]))\n"
        )
        for sandbox in (victim, other):
            sandbox.files.write("/tmp/take.py", source)
        handle = victim.commands.run("exec python3 /tmp/take.py 200000 40", user="root", background=True, timeout=60)
        for _ in handle:
            break
        assert other.commands.run("python3 /tmp/take.py 1 0", user="root").stdout == "1\n"
        handle.disconnect()
    finally:
        victim.kill()
        other.kill()


# Makes namespaces of one kind (its name, the flag of clone) and keeps them; prints how many it got.
_TAKE_NAMESPACES = """
import ctypes, os, signal, sys
kind, flag = sys.argv[1], int(sys.argv[2], 16)
libc = ctypes.CDLL(None)
taken = []
while len(taken) < 2000:
    child = libc.syscall(56, flag | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        libc.pause()
    if child < 0:
        break
    taken.append(os.open(f"/proc/{child}/ns/{kind}", os.O_RDONLY))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print(len(taken))
"""
_NAMESPACES = {
    "user": "10000000",
    "pid": "20000000",
    "mnt": "00020000",
    "uts": "04000000",
    "ipc": "08000000",
    "cgroup": "02000000",
    "net": "40000000",
}


@pytest.mark.parametrize("kind", _NAMESPACES)
def test_one_sandbox_gets_so_many_namespaces_only(box, kind):
    """They count for the host's root too, whose limit would end all creates."""
    box.files.write("/tmp/take.py", _TAKE_NAMESPACES)
    taken = int(box.commands.run(f"python3 /tmp/take.py {kind} {_NAMESPACES[kind]}", user="root", timeout=60).stdout)
    # Enough for containers and browsers.
    assert 200 < taken <= 512


def _left_of(sandbox):
    """Its cgroups and files."""
    folders = [Path(DATA_DIR, "pool", sandbox.sandbox_id)]
    # One hierarchy, or one for each controller.
    for place in ("alcove-*", "*/alcove-*"):
        folders += [path / sandbox.sandbox_id for path in Path("/sys/fs/cgroup").glob(place)]
    return [path for path in folders if path.exists()]


def test_a_file_system_that_waits_for_itself_ends_with_its_sandbox(box):
    """Its processes cannot be killed, and while they are there nothing of their sandbox goes away."""
    stuck = [Sandbox.create(timeout=120) for _ in range(4)]
    try:
        for sandbox in stuck:
            sandbox.files.write("/tmp/fuse.py", fuse.PROGRAM)
            command = "exec python3 -u /tmp/fuse.py /mnt/fs deadlocked"
            handle = sandbox.commands.run(command, background=True, user="root", timeout=60)
            for stdout, _, _ in handle:
                if "asked" in (stdout or ""):
                    break
            handle.disconnect()
            assert not DATA_DIR or _left_of(sandbox)
    finally:
        for sandbox in stuck:
            assert sandbox.kill() is True
    # Nobody else has to wait: the server gives up on a process after 30 seconds.
    begin = time.monotonic()
    Sandbox.create(timeout=60).kill()
    assert time.monotonic() - begin < 15
    if not DATA_DIR:
        return
    assert asyncio.run(eventually(lambda: not any(_left_of(sandbox) for sandbox in stuck), within=25))


def test_disk_filler_harms_nobody_else(box, victim):
    # Reserves instead of writing, so that it takes no time.
    # Ever smaller pieces, so that less is left than the upload below needs, whatever the limit is.
    fill = "for size in 100 10 1; do for i in $(seq 1 400); do fallocate -l ${size}M /tmp/fill-$size-$i 2>&1 || break; done; done; true"
    filled = victim.commands.run(fill, timeout=50)
    assert "No space left" in filled.stdout or "quota" in filled.stdout.lower(), filled
    try:
        reply = call(victim, "POST", "/files?path=/tmp/more", bytes(40 << 20), BYTES)
        assert_error(reply, 507)
        # Others still have room.
        box.files.write("/tmp/room", "x" * (8 << 20))
        assert box.commands.run("stat -c %s /tmp/room; sync /tmp/room; echo $?").stdout == f"{8 << 20}\n0\n"
        another = Sandbox.create(timeout=60)
        assert another.commands.run("echo ok > /tmp/x && cat /tmp/x").stdout == "ok\n"
        another.kill()
        assert victim.commands.run("echo alive").stdout == "alive\n"
    finally:
        victim.commands.run("rm -f /tmp/fill-* /tmp/more")

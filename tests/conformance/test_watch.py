# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Watching directories by the official client: the sync one polls, the async one gets a stream."""

import asyncio

import fuse
import pytest
from e2b import FileNotFoundException, FileType, InvalidArgumentException, SandboxException, TimeoutException
from harness import eventually, got, raises, requires

_has_entries = requires(2, 40, why="has no include_entry")
_DIR = "/home/user/watched"


class _Watch:
    """One watched directory behind both ways of getting events."""

    def __init__(self, client, sandbox):
        self.client = client
        self.sandbox = sandbox
        self.events = []
        self.ended_with = []

    async def start(self, path=_DIR, **options):
        if self.client.flavour == "sync":
            self.handle = self.sandbox.files.watch_dir(path, **options)
        else:
            self.handle = await self.sandbox.files.watch_dir(
                path, on_event=self.events.append, on_exit=self.ended_with.append, **options
            )
        return self

    async def seen(self):
        """(type, name) of everything so far."""
        if self.client.flavour == "sync":
            self.events += self.handle.get_new_events()
        return [(event.type.value, event.name) for event in self.events]

    async def until(self, *wanted):
        """All events, once the wanted ones are among them."""

        async def complete():
            return set(wanted) <= set(await self.seen())

        assert await eventually(complete, within=10), (wanted, await self.seen())
        return await self.seen()


@pytest.fixture
def watch(client, sandbox):
    return _Watch(client, sandbox)


async def _make_dir(sandbox):
    await got(sandbox.files.make_dir(_DIR))


@pytest.mark.smoke
async def test_upload_is_three_events(sandbox, watch):
    await _make_dir(sandbox)
    await watch.start()
    await got(sandbox.files.write(f"{_DIR}/new", "content"))
    await watch.until(("write", "new"))
    await asyncio.sleep(0.3)
    assert await watch.seen() == [("create", "new"), ("chmod", "new"), ("write", "new")]


@pytest.mark.parametrize("recursive", [False, True])
async def test_events_are_there_on_the_very_next_call(client, sandbox, recursive):
    if client.flavour == "async":
        pytest.skip("the async client gets a stream")
    await _make_dir(sandbox)
    handle = sandbox.files.watch_dir(_DIR, recursive=recursive)
    for number in range(20):
        sandbox.files.write(f"{_DIR}/{number}", "x")
        seen = [(event.type.value, event.name) for event in handle.get_new_events()]
        assert seen == [(kind, str(number)) for kind in ("create", "chmod", "write")]
    assert handle.get_new_events() == []
    sandbox.files.make_dir(f"{_DIR}/sub")
    sandbox.files.write(f"{_DIR}/sub/file", "x")
    seen = {(event.type.value, event.name) for event in handle.get_new_events()}
    assert ("create", "sub") in seen
    assert (("write", "sub/file") in seen) == recursive
    handle.stop()


async def test_overwriting_changes_owner_and_content(sandbox, watch):
    await got(sandbox.files.write(f"{_DIR}/f", "old"))
    await watch.start()
    await got(sandbox.files.write(f"{_DIR}/f", "new"))
    seen = await watch.until(("write", "f"))
    assert seen[0] == ("chmod", "f") and set(seen[1:]) == {("write", "f")}


async def test_rename_and_remove(sandbox, watch):
    await got(sandbox.files.write(f"{_DIR}/a", "x"))
    await watch.start()
    await got(sandbox.files.rename(f"{_DIR}/a", f"{_DIR}/b"))
    await got(sandbox.files.remove(f"{_DIR}/b"))
    seen = await watch.until(("remove", "b"))
    assert seen == [("rename", "a"), ("create", "b"), ("remove", "b")]


async def test_commands_are_seen_too(sandbox, watch):
    await _make_dir(sandbox)
    await watch.start()
    await got(sandbox.commands.run(f"touch {_DIR}/t && chmod 600 {_DIR}/t && echo x >> {_DIR}/t"))
    await watch.until(("create", "t"), ("chmod", "t"), ("write", "t"))


@pytest.mark.smoke
async def test_new_directories_are_watched_recursively(sandbox, watch):
    await _make_dir(sandbox)
    await watch.start(recursive=True)
    await got(sandbox.files.make_dir(f"{_DIR}/sub"))
    await watch.until(("create", "sub"))
    await got(sandbox.files.write(f"{_DIR}/sub/file", "x"))
    await watch.until(("create", "sub/file"), ("write", "sub/file"))


async def test_tree_that_is_made_at_once_is_seen_whole(sandbox, watch):
    await _make_dir(sandbox)
    await watch.start(recursive=True)
    script = f"cd {_DIR}; for a in 1 2 3 4 5; do for b in 1 2 3 4 5; do mkdir -p $a/$b/c; echo x > $a/$b/c/f; done; done"
    await got(sandbox.commands.run(script))
    wanted = [("create", f"{a}/{b}/c/f") for a in range(1, 6) for b in range(1, 6)]
    await watch.until(*wanted)


async def test_a_large_tree_that_is_moved_or_unpacked_in_is_seen_whole(sandbox, watch):
    await _make_dir(sandbox)
    make = "mkdir -p /tmp/tree && cd /tmp/tree && for a in $(seq 20); do mkdir -p $a/{1..10}/deep; touch $a/{1..10}/deep/f; done"
    await got(sandbox.commands.run(f"{make} && tar cf /tmp/tree.tar . && mv /tmp/tree {_DIR}/../moving"))
    await watch.start(recursive=True)
    await got(sandbox.commands.run(f"mv {_DIR}/../moving {_DIR}/moved && mkdir {_DIR}/unpacked && tar xf /tmp/tree.tar -C {_DIR}/unpacked"))
    places = [f"{top}/{a}/{b}" for top in ("moved", "unpacked") for a in range(1, 21) for b in range(1, 11)]
    await watch.until(*[("create", f"{place}/deep/f") for place in places], *[("create", f"{place}/deep") for place in places])
    # Each of the directories is watched from now on.
    await got(sandbox.commands.run(f"for f in {_DIR}/*/*/*/deep; do echo x > $f/later; done"))
    await watch.until(*[("write", f"{place}/deep/later") for place in places])


async def test_renamed_directory_is_followed(sandbox, watch):
    await got(sandbox.files.make_dir(f"{_DIR}/old/deep"))
    await watch.start(recursive=True)
    await got(sandbox.files.rename(f"{_DIR}/old", f"{_DIR}/new"))
    await watch.until(("rename", "old"), ("create", "new"))
    await got(sandbox.files.write(f"{_DIR}/new/deep/f", "x"))
    await watch.until(("write", "new/deep/f"))


async def test_without_recursion_only_the_directory_itself(sandbox, watch):
    await got(sandbox.files.make_dir(f"{_DIR}/sub"))
    await watch.start()
    await got(sandbox.files.write(f"{_DIR}/sub/f", "x"))
    await got(sandbox.files.write(f"{_DIR}/g", "x"))
    seen = await watch.until(("write", "g"))
    assert not [name for kind, name in seen if name.startswith("sub/")]


@_has_entries
async def test_entries(sandbox, watch):
    await _make_dir(sandbox)
    await watch.start(include_entry=True)
    await got(sandbox.files.write(f"{_DIR}/f", "12345"))
    await got(sandbox.files.remove(f"{_DIR}/f"))
    await watch.until(("remove", "f"))
    written = [event.entry for event in watch.events if event.type.value == "write" and event.entry]
    assert all((entry.path, entry.type) == (f"{_DIR}/f", FileType.FILE) for entry in written)
    assert all(event.entry is None for event in watch.events if event.type.value == "remove")


@_has_entries
async def test_entries_say_what_is_there_now(sandbox, watch):
    await _make_dir(sandbox)
    await watch.start(include_entry=True, recursive=True)
    await got(sandbox.files.make_dir(f"{_DIR}/sub"))
    await got(sandbox.commands.run(f"mkdir -p {_DIR}/sub; echo 12345 > {_DIR}/sub/f; chmod 600 {_DIR}/sub/f; sleep 0.3; chmod 640 {_DIR}/sub/f"))

    async def complete():
        await watch.seen()
        return any(e.name == "sub/f" and e.type.value == "chmod" and e.entry and e.entry.mode == 0o640 for e in watch.events)

    assert await eventually(complete, within=10), watch.events
    of_sub = [event.entry for event in watch.events if event.name == "sub" and event.type.value == "create"]
    assert [(entry.path, entry.name, entry.type) for entry in of_sub] == [(f"{_DIR}/sub", "sub", FileType.DIR)]
    last = [event.entry for event in watch.events if event.name == "sub/f" and event.entry][-1]
    assert (last.path, last.size, last.permissions, last.owner) == (f"{_DIR}/sub/f", 6, "-rw-r-----", "user")


async def test_relative_path_is_below_the_home(sandbox, watch):
    await _make_dir(sandbox)
    await watch.start("watched")
    await got(sandbox.files.write(f"{_DIR}/f", "x"))
    await watch.until(("create", "f"))


async def test_what_cannot_be_watched(sandbox, watch):
    with raises(FileNotFoundException):
        await watch.start("/home/user/nothing")
    await got(sandbox.files.write("plain", "x"))
    with raises(InvalidArgumentException):
        await watch.start("/home/user/plain")


async def test_the_watched_directory_itself(sandbox, watch):
    await _make_dir(sandbox)
    await watch.start()
    await got(sandbox.commands.run(f"chmod 700 {_DIR}; rmdir {_DIR}"))
    assert await watch.until(("remove", ".")) == [("chmod", "."), ("remove", ".")]


async def test_a_moved_directory_is_watched_no_more(sandbox, watch):
    await _make_dir(sandbox)
    await watch.start()
    await got(sandbox.commands.run(f"mv {_DIR} {_DIR}-away"))
    await watch.until(("rename", "."))
    await got(sandbox.files.write(f"{_DIR}-away/f", "x"))
    await asyncio.sleep(0.3)
    assert await watch.seen() == [("rename", ".")]


@requires(2, 44, why="has no allow_network_mounts")
async def test_network_file_systems_need_a_word(sandbox, watch):
    await _make_dir(sandbox)
    await watch.start(allow_network_mounts=True)
    await got(sandbox.files.write(f"{_DIR}/f", "x"))
    await watch.until(("write", "f"))
    await got(sandbox.files.write("/tmp/fuse.py", fuse.PROGRAM))
    # What happens behind a FUSE mount, the kernel does not see.
    await got(sandbox.commands.run("nohup python3 /tmp/fuse.py /mnt/remote plain > /tmp/fuse.log 2>&1 &", user="root"))

    async def mounted():
        return "mounted" in await got(sandbox.files.read("/tmp/fuse.log"))

    assert await eventually(mounted, within=10), await got(sandbox.files.read("/tmp/fuse.log"))
    with raises(InvalidArgumentException, "network file system"):
        await watch.start("/mnt/remote")
    await watch.start("/mnt/remote", allow_network_mounts=True)


# Takes all that the kernel allows one sandbox of `argv[1]`, and keeps it.
_TAKE = """
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs("/tmp/taken", exist_ok=True)
names = [b"/tmp/taken/%d" % n for n in range(2000)]
for name in names:
    os.close(os.open(name, os.O_CREAT))
while True:
    watcher = libc.inotify_init1(0)
    if watcher < 0 or (sys.argv[1] == "watches" and any(libc.inotify_add_watch(watcher, name, 2) < 0 for name in names)):
        break
print(os.strerror(ctypes.get_errno()), flush=True)
time.sleep(300)
"""


@pytest.mark.parametrize(
    ("kind", "setting"), [("instances", "fs.inotify.max_user_instances"), ("watches", "fs.inotify.max_user_watches")]
)
async def test_limits_of_the_kernel_are_named(client, sandbox, watch, kind, setting):
    await got(sandbox.files.make_dir(f"{_DIR}/sub"))
    await got(sandbox.files.write("/tmp/take.py", _TAKE))
    await got(sandbox.commands.run(f"ulimit -n 65536; nohup python3 /tmp/take.py {kind} > /tmp/taken.log 2>&1 &", user="root"))

    async def taken():
        return bool(await got(sandbox.files.read("/tmp/taken.log")))

    assert await eventually(taken, within=30)
    with raises(SandboxException, setting):
        await watch.start(recursive=True)
    # Nothing else suffers.
    assert (await got(sandbox.commands.run("echo fine"))).stdout == "fine\n"
    await got(sandbox.commands.run("pkill -f take.py", user="root"))

    async def again():
        try:
            await watch.start(recursive=True)
        except SandboxException:
            return False
        return True

    assert await eventually(again, within=10)


async def test_stopped_watch_brings_nothing_more(client, sandbox, watch):
    await _make_dir(sandbox)
    await watch.start()
    await got(watch.handle.stop())
    if client.flavour == "sync":
        with raises(SandboxException):
            watch.handle.get_new_events()
    else:
        await got(sandbox.files.write(f"{_DIR}/f", "x"))
        await asyncio.sleep(0.5)
        assert watch.events == []


async def test_watch_ends_at_its_timeout(client, sandbox, watch):
    if client.flavour == "sync":
        pytest.skip("the sync client's watchers have no timeout")
    await _make_dir(sandbox)
    await watch.start(timeout=1)
    assert await eventually(lambda: watch.ended_with, within=5)
    assert isinstance(watch.ended_with[0], TimeoutException)

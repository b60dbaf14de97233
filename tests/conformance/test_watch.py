# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Watching directories by the official client: the sync one polls, the async one gets a stream."""

import asyncio

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

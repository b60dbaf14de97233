# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Restarts while there is no room left: in one sandbox, or in the pool of all."""

import time

import e2b
import pytest

# Reserves instead of writing, so that it takes no time; then the rest in small pieces.
_FILL = "i=0; for size in 64M 1M 16K; do while fallocate -l $size /tmp/fill-$((i+=1)); do :; done; done 2>&1; true"


def _create(host, template=None, within=20):
    """Creates as soon as the template is ready and the pool has room."""
    deadline = time.monotonic() + within
    while True:
        try:
            return host.create(template)
        except e2b.SandboxException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@pytest.mark.limit(120)
def test_sandbox_at_its_limit_is_adopted_and_can_be_emptied(host):
    box = _create(host, "small-disk")
    box.commands.run(_FILL, timeout=50)
    with pytest.raises(e2b.CommandExitException, match="quota|No space"):
        box.commands.run("head -c 1M /dev/zero > /tmp/more && sync /tmp/more")
    for end in (host.kill, host.stop):
        end()
        host.start()
        assert host.listed() == {box.sandbox_id}
        assert box.commands.run("echo still here").stdout == "still here\n"
    box.commands.run("rm -f /tmp/fill-* /tmp/more")
    box.files.write("/tmp/room", "x" * (8 << 20))
    assert box.commands.run("sync /tmp/room && stat -c %s /tmp/room").stdout == f"{8 << 20}\n"
    # One that is made now has its own room.
    fresh = host.create("small-disk")
    fresh.files.write("/tmp/room", "x" * (8 << 20))
    assert fresh.commands.run("sync /tmp/room && stat -c %s /tmp/room").stdout == f"{8 << 20}\n"
    host.kill_all()


@pytest.mark.limit(120)
def test_killed_while_the_pool_is_nearly_full(small_pool_host):
    host = small_pool_host
    before = host.state()
    boxes = [host.create() for _ in range(2)]
    for box in boxes:
        box.commands.run(_FILL, timeout=50)
    reply = host.api("POST", "/v2/sandboxes", {"templateID": "base"})
    assert reply.status == 503 and reply.headers["retry-after"] == "1", (reply.status, reply.body)
    assert "nearly full" in reply.message
    host.kill()
    host.start()
    assert host.listed() == {box.sandbox_id for box in boxes}
    for box in boxes:
        assert box.commands.run("echo here").stdout == "here\n"
    # Room comes back when a user deletes, and when a sandbox ends.
    boxes[0].commands.run("rm -f /tmp/fill-*")
    boxes[1].kill()
    assert _create(host).commands.run("echo new > /tmp/x && cat /tmp/x").stdout == "new\n"
    host.kill_all()
    assert not host.settled(before).difference(before)

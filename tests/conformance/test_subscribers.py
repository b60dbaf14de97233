# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Several clients that watch one command: all get everything, and the slowest sets the pace."""

import base64
import hashlib
import threading
import time

import e2b
import pytest
from harness import eventually
from memory import watch_memory
from streams import connect, start

pytestmark = [pytest.mark.wire, pytest.mark.limit(180)]

_BYTES = 64 << 20
_MEBIBYTE = 1 << 20


@pytest.fixture
def sandbox():
    made = e2b.Sandbox.create(timeout=300)
    yield made
    made.kill()


class _Watcher:
    """Reads a stream of a command in a thread of its own, and can be held."""

    def __init__(self, stream):
        self.stream = stream
        events = stream.events()
        self.pid = next(events)["start"]["pid"]
        self.received = 0
        self.digest = hashlib.sha256()
        self.end = None
        self.may_read = threading.Event()
        self.may_read.set()
        self._thread = threading.Thread(target=self._read, args=(events,), daemon=True)
        self._thread.start()

    def _read(self, events):
        for event in events:
            if "data" in event:
                data = base64.b64decode(event["data"]["stdout"])
                self.digest.update(data)
                self.received += len(data)
            self.end = event.get("end", self.end)
            self.may_read.wait()

    def finish(self):
        self._thread.join(120)
        assert not self._thread.is_alive()


def _count(sandbox):
    """A command that prints _BYTES once /tmp/go exists, and its first watcher."""
    script = f"while [ ! -e /tmp/go ]; do sleep 0.05; done; seq -w 1 99999999 | head -c {_BYTES}"
    return _Watcher(start(sandbox, script, receive_buffer=1 << 16))


def _standstill(watcher):
    """Waits until the watcher gets nothing more; what it has then."""
    last, since = watcher.received, time.monotonic()
    while time.monotonic() - since < 1.5:
        time.sleep(0.1)
        if watcher.received != last:
            last, since = watcher.received, time.monotonic()
    return last


def test_the_slowest_sets_the_pace_and_nobody_loses_anything(sandbox):
    quick = _count(sandbox)
    slow = _Watcher(connect(sandbox, quick.pid, receive_buffer=1 << 16))
    third = _Watcher(connect(sandbox, quick.pid, receive_buffer=1 << 16))
    with watch_memory() as memory:
        slow.may_read.clear()
        sandbox.files.write("/tmp/go", "")
        held_at = _standstill(quick)
        # What fits into the buffers on the way, and no more: the command itself waits.
        assert 0 < held_at < _BYTES // 2
        assert quick.end is None
        slow.may_read.set()
        for watcher in (quick, slow, third):
            watcher.finish()
    expected = b"".join(b"%08d\n" % number for number in range(1, _BYTES // 9 + 2))[:_BYTES]
    for watcher in (quick, slow, third):
        assert (watcher.received, watcher.digest.digest()) == (_BYTES, hashlib.sha256(expected).digest())
        assert watcher.end == {"exited": True, "status": "exit status 0"}
    assert memory.growth("alcove") < 24 * _MEBIBYTE, memory
    assert memory.growth("alcove-agent") < 8 * _MEBIBYTE, memory


def test_a_slow_watcher_that_vanishes_holds_nobody_up(sandbox):
    quick = _count(sandbox)
    slow = _Watcher(connect(sandbox, quick.pid, receive_buffer=1 << 16))
    slow.may_read.clear()
    sandbox.files.write("/tmp/go", "")
    assert _standstill(quick) < _BYTES // 2
    slow.stream.vanish()
    quick.finish()
    assert quick.received == _BYTES


async def test_a_late_watcher_holds_the_command_up_too(sandbox):
    first = start(sandbox, f"echo; head -c {_BYTES} /dev/zero; touch /tmp/done")
    pid = next(first.events())["start"]["pid"]
    # Nobody reads the first one; without a watcher the output would be dropped, with one it waits.
    second = _Watcher(connect(sandbox, pid))
    time.sleep(1)
    assert not sandbox.files.exists("/tmp/done")
    first.vanish()
    assert await eventually(lambda: sandbox.files.exists("/tmp/done"), within=60)
    second.finish()
    assert second.end == {"exited": True, "status": "exit status 0"}

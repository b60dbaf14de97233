# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""One event loop for the whole context: top-level await, and tasks that go on behind their cell.

The loop runs while a cell awaits, for a moment at the end of each cell, and between cells. Code of a cell
that does not await is not inside it, so that `asyncio.run()` works there; all the same it finds this loop
where it asks for the running one, as it would in a notebook."""

import asyncio
import functools
import os
import sys
import threading

# A loop that cannot run must not keep the next cell from its turn.
_MOST_FAILURES = 1000

_loop = None
_in_cell = False


def run(coroutine):
    """Runs the cell's coroutine. An interrupt cancels it, so that nothing of it runs later."""
    loop = _get_loop()
    task = loop.create_task(coroutine)
    try:
        return loop.run_until_complete(task)
    except KeyboardInterrupt:
        if not task.done():
            task.cancel()
            try:
                loop.run_until_complete(task)
            except asyncio.CancelledError:
                pass
        raise


def install():
    """Lets code of cells find the loop."""
    for name in ("get_running_loop", "get_event_loop", "_get_event_loop"):
        if hasattr(asyncio.events, name):
            found = _finding(getattr(asyncio.events, name))
            setattr(asyncio.events, name, found)
            if hasattr(asyncio, name):
                setattr(asyncio, name, found)
    os.register_at_fork(after_in_child=_forget)


def begin_cell():
    global _in_cell
    _in_cell = True
    _get_loop()


def end_cell():
    global _in_cell
    _in_cell = False


def has_work():
    """Tasks, timers, servers."""
    if _loop is None or _loop.is_closed():
        return False
    if asyncio.all_tasks(_loop) or getattr(_loop, "_ready", ()) or getattr(_loop, "_scheduled", ()):
        return True
    selector = getattr(_loop, "_selector", None)
    # One is the loop's own, to wake itself.
    return selector is None or len(selector.get_map() or ()) > 1


def step():
    """Lets tasks do what they can do now: what a cell starts begins within it."""
    _loop.call_soon(_loop.stop)
    _loop.run_forever()


def wait_readable(fd):
    """Runs the tasks until the descriptor is readable. What they raise ends nothing."""
    if not has_work():
        return
    ready = False

    def stop():
        nonlocal ready
        ready = True
        _loop.stop()

    try:
        _loop.add_reader(fd, stop)
        failures = 0
        while not ready and not _loop.is_closed() and failures < _MOST_FAILURES:
            try:
                _loop.run_forever()
            except BaseException as error:
                failures += 1
                print(f"{type(error).__name__} in a task: {error}", file=sys.stderr)
    finally:
        if not _loop.is_closed():
            _loop.remove_reader(fd)


def _finding(original):
    # Not of a thread or a forked child of the cell, and not of code between cells.
    @functools.wraps(original)
    def find(*arguments, **options):
        try:
            return original(*arguments, **options)
        except RuntimeError:
            if not _in_cell or threading.current_thread() is not threading.main_thread():
                raise
            return _get_loop()

    return find


def _forget():
    global _loop, _in_cell
    _loop = None
    _in_cell = False


def _get_loop():
    global _loop
    if _loop is None or _loop.is_closed():
        _loop = asyncio.new_event_loop()
        asyncio.set_event_loop(_loop)
    return _loop

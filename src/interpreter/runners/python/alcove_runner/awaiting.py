# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Top-level await: one event loop for the whole context."""

import asyncio

_loop = None


def run(coroutine):
    """Runs the cell's coroutine. An interrupt cancels it, so that nothing of it runs later."""
    loop = _get_loop()
    asyncio.set_event_loop(loop)
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


def _get_loop():
    global _loop
    if _loop is None or _loop.is_closed():
        _loop = asyncio.new_event_loop()
    return _loop

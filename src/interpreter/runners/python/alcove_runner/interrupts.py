# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""SIGINT: an exception while a cell runs, nothing otherwise."""

import contextlib
import signal
import threading


class Interrupts:
    def __init__(self):
        self._late = False

    def ignore(self):
        # A handler and not SIG_IGN, which programs started by the user's threads would inherit.
        signal.signal(signal.SIGINT, self._note)

    def expect(self):
        """From here on an interrupt means the next cell, even if that has not begun."""
        self._late = False

    def deliver(self):
        # asyncio.run() makes an interrupt cancel its task only if it finds this very handler.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._late:
            self._late = False
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def delivered(self):
        """Around user code only: IPython swallows an interrupt that comes in its own callbacks."""
        self.deliver()
        try:
            yield
        finally:
            self.ignore()

    @contextlib.contextmanager
    def held(self):
        """Puts an interrupt off until the block is over, so that no frame is cut in the middle."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before if before is not None else self._note)
            if self._late and before is signal.default_int_handler:
                self._late = False
                raise KeyboardInterrupt

    def _note(self, number, frame):
        self._late = True

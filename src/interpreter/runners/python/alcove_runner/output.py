# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""sys.stdout and sys.stderr on the pipes: what is printed is written at once, lines and pieces of them."""

import io
import os
import select
import sys
import time

# Writes of less than a line that go out at once, in each so many seconds. Each costs some microseconds;
# those beyond wait for the end of their line or a later write, as nothing else runs here to send them.
_PIECES, _SECONDS = 1000, 0.05


class _Pipe(io.RawIOBase):
    """A pipe that other processes hold too: one of them may have made it non-blocking."""

    def __init__(self, fd, name):
        self._fd = fd
        self.name = name
        self.mode = "w"

    def fileno(self):
        return self._fd

    def writable(self):
        return True

    def write(self, data):
        while True:
            try:
                return os.write(self._fd, data)
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._fd, select.POLLOUT)
                poll.poll()


class _Text(io.TextIOWrapper):
    """Flushes by lines, and pieces of lines unless there are very many."""

    _until = 0.0
    _pieces_left = 0

    def write(self, text):
        count = io.TextIOWrapper.write(self, text)
        if text and "\n" not in text:
            now = time.monotonic()
            if now >= self._until:
                self._until = now + _SECONDS
                self._pieces_left = _PIECES
            if self._pieces_left > 0:
                self._pieces_left -= 1
                self.flush()
        return count


def _make(fd, name):
    # Text that is not Unicode (lone surrogates) is shown escaped rather than lost.
    return _Text(
        io.BufferedWriter(_Pipe(fd, name), 64 * 1024),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=True,
    )


class Streams:
    def install(self):
        """Called before each cell: what the user put in place stays, unless it cannot be used."""
        for name, fd in (("stdout", 1), ("stderr", 2)):
            if not _usable(getattr(sys, f"__{name}__", None)):
                setattr(sys, f"__{name}__", _make(fd, f"<{name}>"))
            if not _usable(getattr(sys, name, None)):
                setattr(sys, name, getattr(sys, f"__{name}__"))

    def replace(self):
        """Called once at start."""
        sys.stdout = sys.__stdout__ = _make(1, "<stdout>")
        sys.stderr = sys.__stderr__ = _make(2, "<stderr>")

    def flush(self):
        """Everything printed so far is in the pipes afterwards, C's buffers included."""
        for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
            try:
                getattr(sys, name).flush()
            except Exception:
                # A stream of the user's, or a closed pipe: there is nobody to tell.
                pass
        ctypes = sys.modules.get("ctypes")
        if ctypes is not None:
            try:
                ctypes.pythonapi.fflush(None)
            except Exception:
                pass


def _usable(stream):
    try:
        return not stream.closed
    except ValueError:
        return False
    except AttributeError:
        # A minimal stream of the user's has no `closed`; None has no `write`.
        return hasattr(stream, "write")

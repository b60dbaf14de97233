# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""`!cmd`: a shell command on a terminal of its own, so that programs show their output at once."""

import errno
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios

_ROWS, _COLUMNS = 24, 80
_PATIENCE = 2.0
# More than a terminal holds, and an end to what goes on writing in the background.
_READS_AFTER_THE_END = 64


def run(command):
    """Runs the command, copies its output to sys.stdout and returns the exit status (negative: the
    signal). An interrupt is passed on to the command and then raised here."""
    ours, theirs = os.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            # A group for its interrupts, in the session that ends with the kernel.
            process_group=0,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    try:
        _copy(ours, process.pid)
        return process.wait()
    except BaseException:
        _end(process)
        raise
    finally:
        os.close(ours)


def _copy(terminal, pid):
    """Until the command has ended: what it left in the background may keep the terminal open."""
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    ended = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(terminal, select.POLLIN)
        poll.register(ended, select.POLLIN)
        reads_left = _READS_AFTER_THE_END
        while reads_left > 0:
            ready = {fd for fd, _ in poll.poll()}
            if terminal not in ready:
                # Its last words may have come between the two looks of that poll.
                ready = {fd for fd, _ in poll.poll(0)}
            reads_left -= ended in ready
            data = _read(terminal) if terminal in ready else b""
            text = decoder.decode(data, final=not data)
            if text:
                sys.stdout.write(text)
                sys.stdout.flush()
            if not data:
                return
    finally:
        os.close(ended)


def _read(terminal):
    try:
        return os.read(terminal, 64 * 1024)
    except OSError as error:
        # EIO: the last process with the terminal open is gone.
        if error.errno != errno.EIO:
            raise
        return b""


def _end(process):
    """The interrupt is for all that the command has started; who does not obey, or comes too late for it,
    is killed, whatever interrupts this."""
    try:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(_PATIENCE)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.poll()

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""`!cmd`: a shell command on a terminal of its own, so that programs show their output at once."""

import errno
import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios

_ROWS, _COLUMNS = 24, 80
_PATIENCE = 2.0


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
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    try:
        _copy(ours)
        return process.wait()
    except BaseException:
        _end(process)
        raise
    finally:
        os.close(ours)


def _copy(fd):
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while True:
        try:
            data = os.read(fd, 64 * 1024)
        except OSError as error:
            # EIO: the last process with the terminal open is gone.
            if error.errno != errno.EIO:
                raise
            data = b""
        text = decoder.decode(data, final=not data)
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
        if not data:
            return


def _end(process):
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_PATIENCE)
            return
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Reads frames and runs cells until the socket closes."""

import os
import sys

from alcove_runner import awaiting, display, formats, frames, imports, interrupts, output, shell, variables

_SOCKET = 3


class Runner:
    def __init__(self, fd):
        self._interrupts = interrupts.Interrupts()
        self._interrupts.ignore()
        self._streams = output.Streams()
        self._streams.replace()
        self._channel = frames.Channel(fd)
        self._results = display.Results(self._channel, self._streams, self._interrupts)
        self._shell = shell.make(self._results, self._interrupts)
        formats.install(self._shell)
        imports.install()
        awaiting.install()

    def adopt(self):
        """For a fork that is meant to be a runner of its own (a zygote's child)."""
        self._channel.adopt()

    def serve(self):
        self._channel.send({"type": "ready"})
        while True:
            awaiting.wait_readable(self._channel.fileno())
            self._streams.flush()
            frame = self._channel.read()
            if frame is None:
                return
            if frame.get("type") == "execute":
                self._execute(frame)

    def _execute(self, frame):
        run_id, code = frame["id"], frame["code"]
        self._interrupts.expect()
        # The shell counts from the number the user may have set; IPython's own trait is an int.
        count = self._shell.execution_count
        self._channel.send({"type": "started", "id": run_id, "execution_count": count})
        self._results.run_id = run_id
        self._shell.error = None
        self._streams.install()
        awaiting.begin_cell()
        with variables.of_run(frame.get("env")):
            error = self._run(code)
        awaiting.end_cell()
        self._streams.flush()
        if not self._channel.is_owner():
            # User code forked, and the child came back out of its cell.
            os._exit(0)
        if error is not None:
            self._send_error(run_id, error)
        self._channel.send({"type": "done", "id": run_id})

    def _run(self, code):
        """Returns the error of the run or None. The shell lets interrupts through while user code runs."""
        failure = None
        try:
            try:
                result = self._shell.run_cell(code, store_history=True)
                failure = result.error_before_exec or result.error_in_exec
                if awaiting.has_work():
                    with self._interrupts.delivered():
                        awaiting.step()
            finally:
                self._interrupts.ignore()
        except BaseException as error:
            # The interrupt came outside of the user's code, or the user broke the shell.
            self._interrupts.ignore()
            failure = error
        if self._shell.error is not None:
            return self._shell.error
        if failure is None:
            return None
        return _describe(failure)

    def _send_error(self, run_id, error):
        try:
            self._channel.send({"type": "error", "id": run_id, **error})
        except frames.FrameTooLarge:
            error = {"name": error["name"], "value": "", "traceback": ["the error is too large to be sent"]}
            self._channel.send({"type": "error", "id": run_id, **error})


def _describe(error):
    import traceback

    try:
        lines = traceback.format_exception(error)
    except Exception:
        lines = [type(error).__name__]
    return shell.describe(type(error), error, lines)


def main():
    status = 0
    try:
        Runner(_SOCKET).serve()
    except OSError:
        # The socket broke, or user code closed it: the interpreter starts a new runner.
        status = 1
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 1
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except Exception:
            pass
        # At once: threads and exit handlers of the user do not hold a runner that nobody hears.
        os._exit(status)

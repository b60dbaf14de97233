# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""IPython's shell without terminal, history database and colours."""

import builtins
import contextlib
import os
import signal
import sys
import traceback

from IPython.core.error import StdinNotImplementedError, UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from alcove_runner import awaiting, commands, display, tracebacks


class RunnerShell(InteractiveShell):
    displayhook_class = Type(display.MainResultHook)
    display_pub_class = Type(display.Publisher)

    def __init__(self, *args, results, interrupts, **kwargs):
        self.results = results
        self.interrupts = interrupts
        self.error = None
        super().__init__(*args, **kwargs)
        self.loop_runner = awaiting.run
        builtins.input = _refuse_input

    def init_completer(self):
        # Nobody completes here, and it is a noticeable part of the start.
        pass

    @contextlib.contextmanager
    def _tee(self, channel):
        # IPython 9 would keep all that a cell prints in memory, for the history.
        yield

    async def run_code(self, code_obj, result=None, *, async_=False):
        with self.interrupts.delivered():
            return await super().run_code(code_obj, result, async_=async_)

    def system(self, cmd):
        """`!cmd` and %pip."""
        if cmd.rstrip().endswith("&"):
            raise OSError("Background processes not supported.")
        # depth 1: the caller's frame, whose variables $name and {name} mean.
        self.user_ns["_exit_code"] = commands.run(self.var_expand(cmd, depth=1))

    def enable_gui(self, gui=None):
        """For %matplotlib, %pylab and %gui: inline figures need no event loop."""
        if gui is not None:
            raise UsageError(f"there is no screen for {gui}; `%matplotlib inline` shows figures as results")

    def ask_exit(self):
        """exit and quit: as sys.exit(), they end the cell and not the context."""
        raise SystemExit

    def showtraceback(self, exc_tuple=None, *args, **kwargs):
        kind, value, trace = self._exception(exc_tuple)
        if not self.results.is_owner():
            _end_child(value)
        if kind is not None and _has_group(value):
            # IPython prints groups to stderr instead of showing them.
            self._showtraceback(kind, value, traceback.format_exception(kind, value, trace))
            return
        with tracebacks.lookups_kept():
            super().showtraceback(exc_tuple, *args, **kwargs)

    def show_usage_error(self, exc):
        self._showtraceback(type(exc), exc, [f"UsageError: {exc}"])

    def _showtraceback(self, etype, evalue, stb):
        """Keeps the first error of the run, which is its reason; further ones are printed."""
        # An interrupted await is cancelled: that comes first, but the interrupt is the reason.
        cancelled = self.error is not None and self.error["name"] == "CancelledError"
        if self.error is None or (cancelled and etype is KeyboardInterrupt):
            self.error = describe(etype, evalue, stb)
        else:
            print("\n".join(str(line) for line in stb))

    def _exception(self, exc_tuple):
        try:
            return self._get_exc_info(exc_tuple)
        except ValueError:
            return None, None, None


def _end_child(error):
    """A process that the cell forked ends as any other would; thousands of them, at once."""
    status = 1
    if isinstance(error, KeyboardInterrupt):
        status = 128 + signal.SIGINT
    elif isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else error.code is not None
        if status is True:
            print(error.code, file=sys.stderr)
    elif error is not None:
        traceback.print_exception(error)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 255)


def describe(etype, evalue, stb):
    try:
        value = str(evalue)
    except Exception:
        value = f"<{etype.__name__} whose text cannot be made>"
    return {"name": etype.__name__, "value": value, "traceback": [str(entry) for entry in stb]}


def make(results, interrupts):
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = _no_colour()
    config.InteractiveShell.banner1 = ""
    config.PlainTextFormatter.max_seq_length = 0
    return RunnerShell.instance(config=config, results=results, interrupts=interrupts)


def _no_colour():
    import IPython

    # Themes have lower-case names since 9.0.
    return "nocolor" if IPython.version_info[0] >= 9 else "NoColor"


def _has_group(value):
    seen = set()
    while value is not None and id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, BaseExceptionGroup):
            return True
        value = value.__cause__ or value.__context__
    return False


def _refuse_input(prompt="", /):
    raise StdinNotImplementedError(
        "raw_input was called, but this frontend does not support input requests."
    )

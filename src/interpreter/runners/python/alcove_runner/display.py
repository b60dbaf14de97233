# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Values of last expressions and displayed objects leave as `result` frames."""

import sys

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher

from alcove_runner import frames, jsonable


class Results:
    """Sends MIME bundles of the running cell."""

    def __init__(self, channel, streams, interrupts):
        self._channel = channel
        self._streams = streams
        self._interrupts = interrupts
        self.run_id = None

    def is_owner(self):
        return self._channel.is_owner()

    def send(self, data, *, main):
        bundle = _bundle(data)
        if not bundle:
            return
        self._streams.flush()
        message = {"type": "result", "id": self.run_id, "data": bundle, "main": main}
        try:
            with self._interrupts.held():
                self._channel.send(message)
        except frames.FrameTooLarge as error:
            # What people look at, before what programs read.
            texts = {mime: entry for mime, entry in bundle.items() if isinstance(entry, str)}
            others = ", ".join(mime for mime in bundle if mime not in texts)
            if texts and others:
                _tell(f"the result comes without {others}, as it is too large: {error}")
                self.send(texts, main=main)
            else:
                _tell(f"the result is too large to be sent: {error}")
            return
        # The cell goes on: what it prints next must not overtake this.
        if not main:
            self._channel.wait_until_taken()


def _bundle(data):
    """What of a MIME bundle can be sent."""
    entries = {}
    for mime, value in data.items():
        if value is None:
            continue
        try:
            entries[str(mime)] = jsonable.entry(str(mime), value)
        except Exception as error:
            _tell(f"the result comes without {mime}: {jsonable.text_of(error)}")
    return entries


def _tell(what):
    try:
        print(what, file=sys.stderr)
    except Exception:
        # A stream of the user's.
        pass


class MainResultHook(DisplayHook):
    """The value of the last expression."""

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        self.shell.results.send(format_dict, main=True)

    def log_output(self, format_dict):
        # IPython keeps every bundle for ever; nobody asks for them here.
        pass

    def finish_displayhook(self):
        self._is_active = False


class Publisher(DisplayPublisher):
    """display(): updates of what was displayed before are dropped, as there is no event for them."""

    def publish(self, data, metadata=None, *args, transient=None, update=False, **kwargs):
        self._validate_data(data, metadata)
        if not update:
            self.shell.results.send(data, main=False)

    def clear_output(self, wait=False):
        pass

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Long tracebacks in reasonable time."""

import contextlib
import inspect


@contextlib.contextmanager
def lookups_kept():
    """IPython asks for the module of each frame. A cell has none, and every time inspect looks at all
    modules to find that out: seconds for the thousand frames of an endless recursion."""
    original = inspect.getmodule
    found = {}

    def getmodule(object, _filename=None):
        frame = getattr(object, "tb_frame", object)
        code = getattr(frame, "f_code", object)
        if not inspect.iscode(code):
            return original(object, _filename)
        key = type(object), code.co_filename, _filename
        if key not in found:
            found[key] = original(object, _filename)
        return found[key]

    inspect.getmodule = getmodule
    try:
        yield
    finally:
        inspect.getmodule = original

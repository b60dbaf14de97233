# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Environment variables that hold for one run."""

import contextlib
import os


@contextlib.contextmanager
def of_run(variables):
    environ = os.environ
    before = {}
    try:
        for name, value in (variables or {}).items():
            old = environ.get(name)
            try:
                environ[name] = value
            except (ValueError, OSError, TypeError):
                # A name or value that no environment can hold (NUL, "=").
                continue
            before[name] = old
        yield
    finally:
        for name, old in before.items():
            if old is None:
                environ.pop(name, None)
            else:
                environ[name] = old

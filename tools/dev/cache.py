# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The cache between runs: used when found, never needed, and safe to delete.

    ccache/      compiled objects
    layers/      built template layers, by content hash
    clients/     environments of the official clients, by the hash of their pins
    downloads/   packages of PyPI and npm
    fuzz/        inputs that earlier fuzzing found, per target
    tidy/        marks of files that clang-tidy found clean
"""

import contextlib
import fcntl
import os
import shutil
from pathlib import Path


def root():
    chosen = os.environ.get("ALCOVE_CACHE")
    return Path(chosen).absolute() if chosen else Path.home() / ".cache" / "alcove"


def folder(*names):
    path = root().joinpath(*names)
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def entry(*names):
    """Yields (directory, is_complete) of a cache entry, alone among processes. The entry counts
    as complete only if the block ends without an exception; a half-made one is made anew."""
    path = root().joinpath(*names)
    path.parent.mkdir(parents=True, exist_ok=True)
    marker = path / ".complete"
    with open(path.parent / f".{path.name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = marker.exists()
        if not complete:
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
        yield path, complete
        marker.touch()

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""`./dev lint` and `./dev fmt`: runs the checks of tools/lint."""

import sys

import cache
import console
import paths

sys.path.insert(0, str(paths.ROOT / "tools" / "lint"))
import forbidden  # noqa: E402
import formatting  # noqa: E402
import headers  # noqa: E402
import rooms  # noqa: E402
import tidy  # noqa: E402


def _tidy():
    return tidy.check(build_dir=paths.build_dir("release"), clean_marks=cache.folder("tidy"), say=console.say)


CHECKS = {
    "rooms": rooms.check,
    "headers": headers.check,
    "forbidden": forbidden.check,
    "format": formatting.check,
    "tidy": _tidy,
}


def lint(names=()):
    """Returns the names of the checks that passed and of those that failed."""
    passed, failed = [], []
    for name, check in CHECKS.items():
        if names and name not in names:
            continue
        problems = check()
        for problem in problems:
            console.say(problem)
        (failed if problems else passed).append(name)
    return passed, failed


def fmt():
    formatting.apply()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Every source file starts with the two-line licence header."""

import sys

import sources

_LINES = ("SPDX-License-Identifier: Apache-2.0", "Copyright the alcove authors")


def check():
    problems = []
    for path in sources.listed(".h", ".cc", ".c", ".py", ".mjs", ".js", ".sh", ".ini", "dev", ".ci/run"):
        with open(sources.ROOT / path, errors="replace") as file:
            head = [next(file, "") for _ in range(3)]
        lines = [line.lstrip("#/*; ").rstrip() for line in head if not line.startswith("#!")]
        if tuple(lines[:2]) != _LINES:
            problems.append(f"{path}: the first lines are not `{_LINES[0]}` and `{_LINES[1]}`")
    return problems


if __name__ == "__main__":
    found = check()
    print("\n".join(found))
    sys.exit(bool(found))

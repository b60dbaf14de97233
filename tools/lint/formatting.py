#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""clang-format: `check` finds files that it would change, `apply` changes them."""

import subprocess
import sys

import sources

_PROGRAM = "clang-format-19"


def check():
    files = [str(path) for path in sources.cxx()]
    if not files:
        return []
    done = subprocess.run(
        [_PROGRAM, "--dry-run", "-Werror", *files], cwd=sources.ROOT, capture_output=True, text=True
    )
    wrong = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "error:" in line})
    if done.returncode != 0 and not wrong:
        return [done.stderr.strip()]
    return [f"{path}: not formatted; run `./dev fmt`" for path in wrong]


def apply():
    files = [str(path) for path in sources.cxx()]
    if files:
        subprocess.run([_PROGRAM, "-i", *files], cwd=sources.ROOT, check=True)


if __name__ == "__main__":
    found = check()
    print("\n".join(found))
    sys.exit(bool(found))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""clang-tidy on the changed source files: those that differ from HEAD, and those of the last
commit. A file found clean is not looked at again until it, a header of ours that it includes, or
.clang-tidy changes."""

import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import sources

_PROGRAM = "clang-tidy-19"
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def check(build_dir=sources.ROOT / "build" / "release", clean_marks=None):
    """`clean_marks` is a directory that remembers the clean files, or None."""
    compiled = _compiled_files(build_dir)
    jobs = [path for path in changed() if str(sources.ROOT / path) in compiled]
    settings = hashlib.sha256((sources.ROOT / ".clang-tidy").read_bytes()).hexdigest()
    problems = []

    def look(path):
        mark = clean_marks / _digest(path, settings) if clean_marks else None
        if mark and mark.exists():
            return []
        done = subprocess.run(
            [_PROGRAM, "--quiet", "-p", str(build_dir), str(path)], cwd=sources.ROOT, capture_output=True, text=True
        )
        if done.returncode == 0:
            if mark:
                mark.touch()
            return []
        return [line for line in done.stdout.splitlines() if "error:" in line] or [f"{path}: {done.stderr.strip()}"]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(look, jobs):
            problems += found
    return problems


def changed():
    names = set()
    for command in (
        ["git", "diff", "--name-only", "HEAD"],
        ["git", "diff", "--name-only", "HEAD~1", "HEAD"],
        ["git", "ls-files", "-o", "--exclude-standard"],
    ):
        # Before the first commit there is no HEAD, before the second no HEAD~1.
        names |= set(subprocess.run(command, cwd=sources.ROOT, capture_output=True, text=True).stdout.splitlines())
    return [path for path in sources.listed(".cc", under=("src/",)) if str(path) in names]


def _compiled_files(build_dir):
    database = Path(build_dir) / "compile_commands.json"
    if not database.exists():
        return set()
    return {entry["file"] for entry in json.loads(database.read_text())}


def _digest(path, settings):
    total = hashlib.sha256(settings.encode())
    seen, waiting = set(), [sources.ROOT / path]
    while waiting:
        file = waiting.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        text = file.read_text(errors="replace")
        waiting += [sources.ROOT / "src" / name for name in _INCLUDE.findall(text)]
    for file in sorted(seen):
        total.update(file.read_bytes())
    return total.hexdigest()


if __name__ == "__main__":
    found = check()
    print("\n".join(found))
    sys.exit(bool(found))

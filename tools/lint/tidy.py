#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""clang-tidy on the source files, those changed last first, for as long as the time given for it.
A file found clean is not looked at again until it, a header of ours that it includes, or
.clang-tidy changes: so with a cache each run gets further, and without one the newest commits are
looked at."""

import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import sources

_PROGRAM = "clang-tidy-19"
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def check(build_dir=sources.ROOT / "build" / "release", clean_marks=None, seconds=120, say=print):
    """`clean_marks` is a directory that remembers the clean files, or None. No file is begun after `seconds`."""
    compiled = _compiled_files(build_dir)
    if not compiled:
        return [f"clang-tidy needs {build_dir}/compile_commands.json: `./dev build release` makes it"]
    settings = hashlib.sha256((sources.ROOT / ".clang-tidy").read_bytes()).hexdigest()
    marks = {path: clean_marks / _digest(path, settings) if clean_marks else None for path in newest_first()}
    jobs = [path for path, mark in marks.items() if str(sources.ROOT / path) in compiled and not (mark and mark.exists())]
    deadline = time.monotonic() + seconds
    problems, left = [], []

    def look(path):
        if time.monotonic() > deadline:
            left.append(path)
            return []
        done = subprocess.run(
            [_PROGRAM, "--quiet", "-p", str(build_dir), str(path)], cwd=sources.ROOT, capture_output=True, text=True
        )
        if done.returncode == 0:
            if marks[path]:
                marks[path].touch()
            return []
        return [line for line in done.stdout.splitlines() if "error:" in line] or [f"{path}: {done.stderr.strip()}"]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(look, jobs):
            problems += found
    if left:
        say(f"    clang-tidy: {len(jobs) - len(left)} files in {seconds} s, the newest; {len(left)} are for another run")
    return problems


def newest_first():
    """Source files, those with the youngest change first. A header stands for its source file too."""
    names = []
    for command in (
        ["git", "diff", "--name-only", "HEAD"],
        ["git", "ls-files", "-o", "--exclude-standard"],
        ["git", "log", "--format=", "--name-only", "--diff-merges=first-parent"],
    ):
        # Before the first commit there is no HEAD.
        names += subprocess.run(command, cwd=sources.ROOT, capture_output=True, text=True).stdout.splitlines()
    order = {}
    for name in names:
        order.setdefault(Path(name).with_suffix(".cc"), len(order))
    return sorted(sources.listed(".cc", under=("src/",)), key=lambda path: order.get(path, len(order)))


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

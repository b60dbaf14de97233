#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Arrows between rooms: src/<room> may include only itself and rooms above it."""

import re
import sys

import sources

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
_DEPS = re.compile(r"\b(?:TEST_)?DEPS\s+((?:[a-z_]+\s*)+)")


def check():
    order = sources.rooms()
    problems = []
    for path in sources.listed(".h", ".cc", under=("src/",)):
        room = path.parts[1]
        text = (sources.ROOT / path).read_text()
        for match in _INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            problems += _judge(order, room, match.group(1).split("/")[0], f"{path}:{line}")
    for path in sources.listed("CMakeLists.txt", under=("src/",)):
        text = re.sub(r"#[^\n]*", "", (sources.ROOT / path).read_text())
        for match in _DEPS.finditer(text):
            for target in match.group(1).split():
                problems += _judge(order, path.parts[1], target, str(path))
    return problems


def _judge(order, room, target, where):
    if room not in order:
        return [f"{where}: src/{room} is not in the list of rooms in CMakeLists.txt"]
    if target not in order:
        return [f'{where}: "{target}" is no room; project includes are written as "room/file.h"']
    if order.index(target) > order.index(room):
        return [f"{where}: {room} may not use {target}, which is below it"]
    return []


if __name__ == "__main__":
    found = check()
    print("\n".join(found))
    sys.exit(bool(found))

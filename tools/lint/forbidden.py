#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Things that must not be in the sources: debug prints, thrown exceptions, `using namespace` in
headers, headers without `#pragma once`, files that grew too long."""

import re
import sys

import sources

_MAX_LINES = 1000
_WARN_LINES = 600
_README_LINES = 60

# Programs talk to people in cli and main; log.cc is where log lines end up.
_MAY_PRINT = ("src/cli/", "src/main/", "src/base/log.cc", "fuzz/", "bench/")
_PRINT = re.compile(r"(?<![\w.>])(?:std::)?(?:printf|fprintf|puts|fputs|perror|dprintf)\s*\(|std::(?:cout|cerr|clog)\b")
_THROW = re.compile(r"\bthrow\b")
_USING_NAMESPACE = re.compile(r"\busing\s+namespace\b")
_TODO = re.compile(r"//\s*(?:FIXME|XXX|TODO(?!\((?:security|perf|compat)\):))")


def check():
    problems, warnings = check_all()
    for warning in warnings:
        print(f"warning: {warning}")
    return problems


def check_all():
    problems, warnings = [], []
    for path in sources.cxx():
        raw = (sources.ROOT / path).read_text(errors="replace")
        code = sources.without_comments_and_strings(raw)
        name = str(path)
        is_test = name.endswith("_test.cc") or "/testing/" in name or "/testcases/" in name
        rules = [(_TODO, raw, "a TODO is written `TODO(security|perf|compat): ...` with an issue id")]
        if name.endswith(".h"):
            rules.append((_USING_NAMESPACE, code, "`using namespace` in a header"))
            if "#pragma once" not in raw:
                problems.append(f"{path}: a header without `#pragma once`")
        if not is_test and not name.startswith(_MAY_PRINT):
            rules.append((_PRINT, code, "a print; use base/log.h"))
        if not is_test and name.startswith("src/"):
            rules.append((_THROW, code, "errors are values; nothing throws"))
        for pattern, text, message in rules:
            for match in pattern.finditer(text):
                problems.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {message}")
        _judge_length(path, raw.count("\n"), problems, warnings)
    for path in sources.listed(".py", ".mjs", under=("tools/", "tests/", "bench/", "dev")):
        _judge_length(path, (sources.ROOT / path).read_text().count("\n"), problems, warnings)
    for path in sources.listed("README.md", under=("src/",)):
        lines = (sources.ROOT / path).read_text().count("\n")
        if lines > _README_LINES:
            problems.append(f"{path}: {lines} lines; a room's README has at most {_README_LINES}")
    return problems, warnings


def _judge_length(path, lines, problems, warnings):
    if lines > _MAX_LINES:
        problems.append(f"{path}: {lines} lines; split it (at most {_MAX_LINES}, better {_WARN_LINES})")
    elif lines > _WARN_LINES:
        warnings.append(f"{path}: {lines} lines; more than {_WARN_LINES} is hard to read")


if __name__ == "__main__":
    found = check()
    print("\n".join(found))
    sys.exit(bool(found))

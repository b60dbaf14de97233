# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Writes a C++ file that holds the language runners: embed_runners.py <folder> <output> <file>..."""

import pathlib
import sys

PIECE = 80


def literal(content: bytes) -> str:
    """As adjacent string literals of octal escapes, which no character behind them can extend."""
    pieces = [content[at : at + PIECE] for at in range(0, len(content), PIECE)] or [b""]
    return "\n    ".join('"' + "".join(f"\\{byte:03o}" for byte in piece) + '"' for piece in pieces)


def main() -> None:
    folder, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    lines = ['#include "interpreter/runner_files.h"', "", "namespace alcove::interpreter {", "namespace {", ""]
    lines.append("constexpr RunnerFile kFiles[] = {")
    for name in sorted(sys.argv[3:]):
        content = pathlib.Path(name).read_bytes()
        path = pathlib.Path(name).relative_to(folder).as_posix()
        lines.append(f'  {{"{path}", std::string_view({literal(content)}, {len(content)})}},')
    lines += ["};", "", "}  // namespace", ""]
    lines += ["std::span<const RunnerFile> runner_files() { return kFiles; }", "", "}  // namespace alcove::interpreter", ""]
    output.write_text("\n".join(lines))


main()

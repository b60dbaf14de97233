# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The files that the lints look at."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def listed(*suffixes, under=("",)):
    """Tracked and new files (not ignored ones) with one of the suffixes, as paths relative to ROOT."""
    shown = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return sorted(
        Path(name)
        for name in shown
        if name.endswith(suffixes) and name.startswith(tuple(under)) and (ROOT / name).is_file()
    )


def cxx():
    return listed(".h", ".cc", under=("src/", "fuzz/", "bench/", "tests/"))


def rooms():
    """The rooms from top to bottom, as the top CMakeLists.txt lists them."""
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.search(r"foreach\(room IN ITEMS ([^)]*)\)", text)
    return found.group(1).split()


_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.S
)


def without_comments_and_strings(text):
    """The text with comments and literals blanked; line numbers stay."""

    def blank(match):
        return "\n" * match.group().count("\n") or " "

    return _TOKEN.sub(blank, text)

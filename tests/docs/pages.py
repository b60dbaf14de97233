# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The documentation's pages: which example each code block shows, and what it is said to print.

A block of Python or JavaScript stands below a line that ends with a link to its file,
`[hello.py](examples/hello.py):`. A block of `text` right behind it is what the example prints;
`...` in it stands for anything."""

import dataclasses
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_LANGUAGES = {"python": ".py", "js": ".mjs"}
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.S | re.M)
_LINK = re.compile(r"\]\(([^)]*examples/[\w.]+)\).*:$")


@dataclasses.dataclass
class Block:
    page: str
    language: str
    example: str  # name of the file, or empty
    code: str
    prints: str | None


def blocks():
    found = []
    for page in PAGES:
        text = page.read_text()
        last, last_end = None, 0
        for match in _BLOCK.finditer(text):
            language, code = match.groups()
            between = text[last_end : match.start()].strip()
            if language == "text" and last and not between:
                last.prints = code
            last = None
            if language in _LANGUAGES:
                above = text[: match.start()].rstrip().rpartition("\n")[2]
                link = _LINK.search(above)
                target = (page.parent / link[1]).resolve() if link else None
                example = target.name if target and target.parent == EXAMPLES else ""
                last = Block(page.name, language, example, code, None)
                found.append(last)
            last_end = match.end()
    return found


def shown(path):
    """An example as the pages show it: without the licence header."""
    lines = path.read_text().splitlines(keepends=True)
    return "".join(lines[2:])


def links():
    """Every link between pages and into the checkout, as (page, path, anchor)."""
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
            if "://" not in target:
                yield page, page.parent / target if target else page, anchor


def anchors(page):
    """What the headings of a page are called in links."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Every example of the documentation runs with the newest clients and prints what its page says,
and the pages show exactly the files that run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import EXAMPLES, anchors, blocks, links, shown

_FILES = sorted(path.name for path in EXAMPLES.iterdir())
_BLOCKS = blocks()


@pytest.mark.parametrize("number", range(len(_BLOCKS)), ids=lambda number: f"{_BLOCKS[number].page}-{number}")
def test_code_on_a_page_is_a_file(number):
    block = _BLOCKS[number]
    assert block.example, f"{block.page}: the line above this block links to no example:\n{block.code}"
    assert block.code == shown(EXAMPLES / block.example)


@pytest.mark.parametrize("name", _FILES)
def test_example_is_shown_and_runs(name):
    pages = [block for block in _BLOCKS if block.example == name]
    assert pages, f"no page shows {name}"
    done = subprocess.run(_command(name), capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stdout + done.stderr
    for block in pages:
        if block.prints is not None:
            pattern = ".*".join(re.escape(part) for part in block.prints.split("..."))
            assert re.fullmatch(pattern, done.stdout), f"{block.page} says:\n{block.prints}\nbut it printed:\n{done.stdout}"


def _command(name):
    if name.endswith(".py"):
        return [sys.executable, "-B", EXAMPLES / name]
    loader = Path(__file__).resolve().parents[1] / "conformance" / "js" / "resolve_client.mjs"
    return [os.environ["ALCOVE_NODE"], "--import", loader.as_uri(), EXAMPLES / name]


@pytest.mark.parametrize("name", _FILES)
def test_example_says_what_it_prints(name):
    assert any(block.example == name and block.prints is not None for block in _BLOCKS)


def test_links_lead_somewhere():
    broken = []
    for page, target, anchor in links():
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{page.name}: {target.name}#{anchor}")
    assert not broken

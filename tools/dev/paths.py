# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Where things lie in the checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
TESTS = ROOT / "tests"


def build_dir(preset):
    return BUILD / preset


def program(name, preset="release"):
    return build_dir(preset) / "bin" / name

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Starts runners from the sources, with the commands that the interpreter uses."""

import os
from pathlib import Path

import pytest
from interpreter.driver import Runner

_RUNNERS = Path(__file__).resolve().parents[2] / "src" / "interpreter" / "runners"


def _command(language):
    """The line of the runner's COMMAND, with the programs of this test run."""
    folder = _RUNNERS / language
    words = (folder / "COMMAND").read_text().split()
    program = os.environ.get(f"ALCOVE_TEST_{words[0].upper()}", words[0])
    return [program, *(word.replace("<folder>", str(folder)) for word in words[1:])]


@pytest.fixture
def start_runner(tmp_path):
    """A function that starts a runner in the test's directory; they end with the test."""
    started = []

    def start(language, *, environ=None, cwd=tmp_path):
        plain = {"PATH": os.environ["PATH"], "HOME": "/root", "LANG": "C.UTF-8"}
        runner = Runner(_command(language), cwd=cwd, environ=plain | (environ or {}))
        started.append(runner)
        runner.wait_until_ready()
        return runner

    yield start
    for runner in started:
        runner.close()

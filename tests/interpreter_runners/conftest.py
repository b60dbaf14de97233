# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Starts runners from the sources, with the commands that the interpreter uses."""

import os
import sys
from pathlib import Path

import pytest
from interpreter.driver import Runner

_RUNNERS = Path(__file__).resolve().parents[2] / "src" / "interpreter" / "runners"


def _command(language, tmp_path):
    node = os.environ.get("ALCOVE_TEST_NODE", "node")
    if language == "node":
        return [node, "--no-force-async-hooks-checks", "--disable-warning=ExperimentalWarning", _RUNNERS / "node" / "main.mjs"]
    if language == "python":
        return [sys.executable, _RUNNERS / "python" / "main.py"]
    raise AssertionError(language)


@pytest.fixture
def start_runner(tmp_path):
    """A function that starts a runner in the test's directory; they end with the test."""
    started = []

    def start(language, *, environ=None, cwd=tmp_path):
        plain = {"PATH": os.environ["PATH"], "HOME": "/root", "LANG": "C.UTF-8"}
        runner = Runner(_command(language, tmp_path), cwd=cwd, environ=plain | (environ or {}))
        started.append(runner)
        runner.wait_until_ready()
        return runner

    yield start
    for runner in started:
        runner.close()

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Starts runners from the sources, with the commands that the interpreter uses."""

import os
import shutil
from pathlib import Path

import pytest
from interpreter.driver import Runner

_RUNNERS = Path(__file__).resolve().parents[2] / "src" / "interpreter" / "runners"


@pytest.fixture(scope="session")
def runners(tmp_path_factory):
    """A copy of the runners, as the interpreter makes one; Java puts classes beside its source."""
    return shutil.copytree(_RUNNERS, tmp_path_factory.mktemp("interpreter") / "runners")


def _command(folder, language):
    """The line of the runner's COMMAND, with the programs of this test run."""
    words = (folder / "COMMAND").read_text().split()
    program = os.environ.get(f"ALCOVE_TEST_{words[0].upper()}", words[0])
    return [program, *(word.replace("<folder>", str(folder)).replace("<language>", language) for word in words[1:])]


def _starter(runners, default_cwd):
    started = []

    def start(folder, language=None, *, environ=None, cwd=default_cwd):
        plain = {"PATH": os.environ["PATH"], "HOME": "/root", "LANG": "C.UTF-8"}
        runner = Runner(_command(runners / folder, language or folder), cwd=cwd, environ=plain | (environ or {}))
        started.append(runner)
        runner.wait_until_ready()
        return runner

    yield start
    for runner in started:
        runner.close()


@pytest.fixture
def start_runner(runners, tmp_path):
    """A function that starts a runner in the test's directory; they end with the test."""
    yield from _starter(runners, tmp_path)


@pytest.fixture(scope="module")
def start_module_runner(runners, tmp_path_factory):
    """The same for runners that all tests of a file share."""
    yield from _starter(runners, tmp_path_factory.mktemp("module"))

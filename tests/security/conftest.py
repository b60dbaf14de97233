# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Sandboxes to be hostile to, and a look at the server after each test."""

import asyncio
from pathlib import Path

import pytest
from e2b import Sandbox
from harness import DATA_DIR, eventually, server_pid
from hostile import Usage


@pytest.fixture(scope="module")
def box():
    sandbox = Sandbox.create(timeout=600, metadata={"test": "bad input"})
    yield sandbox
    sandbox.kill()


@pytest.fixture
def victim():
    """A sandbox that the test may ruin."""
    sandbox = Sandbox.create(timeout=120, metadata={"test": "bad input"})
    yield sandbox
    sandbox.kill()


@pytest.fixture
def server_is_unharmed(box):
    """After the test: the same server process, no more memory or descriptors than before, and an
    untouched sandbox still works."""
    if not DATA_DIR:
        yield
        return
    pid, before = server_pid(), Usage()
    yield
    assert server_pid() == pid and Path(f"/proc/{pid}").exists()
    assert box.commands.run("echo ok").stdout == "ok\n"
    assert asyncio.run(eventually(lambda: Usage().descriptors <= before.descriptors + 20, within=8)), (before, Usage())
    assert Usage().memory < before.memory + 64 * 2**20, (before, Usage())

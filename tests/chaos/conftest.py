# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Servers for tests that kill them."""

import contextlib
import os
import resource
import shutil
from pathlib import Path

import pytest
from host import Host

# For ten thousand connections and what the servers reserve; they inherit the limit.
_DESCRIPTORS = 20_000


def pytest_configure(config):
    """Where the limit is lower and cannot be raised, all tests fail here: none is left out."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY:
        most = max(most, _DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, most))


@contextlib.contextmanager
def _host(**options):
    host = Host(**options)
    try:
        host.start()
        yield host
    finally:
        host.close()


@pytest.fixture(scope="session")
def _shared_host():
    with _host() as made:
        yield made


@pytest.fixture
def host(_shared_host):
    """One that runs and has no sandboxes, whatever the test before left."""
    if not _shared_host.running:
        _shared_host.start()
    _shared_host.kill_all()
    return _shared_host


@pytest.fixture
def fresh_host():
    """One for a test that leaves it in a state of its own."""
    with _host() as made:
        yield made


@pytest.fixture
def small_pool_host():
    with _host(pool_size="1GiB") as made:
        yield made


@pytest.fixture
def newer_program(tmp_path):
    """A copy of the program and its helpers in another place, as an update installs it. Its agent
    is another file than the one that runs."""
    built = Path(os.environ["ALCOVE_BIN"]).parent
    for program in built.glob("alcove*"):
        shutil.copy(program, tmp_path)
    # Bytes behind the end of an ELF file change its hash and nothing else.
    with open(tmp_path / "alcove-agent", "ab") as agent:
        agent.write(b"newer")
    return tmp_path / "alcove"

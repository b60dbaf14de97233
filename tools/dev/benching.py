# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""`./dev bench`: runs the programs of bench/. Each is a Python file with a `main()`, gets the
settings of a running server in its environment, and prints its own table; nothing fails on a time."""

import sys

import building
import client_stages
import clients
import console
import deps
import paths

_BENCH = paths.ROOT / "bench"


def names():
    return sorted(path.stem for path in _BENCH.glob("*.py"))


def bench(wanted, server_env=None):
    for name in wanted:
        if name not in names():
            raise console.DevError(f"no benchmark {name}; there are: {', '.join(names()) or 'none yet'}")
    chosen = list(wanted) or names()
    if not chosen:
        console.say("bench/ holds no benchmark yet")
        return
    deps.ensure("build", "serve", "test")
    newest = clients.generations()[-1]
    if server_env:
        _run(chosen, newest, client_stages.environ_of(server_env, paths.program("alcove")))
        return
    building.build("release")
    server = client_stages.TestServer()
    try:
        server.start()
        server.wait_until_ready()
        _run(chosen, newest, server.environ())
    finally:
        for text in server.close():
            print(text, file=sys.stderr)


def _run(chosen, generation, environ):
    python = clients.python_for(generation)
    for name in chosen:
        console.step(f"bench {name}")
        console.run([python, "-B", _BENCH / f"{name}.py"], cwd=_BENCH, env=environ)

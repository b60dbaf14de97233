# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""`./dev bench`: runs the programs of bench/. Each is a Python file that gets the settings of a
running server in its environment and prints its own table; nothing fails on a time. A run of all of
them writes bench/RESULTS.md."""

import datetime
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import building
import client_stages
import clients
import console
import deps
import paths

_BENCH = paths.ROOT / "bench"
_RESULTS = _BENCH / "RESULTS.md"
# From this heading on, the file is written by hand: what `./dev test --full` showed.
_BY_HAND = "## Runs of the full tier"
# A benchmark that hangs must not take the whole run with it.
_LIMIT = 900


def names():
    return sorted(path.stem for path in _BENCH.glob("*.py"))


def bench(wanted, server_env=None):
    for name in wanted:
        if name not in names():
            raise console.DevError(f"no benchmark {name}; there are: {', '.join(names())}")
    deps.ensure("build", "serve", "test", "bench")
    newest = clients.generations()[-1]
    if server_env:
        environ = client_stages.environ_of(server_env, paths.program("alcove"))
        _run(wanted, newest, environ, "one that was already running; its build may not be this commit")
        return
    building.build("release")
    server = client_stages.TestServer()
    try:
        server.start()
        server.wait_until_ready()
        _run(wanted, newest, server.environ(), "a fresh one, release build")
    finally:
        for text in server.close():
            print(text, file=sys.stderr)


def _run(wanted, generation, environ, server):
    python = clients.python_for(generation)
    environ = environ | {"ALCOVE_BENCH_JUPYTER": str(clients.jupyter_python())}
    facts = _facts() | {"server": server, "client": f"e2b {generation.python_version} (Python)"}
    sections, failed = [], []
    with tempfile.TemporaryDirectory(prefix="alcove-bench-") as folder:
        for name in wanted or names():
            console.step(f"bench {name}")
            table = Path(folder, name)
            program = [python, "-B", _BENCH / f"{name}.py"]
            console.run(program, cwd=_BENCH, env=environ | {"ALCOVE_BENCH_TABLE": str(table)}, check=False, timeout=_LIMIT)
            if table.exists():
                sections.append(_section(name, **json.loads(table.read_text())))
            else:
                failed.append(name)
                sections.append(f"## {name}\n\nfailed\n")
    # Part of the benchmarks must not pass for all of them.
    if not wanted:
        facts["load average at the end"] = _load()
        _RESULTS.write_text("\n".join([_head(facts), *sections, _kept_part()]))
        console.say(f"    written: {_RESULTS.relative_to(paths.ROOT)}")
    if failed:
        raise console.DevError(f"failed: {', '.join(failed)}")


def _kept_part():
    text = _RESULTS.read_text() if _RESULTS.exists() else ""
    return text[text.index(_BY_HAND) :] if _BY_HAND in text else f"{_BY_HAND}\n"


def _section(name, about, table):
    return f"## {name}\n\n{about.strip()}\n\n{table}\n"


def _head(facts):
    lines = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    return f"# Results\n\nWritten by `./dev bench`; see README.md.\n\n| | |\n|---|---|\n{lines}\n"


def _facts():
    changed = console.output_of(["git", "status", "--porcelain", "-uno"], cwd=paths.ROOT).splitlines()
    changed = [line for line in changed if not line[3:].startswith("bench/")]
    commit = console.output_of(["git", "rev-parse", "--short", "HEAD"], cwd=paths.ROOT).strip()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit + (" with local changes" if changed else ""),
        "kernel": platform.release(),
        "cpus": f"{os.cpu_count()} x {_entry('/proc/cpuinfo', 'model name')}",
        "memory": f"{int(_entry('/proc/meminfo', 'MemTotal').split()[0]) / (1 << 20):.1f} GiB",
        "load average at the start": _load(),
    }


def _load():
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def _entry(file, name):
    for line in Path(file).read_text().splitlines():
        if line.startswith(name):
            return line.partition(":")[2].strip()
    return "unknown"

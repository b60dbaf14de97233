# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The task runner's command line."""

import argparse
import os
import signal
import sys
from pathlib import Path

sys.dont_write_bytecode = True

if sys.version_info < (3, 11):
    sys.exit("./dev needs Python 3.11 or newer (Debian 12's python3)")

import benching  # noqa: E402
import building  # noqa: E402
import cleaning  # noqa: E402
import compat  # noqa: E402
import console  # noqa: E402
import deps  # noqa: E402
import linting  # noqa: E402
import network_stage  # noqa: E402
import paths  # noqa: E402
import serving  # noqa: E402
import testing  # noqa: E402
from attempts import Attempts  # noqa: E402

_INTRO = """\
alcove's task runner.

  ./dev up              install what is missing, build, make the default templates, serve
  ./dev test            everything that CI runs

First steps on a fresh Debian 12 machine, as root:

  ./dev up --detach     returns when sandboxes can be created
  set -a; . /var/lib/alcove/env; set +a
  apt-get install -y python3-venv
  python3 -m venv venv
  venv/bin/pip install e2b
  venv/bin/python docs/examples/hello.py
  ./dev down            stops the server; sandboxes go on running (down --all ends them too)

While working on alcove:

  ./dev build debug             compile a preset: release, debug, asan, tsan, ubsan
  ./dev test --quick            unit tests, and one smoke run per client
  ./dev test http connect       unit tests of two rooms of src/
  ./dev test commands files     these client tests, every generation of clients
  ./dev test --client newest --server-env /var/lib/alcove/env commands
                                the inner loop: one file, one client, a server that is already up
  ./dev fmt && ./dev lint       before a commit
"""

_ENVIRONMENT = """\
environment:
  ALCOVE_DATA    the data directory (default /var/lib/alcove); --data-dir wins
  ALCOVE_CACHE   compiled objects, template layers, client environments, downloads
                 (default ~/.cache/alcove); used when found, safe to delete
"""


def _parser():
    parser = argparse.ArgumentParser(
        prog="./dev", description=_INTRO, epilog=_ENVIRONMENT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = parser.add_subparsers(dest="task", metavar="TASK", required=True)

    def task(name, text):
        return tasks.add_parser(name, help=text, description=text)

    up = task("up", "build and serve; with --detach in the background")
    _add_data_dir(up)
    up.add_argument("--detach", action="store_true", help="return when creates of `base` and `code-interpreter-v1` would succeed")
    up.add_argument("--listen", default="", metavar="ADDRESS:PORT", help="default: port 3000 on 127.0.0.1 and ::1")
    up.add_argument("--domain", default="", metavar="NAME", help="the name that clients use, with --tls-cert and --tls-key unless below localhost (default: alcove.localhost)")
    up.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate for *.NAME and its chain, in PEM; read again when it changes")
    up.add_argument("--tls-key", type=Path, metavar="FILE", help="its key")
    up.add_argument("--pool-size", default="", metavar="SIZE", help="disk pool of all sandboxes, as 8GiB (default: 40 %% of the free space, at most 100 GiB)")
    up.add_argument("--dns", default="", metavar="ADDRESS[,ADDRESS]", help="name servers for sandboxes (default: those of this machine)")
    up.add_argument("--slim", action="store_true", help="keep the slim code-interpreter-v1: its full build, in the background, is left out")
    up.add_argument("--templates", action="append", type=Path, metavar="DIR", help="recipes to build (default: templates/; may be given again)")

    down = task("down", "stop the server; sandboxes go on running")
    _add_data_dir(down)
    down.add_argument("--all", action="store_true", help="also end all sandboxes")

    test = task("test", "run tests; without names, what CI runs")
    test.add_argument("names", nargs="*", metavar="NAME", help="stages (%s), rooms of src/, client test files" % ", ".join(testing.STAGES))
    size = test.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="unit tests, and one smoke run per client")
    size.add_argument("--full", action="store_true", help="also the thread sanitizer, longer fuzzing, more load and rounds of chaos")
    test.add_argument("--client", action="append", default=[], metavar="GENERATION", help="only these generations of tests/clients.toml")
    test.add_argument("--server-env", type=Path, metavar="FILE", help="use the running server whose settings FILE holds; builds nothing")
    test.add_argument("-k", default="", metavar="EXPRESSION", help="pytest's -k for the Python client tests")

    compat_page = task("compat", "docs/compatibility.md: what `./dev test` showed of each method and endpoint")
    compat_page.add_argument("--write", action="store_true", required=True, help="write it from the last whole run of each generation")

    bench = task("bench", "run benchmarks; they print numbers and never fail on a time")
    bench.add_argument("names", nargs="*", metavar="NAME")
    bench.add_argument("--server-env", type=Path, metavar="FILE", help="as for test")

    clean = task("clean", "put the machine back after a crash: processes, sandboxes, mounts, cgroups, loop devices, what aborted tests left")
    _add_data_dir(clean)
    clean.add_argument("--data", action="store_true", help="also delete the data directory")

    build = task("build", "compile a preset into build/PRESET")
    build.add_argument("preset", nargs="?", default="release", choices=building.PRESETS)

    task("fmt", "format the C++ sources")

    lint = task("lint", "check the sources")
    lint.add_argument("names", nargs="*", metavar="CHECK", help=", ".join(linting.CHECKS))
    return parser


def _add_data_dir(parser):
    default = os.environ.get("ALCOVE_DATA") or "/var/lib/alcove"
    parser.add_argument("--data-dir", type=Path, default=Path(default), metavar="DIR", help="default: $ALCOVE_DATA or /var/lib/alcove")


def _up(options):
    templates = options.templates or [paths.ROOT / "templates"]
    server = serving.Server(
        data=options.data_dir.absolute(),
        listen=options.listen,
        pool_size=options.pool_size,
        dns=options.dns,
        templates=tuple(folder.absolute() for folder in templates),
        options=_serve_options(options),
    )
    running = server.pid()
    if running:
        console.step(f"already up (pid {running})")
        server.wait_until_ready()
        _show_settings(server)
        return
    deps.ensure("build", "serve")
    building.build("release", targets=("programs",))
    server.examine_machine()
    if not options.detach:
        console.step(f"serving; settings for clients will be in {server.env_file} (Ctrl-C stops the server)")
        server.run_in_foreground()
    with console.timed("starting the server"):
        process = server.start_detached()
        server.wait_until_ready(process)
    _show_settings(server)
    server.check_templates(process)


def _serve_options(options):
    """Further arguments of `alcove serve`."""
    found = ["--slim"] if options.slim else []
    for name, value in (("--domain", options.domain), ("--tls-cert", options.tls_cert), ("--tls-key", options.tls_key)):
        if value:
            found += [name, str(value.absolute() if isinstance(value, Path) else value)]
    return tuple(found)


def _show_settings(server):
    console.say(f"\nSettings for clients, also in {server.env_file}:\n")
    console.say(server.env_file.read_text().rstrip())
    console.say(f"\n  set -a; . {server.env_file}; set +a\n")


def _down(options):
    server = serving.Server(data=options.data_dir.absolute())
    console.say("server stopped" if server.stop() else "no server was running")
    if options.all:
        server.admin("end-all")
        console.say("all sandboxes ended")


def _clean(options):
    attempts = Attempts()
    for name in attempts.run(network_stage.remove_orphans) or ():
        console.say(f"{name} removed")
    attempts.run(lambda: cleaning.clean(options.data_dir.absolute(), with_data=options.data))
    attempts.finish()


def _lint(options):
    unknown = [name for name in options.names if name not in linting.CHECKS]
    if unknown:
        raise console.DevError(f"no check {unknown[0]}; there are: {', '.join(linting.CHECKS)}")
    deps.ensure("lint")
    passed, failed = linting.lint(options.names)
    console.say(f"{len(passed)} passed, {len(failed)} failed")
    return not failed


def _fmt(options):
    deps.ensure("lint")
    linting.fmt()


def _build(options):
    deps.ensure("build")
    building.build(options.preset)


_TASKS = {
    "up": _up,
    "down": _down,
    "test": testing.test,
    "compat": lambda options: compat.write(),
    "bench": lambda options: benching.bench(options.names, options.server_env),
    "clean": _clean,
    "build": _build,
    "fmt": _fmt,
    "lint": _lint,
}


def _interrupt(number, frame):
    raise KeyboardInterrupt


def main():
    options = _parser().parse_args()
    # A run that is told to stop must still take its test server down.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return 1 if _TASKS[options.task](options) is False else 0
    except console.DevError as error:
        print(f"./dev: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())

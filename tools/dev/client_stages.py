# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Stages of `./dev test` that drive a server with the official clients."""

import contextlib
import os
import shutil
import socket
import tempfile
from pathlib import Path

import cache
import clients
import console
import owners
import paths
import results
import serving

_CONFORMANCE = paths.TESTS / "conformance"
_NODE_TESTS = _CONFORMANCE / "js"
_SECURITY = paths.TESTS / "security"
_CHAOS = paths.TESTS / "chaos"
_DOCS = paths.TESTS / "docs"
_BROWSER = paths.TESTS / "browser"
_NETWORK = paths.TESTS / "network"
_FULL_TEMPLATE = paths.TESTS / "full_template"
# What of the Node tests a short suite runs.
_NODE_SUITES = {"walk": ("smoke.test.mjs",), "smoke": ("smoke.test.mjs", "git.test.mjs", "not_built.test.mjs")}
_POOL_SIZE = "8GiB"
# One sandbox gets half of it, and the full load tests store 5 GB.
_FULL_POOL_SIZE = "12GiB"
# A suite that hangs must not take the whole run with it.
_SUITE_LIMIT = 1800
# It waits for the template's build.
_FULL_TEMPLATE_LIMIT = 3600


class TestServer:
    """A server on a fresh data directory and a free port; leaves nothing behind."""

    def __init__(
        self, *, templates=(), options=(), environ=None, full_load=False, slim=True, program=None, own_templates=None
    ):
        """`own_templates`: only these of tests/templates."""
        data = Path(tempfile.mkdtemp(prefix="alcove-test-", dir="/var/tmp"))
        owners.mark(data)
        # These recipes get their roots here, from this machine's busybox and musl.
        own = data / "test-templates"
        shutil.copytree(paths.TESTS / "templates", own)
        console.run([own / "make-busybox-root", own])
        console.run([own / "make-alpine-root", own])
        for recipe in own.glob("*/recipe.toml"):
            if own_templates is not None and recipe.parent.name not in own_templates:
                shutil.rmtree(recipe.parent)
        self.server = serving.Server(
            data=data,
            listen=f"127.0.0.1:{_free_port()}",
            pool_size=_FULL_POOL_SIZE if full_load else _POOL_SIZE,
            templates=(paths.ROOT / "templates", own, *templates),
            layers=cache.folder("layers"),
            # The full code-interpreter-v1 would be built beside the tests.
            options=(*(["--slim"] if slim else []), *options),
            environ=environ,
            program=program or paths.program("alcove"),
        )
        # mkdtemp makes it private; an ordinary data directory can be passed through.
        self.server.data.chmod(0o755)
        # By what they are called in the data directory.
        self.kept_logs = {name: paths.BUILD / f"test-{name}.log" for name in ("server", "relay")}
        self._process = None

    def start(self):
        """Starts it; the base template is built while the caller does other things."""
        self.server.examine_machine()
        self._process = self.server.start_detached()

    def wait_until_ready(self):
        self.server.wait_until_ready(self._process)

    def environ(self, *, mode="plain"):
        return environ_of(self.server.env_file, self.server.program, mode=mode)

    def close(self):
        """Ends everything, and reports what a clean end would not have left: a list of texts."""
        left = []
        with contextlib.suppress(console.DevError):
            self.server.stop()
        for command in ("end-all", "clean"):
            try:
                self.server.admin(command)
            except console.DevError as error:
                left.append(str(error))
        left += [f"process {pid} is still there" for pid in serving.processes_of(self.server.data)]
        left += [f"{point} is still mounted" for point in serving.mounts_below(self.server.data)]
        for name, kept in self.kept_logs.items():
            kept.unlink(missing_ok=True)
            written = self.server.data / "log" / f"{name}.log"
            if written.exists():
                kept.parent.mkdir(exist_ok=True)
                shutil.copyfile(written, kept)
                console.say(f"    the {name}'s log: {kept}")
        if not left:
            shutil.rmtree(self.server.data)
        return left


def environ_of(env_file, program, *, mode="plain"):
    """The environment of a test run against the server that wrote `env_file`."""
    server = serving.Server(data=Path(env_file).absolute().parent)
    environ = console.clean_environ() | server.settings(mode=mode)
    environ["ALCOVE_BIN"] = str(program)
    # For the requests that tests make by themselves.
    environ["ALCOVE_ORIGIN"] = server.settings()["E2B_API_URL"]
    if server.pid() is not None:
        environ["ALCOVE_DATA"] = str(server.data)
    return environ


def load_environ(*, full):
    """What the load tests need: a client that opens as many connections as they ask for."""
    return {"E2B_MAX_CONNECTIONS": "2000", "ALCOVE_LOAD": "full" if full else "small"}


def names():
    """What `./dev test NAME` accepts besides stages: test files, by stem."""
    python = {path.stem.removeprefix("test_") for path in paths.TESTS.glob("*/test_*.py")}
    node = {path.name.removesuffix(".test.mjs") for path in _NODE_TESTS.glob("*.test.mjs")}
    return python | node


def is_conformance(stem):
    return bool(_python_files(_CONFORMANCE, (stem,)) or _node_files((stem,)))


def suites(generation, mode, environ, *, quick=False, full=False, only=(), extra=()):
    """The Python and the Node suite of one generation in one mode, as (stage name, function that runs it)."""
    suite = generation.suites_in(full=full).get(mode)
    if not suite or (quick and mode != "tls"):
        return []
    if quick and suite == "full":
        suite = "smoke"
    marks = [] if suite == "full" else ["smoke"]
    # Tests that are not about the generation's client run once.
    if generation.name != "newest" or mode != "plain":
        marks.append("not wire")
    walk = [_CONFORMANCE / "test_walk.py"]
    python = [path for path in _python_files(_CONFORMANCE, only) if suite != "walk" or path in walk]
    node = [path for path in _node_files(only) if path.name in _NODE_SUITES.get(suite, (path.name,))]
    note = " tls" if mode == "tls" else ""
    found = []
    if python:
        title = f"python {generation.python_version}{note}"
        found.append((title, lambda: _pytest(generation, python, environ, " and ".join(marks), extra)))
    if node:
        found.append((f"node {generation.npm_version}{note}", lambda: _node(generation, node, environ)))
    return found


def security(environ, *, only=(), extra=()):
    newest = clients.generations()[-1]
    files = _python_files(_SECURITY, only)
    return _pytest(newest, files, environ, "", extra) if files else results.Counts()


def chaos(environ, *, rounds, only=(), extra=()):
    """Tests that bring servers of their own, to kill and start them again."""
    newest = clients.generations()[-1]
    files = _python_files(_CHAOS, only)
    environ = environ | {"ALCOVE_CHAOS_ROUNDS": str(rounds)}
    return _pytest(newest, files, environ, "", extra) if files else results.Counts()


def docs(environ, *, only=(), extra=()):
    """The documentation's examples, run as they are shown."""
    newest = clients.generations()[-1]
    environ = environ | {
        "ALCOVE_NODE": str(clients.node_bin() / "node"),
        "ALCOVE_NODE_MODULES": str(clients.node_modules_for(newest)),
    }
    files = _python_files(_DOCS, only)
    return _pytest(newest, files, environ, "", extra) if files else results.Counts()


def browser(environ, *, only=(), extra=()):
    """The newest npm client in a web page."""
    newest = clients.generations()[-1]
    environ = environ | {
        "PATH": f"{clients.node_bin()}{os.pathsep}{environ['PATH']}",
        "ALCOVE_BUNDLER": str(clients.bundler()),
        "ALCOVE_NODE_MODULES": str(clients.node_modules_for(newest)),
    }
    files = _python_files(_BROWSER, only)
    return _pytest(newest, files, environ, "", extra) if files else results.Counts()


def network(environ, *, only=(), extra=()):
    newest = clients.generations()[-1]
    files = _python_files(_NETWORK, only)
    return _pytest(newest, files, environ, "", extra) if files else results.Counts()


def full_template(environ, *, extra=()):
    newest = clients.generations()[-1]
    return _pytest(newest, _python_files(_FULL_TEMPLATE, ()), environ, "", extra, limit=_FULL_TEMPLATE_LIMIT)


def _python_files(folder, only):
    return [path for path in sorted(folder.glob("test_*.py")) if not only or path.stem.removeprefix("test_") in only]


def _node_files(only):
    found = sorted(_NODE_TESTS.glob("*.test.mjs"))
    return [path for path in found if not only or path.name.removesuffix(".test.mjs") in only]


def _cli_environ(generation):
    """Where the official command line program of the generation is, if it has one."""
    if not any(pin.startswith("@e2b/cli@") for pin in generation.npm):
        return {}
    program = clients.node_modules_for(generation) / "node_modules" / "@e2b" / "cli" / "dist" / "index.js"
    return {"ALCOVE_E2B_CLI": str(program), "ALCOVE_NODE": str(clients.node_bin() / "node")}


def _pytest(generation, files, environ, marks, extra, *, limit=_SUITE_LIMIT):
    python = clients.python_for(generation)
    environ = environ | _cli_environ(generation)
    with _report() as report:
        command = [python, "-B", "-m", "pytest", "-c", paths.TESTS / "pytest.ini", f"--junitxml={report}"]
        select = ["-m", marks] if marks else []
        code = console.run([*command, *select, *extra, *files], cwd=paths.TESTS, env=environ, check=False, timeout=limit)
        # 5: nothing was selected in these files for this generation.
        if code == 5:
            return results.Counts()
        counts = results.from_junit(report)
    counts.failed = max(counts.failed, int(code != 0))
    return counts


def _node(generation, files, environ):
    modules = clients.node_modules_for(generation)
    node = clients.node_bin() / "node"
    with _report() as report:
        command = [
            node,
            "--import",
            (_NODE_TESTS / "resolve_client.mjs").as_uri(),
            "--import",
            (_NODE_TESTS / "recorder.mjs").as_uri(),
            "--test",
            # One file at a time: two cores, and some tests look at all sandboxes of the team.
            "--test-concurrency=1",
            "--test-reporter=spec",
            "--test-reporter-destination=stdout",
            "--test-reporter=junit",
            f"--test-reporter-destination={report}",
            *files,
        ]
        environ = environ | {"ALCOVE_NODE_MODULES": str(modules), "ALCOVE_CLIENT_VERSION": generation.npm_version}
        code = console.run(command, cwd=paths.TESTS, env=environ, check=False, timeout=_SUITE_LIMIT)
        counts = results.from_junit(report)
    counts.failed = max(counts.failed, int(code != 0))
    return counts


@contextlib.contextmanager
def _report():
    handle, name = tempfile.mkstemp(prefix="alcove-report-", suffix=".xml")
    os.close(handle)
    try:
        yield name
    finally:
        os.unlink(name)


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

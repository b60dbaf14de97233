# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""`./dev test`: which stages run, in which order, and beside what.

Compiling comes first because everything needs it; the client environments are fetched beside it,
and the base template is built beside the unit tests and the sanitizer build. The tests that drive
the server run when nothing else does."""

import concurrent.futures
import dataclasses
import tempfile
import time
import traceback
from pathlib import Path

import building
import client_stages
import clients
import compat
import console
import deps
import full_template_stage
import network_stage
import newcomer_stage
import paths
import results
import runner_stage
import sanitized_stage
import unit_stages

STAGES = {
    "units": "unit tests and corpus replay, release build",
    "dev": "the task runner's own logic",
    "lint": "arrows between rooms, licence headers, forbidden things, format, clang-tidy",
    "asan": "unit tests and corpus replay under address and undefined sanitizers",
    "fuzz": "a little fuzzing of every parser",
    "runners": "the code interpreter's language runners, without a server",
    "conformance": "the official clients against a real server",
    "security": "attempts to get out of a sandbox, or at another one",
    "browser": "the official client in a web page, against the TLS domain",
    "docs": "the documentation's examples, run as they are shown",
    "chaos": "servers that are killed, stopped and replaced while they work",
    "network": "what sandboxes and builds reach, in an internet that the test makes",
    "full_template": "the full build of code-interpreter-v1, and its packages (only with --full or by name)",
    "tsan": "unit tests under the thread sanitizer (only with --full or by name)",
    "clients-asan": "the newest clients; server and agents under address and undefined sanitizers (only with --full or by name)",
    "clients-tsan": "the same under the thread sanitizer (only with --full or by name)",
    "clients-ubsan": "the same under the undefined sanitizer, static agents (only with --full or by name)",
    "newcomer": "README's first steps in a fresh Debian root (only with --full or by name)",
}
_QUICK = ("units", "conformance")
_SANITIZED = {f"clients-{preset}": preset for preset in sanitized_stage.PRESETS}
_FULL_ONLY = ("full_template", "tsan", *_SANITIZED, "newcomer")
_FUZZ_SECONDS = 120
_FULL_FUZZ_SECONDS = 1800
_CHAOS_ROUNDS = 3
_FULL_CHAOS_ROUNDS = 20


@dataclasses.dataclass
class Plan:
    stages: tuple
    rooms: tuple = ()  # unit tests of these rooms only
    files: tuple = ()  # client tests of these files only
    generations: tuple = ()  # clients of these generations only
    quick: bool = False
    fuzz_seconds: int = _FUZZ_SECONDS
    chaos_rounds: int = _CHAOS_ROUNDS
    full_load: bool = False  # the large counts of the load tests, and what clients run in the full tier only
    server_env: Path = None  # use this running server instead of an own one
    pytest: tuple = ()  # further arguments for pytest


def plan(options):
    """Turns the command line into a Plan."""
    stages, rooms, files = [], [], []
    for name in options.names:
        stem = name.removeprefix("test_").removesuffix(".py").removesuffix(".test.mjs")
        is_room = (paths.ROOT / "src" / name / "CMakeLists.txt").exists()
        if name in STAGES:
            stages.append(name)
            # `network` is both.
            rooms += [name] if is_room else []
        elif stem in client_stages.names():
            files.append(stem)
        elif is_room:
            rooms.append(name)
        else:
            known = [*STAGES, *sorted(client_stages.names())]
            raise console.DevError(f"nothing to test is called {name}; a room of src/, or one of: {', '.join(known)}")
    for stage in ("dev", "security", "browser", "docs", "chaos", "network", "full_template"):
        if any((paths.TESTS / stage / f"test_{stem}.py").exists() for stem in files):
            stages.append(stage)
    if any((runner_stage.FOLDER / f"test_{stem}.py").exists() for stem in files):
        stages.append("runners")
    if any(client_stages.is_conformance(stem) for stem in files) and not _SANITIZED.keys() & set(stages):
        stages.append("conformance")
    if rooms and not {"units", "asan", "tsan"} & set(stages):
        stages.append("units")
    if not stages:
        stages = list(_QUICK) if options.quick else [name for name in STAGES if name not in _FULL_ONLY or options.full]
    known = {generation.name for generation in clients.generations()}
    for name in options.client:
        if name not in known:
            raise console.DevError(f"no client generation {name}; there are: {', '.join(sorted(known))}")
    return Plan(
        stages=tuple(name for name in STAGES if name in stages),
        rooms=tuple(rooms),
        files=tuple(files),
        generations=tuple(options.client),
        quick=options.quick,
        chaos_rounds=_FULL_CHAOS_ROUNDS if options.full else _CHAOS_ROUNDS,
        full_load=options.full,
        fuzz_seconds=_FULL_FUZZ_SECONDS if options.full else _FUZZ_SECONDS,
        server_env=options.server_env,
        pytest=tuple(["-k", options.k] if options.k else []),
    )


class Run:
    def __init__(self, plan):
        self.plan = plan
        self.stages = []
        self.needs_server = bool({"conformance", "security", "browser", "docs", "chaos"} & set(plan.stages))
        self.needs_clients = self.needs_server or bool({"network", "full_template", *_SANITIZED} & set(plan.stages))

    def stage(self, name, work, note=""):
        """Runs one stage to its end, whatever happens in it. Returns False if it failed."""
        console.step(f"stage {name}")
        start = time.monotonic()
        try:
            counts = work() or results.Counts()
        except console.DevError as error:
            console.say(str(error))
            counts = results.Counts(failed=1)
        except Exception:
            console.say(traceback.format_exc())
            counts = results.Counts(failed=1)
        self.stages.append(results.Stage(name, time.monotonic() - start, counts, note))
        return counts.failed == 0

    def all(self):
        """Returns True if nothing failed."""
        start = time.monotonic()
        server = None
        with concurrent.futures.ThreadPoolExecutor(1) as fetcher:
            try:
                if self.stage("deps", self._deps):
                    fetched = fetcher.submit(self._fetch_clients) if self.needs_clients else None
                    built = self.plan.server_env is not None or self.stage("build", self._build)
                    if built and self.needs_server and not self.plan.server_env:
                        server = client_stages.TestServer(full_load=self.plan.full_load)
                        server.start()
                    if built:
                        self._without_server()
                    if built and self.needs_clients and self.stage("clients", fetched.result):
                        if self.needs_server:
                            self._with_server(server)
                        if "network" in self.plan.stages:
                            self._network()
                        if "full_template" in self.plan.stages:
                            self._full_template()
                        for stage in self.plan.stages:
                            if stage in _SANITIZED:
                                self._sanitized(stage)
            finally:
                if server:
                    self.stage("cleanup", lambda: _cleanup(server))
        total = results.show(self.stages, time.monotonic() - start)
        return total.failed == 0

    def _deps(self):
        groups = {"build", "test"}
        if "lint" in self.plan.stages:
            groups.add("lint")
        if "runners" in self.plan.stages:
            groups.add("runners")
        if "browser" in self.plan.stages:
            groups.add("browser")
        if self.needs_clients:
            groups.add("serve")
        deps.ensure(*sorted(groups))

    def _build(self):
        building.build("release")

    def _fetch_clients(self):
        for generation in self._generations():
            clients.python_for(generation)
            clients.node_modules_for(generation)
        if "browser" in self.plan.stages:
            clients.bundler()

    def _generations(self):
        chosen = [g for g in clients.generations() if not self.plan.generations or g.name in self.plan.generations]
        return [g for g in chosen if not g.skip]

    def _without_server(self):
        wanted = self.plan.stages
        if "units" in wanted:
            self.stage("units", lambda: unit_stages.units("release", self.plan.rooms))
        if "dev" in wanted:
            self.stage("dev", unit_stages.dev)
        if "lint" in wanted:
            self.stage("lint", unit_stages.lint)
        if "asan" in wanted:
            self.stage("asan", lambda: unit_stages.units("asan", self.plan.rooms))
        if "fuzz" in wanted:
            if "asan" not in wanted:
                self.stage("asan build", lambda: building.build("asan") and None)
            self.stage("fuzz", lambda: unit_stages.fuzz(self.plan.fuzz_seconds))
        if "runners" in wanted:
            self.stage("runners", lambda: runner_stage.run(only=self.plan.files, extra=self.plan.pytest))
        if "tsan" in wanted:
            self.stage("tsan", lambda: unit_stages.units("tsan", self.plan.rooms))
        if "newcomer" in wanted:
            self.stage("newcomer", newcomer_stage.newcomer)

    def _with_server(self, server):
        if server and not self.stage("server", server.wait_until_ready):
            return
        environs = {mode: self._environ(server, mode) for mode in clients.MODES}
        environ = environs["plain"]
        if "conformance" in self.plan.stages:
            load = client_stages.load_environ(full=self.plan.full_load)
            self._conformance({mode: of_mode | load for mode, of_mode in environs.items()})
        if "security" in self.plan.stages:
            self.stage("security", lambda: client_stages.security(environ, only=self.plan.files, extra=self.plan.pytest))
        if "browser" in self.plan.stages:
            self.stage("browser", lambda: client_stages.browser(environ, only=self.plan.files, extra=self.plan.pytest))
        if "docs" in self.plan.stages:
            self.stage("docs", lambda: client_stages.docs(environs["tls"], only=self.plan.files, extra=self.plan.pytest))
        if "chaos" in self.plan.stages:
            rounds = self.plan.chaos_rounds
            self.stage("chaos", lambda: client_stages.chaos(environ, rounds=rounds, only=self.plan.files, extra=self.plan.pytest))

    def _environ(self, server, mode):
        if server:
            return server.environ(mode=mode)
        return client_stages.environ_of(self.plan.server_env, paths.program("alcove"), mode=mode)

    def _network(self):
        if self.plan.server_env:
            skipped = results.Counts(skipped=1)
            self.stages.append(results.Stage("network", 0, skipped, "needs a server of its own, not --server-env"))
            return
        self.stage("network", lambda: network_stage.run(only=self.plan.files, extra=self.plan.pytest))

    def _full_template(self):
        if self.plan.server_env:
            # A server that is up without --slim has it, sooner or later.
            environ = client_stages.environ_of(self.plan.server_env, paths.program("alcove"))
            self.stage("full_template", lambda: client_stages.full_template(environ, extra=self.plan.pytest))
            return
        self.stage("full_template", lambda: full_template_stage.run(extra=self.plan.pytest))

    def _sanitized(self, stage):
        if self.plan.server_env:
            skipped = results.Counts(skipped=1)
            self.stages.append(results.Stage(stage, 0, skipped, "needs a server of its own, not --server-env"))
            return
        preset = _SANITIZED[stage]
        self.stage(stage, lambda: sanitized_stage.run(preset, only=self.plan.files, extra=self.plan.pytest))

    def _conformance(self, environs):
        records, passed = {}, True
        for generation in clients.generations():
            if self.plan.generations and generation.name not in self.plan.generations:
                continue
            if generation.skip:
                skipped = results.Counts(skipped=1)
                self.stages.append(results.Stage(f"clients {generation.name}", 0, skipped, generation.skip))
                continue
            record = compat.Record()
            passed &= self._clients(generation, environs, record)
            records[generation.name] = record
        if passed and records:
            self.stage("compatibility", lambda: self._compatibility(records))

    def _clients(self, generation, environs, record):
        """The suites of one generation, which fill its record. Returns False if one failed."""
        passed = True
        chosen = {"quick": self.plan.quick, "full": self.plan.full_load, "only": self.plan.files, "extra": self.plan.pytest}
        with tempfile.TemporaryDirectory(prefix="alcove-compat-") as notes:
            for mode, environ in environs.items():
                for title, work in client_stages.suites(generation, mode, environ | {"ALCOVE_RECORD": notes}, **chosen):
                    passed &= self.stage(title, work)
            record.add_folder(notes)
        if passed and self._is_whole(generation):
            record.keep(generation.name)
        return passed

    def _is_whole(self, generation):
        """Whether all client tests run that the page of compatibility is made of."""
        chosen = self.plan.files or self.plan.pytest or self.plan.quick
        return not chosen and generation.shows_all(full=self.plan.full_load)

    def _compatibility(self, records):
        everybody = {generation.name: generation for generation in clients.generations() if not generation.skip}
        whole = {name for name in records if self._is_whole(everybody[name])}
        rows, found = compat.check(records, whole=whole, everybody=everybody.keys())
        for text in found:
            console.say(f"    {text}")
        if found:
            console.say(f"    {compat.PAGE.relative_to(paths.ROOT)} is not what the run showed; `./dev compat --write` after a whole run")
        return results.Counts(passed=rows, failed=len(found))


def _cleanup(server):
    left = server.close()
    for text in left:
        console.say(text)
    return results.Counts(passed=int(not left), failed=int(bool(left)))


def test(options):
    return Run(plan(options)).all()

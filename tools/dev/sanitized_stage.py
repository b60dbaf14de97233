# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Stages of `./dev test` that drive a server built with a sanitizer: any report fails them."""

import os
import re
import shutil

import building
import client_stages
import clients
import console
import paths
import results

PRESETS = ("asan", "tsan", "ubsan")
# What runs in sandboxes. The undefined sanitizer alone can be linked statically, so that it sees
# these as users get them, in every root; the server has it in `asan`, and is the release's here.
_INSIDE = ("alcove-agent", "alcove-interpreter", "alcove-jail", "alcove-step")
_HOST = ("alcove", "alcove-relay")
# With the other two, programs inside need a root with a C library like the build's.
_GLIBC_TEMPLATES = ("large", "small-disk", "debian-12")
_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:quarantine_size_mb=16",
    "TSAN_OPTIONS": "history_size=4",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
_REPORT = re.compile(r"ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error: |Sanitizer: CHECK failed")


def run(preset, *, only=(), extra=()):
    """One run of the newest clients; counts each report as a failure."""
    server = client_stages.TestServer(
        program=_build(preset),
        own_templates=None if preset == "ubsan" else _GLIBC_TEMPLATES,
        environ=os.environ | _OPTIONS,
    )
    counts = results.Counts()
    try:
        server.start()
        server.wait_until_ready()
        environ = server.environ() | client_stages.load_environ(full=False) | {"ALCOVE_SANITIZED": preset}
        newest = clients.generations()[-1]
        for title, work in client_stages.suites(newest, "plain", environ, only=only, extra=extra):
            console.say(f"    {title}")
            counts += work()
    finally:
        left = server.close()
        for text in left:
            console.say(text)
    reports = sum(show_reports(log) for log in server.kept_logs.values())
    return counts + results.Counts(failed=len(left) + reports)


def _build(preset):
    """Returns the path of the server, which finds the others beside it."""
    if preset != "ubsan":
        building.build(preset, targets=("programs",))
        return paths.program("alcove", preset)
    building.build(preset, targets=_INSIDE)
    mixed = paths.build_dir(preset) / "mixed"
    shutil.rmtree(mixed, ignore_errors=True)
    mixed.mkdir()
    for name in _INSIDE:
        shutil.copy2(paths.program(name, preset), mixed / name)
    for name in _HOST:
        shutil.copy2(paths.program(name), mixed / name)
    return mixed / "alcove"


def show_reports(log):
    """How many reports are in a log; they are shown."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    found = [number for number, line in enumerate(lines) if _REPORT.search(line)]
    for number in found[:10]:
        console.say("\n".join(lines[number : number + 40]))
    if found:
        console.say(f"{len(found)} reports of the sanitizer in {log}; `llvm-symbolizer-19 --obj=<program> <offset>` names places")
    return len(found)

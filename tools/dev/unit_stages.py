# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Stages of `./dev test` that need no server: unit tests, lint, sanitizers, fuzzing."""

import concurrent.futures
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree
from pathlib import Path

import building
import cache
import clients
import console
import linting
import paths
import results


def units(preset, rooms=()):
    """Builds a preset and runs its unit tests and corpus replays."""
    building.build(preset)
    directory = paths.build_dir(preset)
    reports = Path(tempfile.mkdtemp(prefix="alcove-units-"))
    try:
        junit = reports / "ctest" / "report.xml"
        junit.parent.mkdir()
        select = ["-R", f"^({'|'.join(rooms)})$"] if rooms else []
        environ = dict(
            os.environ,
            GTEST_OUTPUT=f"xml:{reports}/",
            # An aborted test must say why; leaks are errors.
            ASAN_OPTIONS="abort_on_error=1:detect_leaks=1",
            UBSAN_OPTIONS="print_stacktrace=1",
        )
        command = ["ctest", "--test-dir", directory, "--output-on-failure", f"-j{os.cpu_count()}"]
        code = console.run([*command, "--output-junit", junit, *select], env=environ, check=False)
        return _unit_counts(reports, junit, code)
    finally:
        shutil.rmtree(reports)


def _unit_counts(reports, junit, code):
    """Test cases of the GoogleTest binaries, plus those ctest entries that are no such binary or
    that died without a report."""
    counts = results.from_googletest(reports)
    seen = {path.stem.removesuffix("_test") for path in reports.glob("*.xml")}
    broken = 0
    try:
        cases = list(xml.etree.ElementTree.parse(junit).getroot().iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return results.Counts(failed=1)
    for case in cases:
        if case.find("failure") is not None:
            broken += 1
        elif case.get("name") not in seen:
            counts.passed += 1
    # A binary that crashed has no failed case in its report, but ctest knows of it.
    counts.failed = max(counts.failed, broken, int(code != 0))
    return counts


def dev():
    """The task runner's own tests."""
    folder = paths.TESTS / "dev"
    with tempfile.TemporaryDirectory(prefix="alcove-dev-") as reports:
        report = Path(reports) / "report.xml"
        command = [clients.pytest_python(), "-B", "-m", "pytest", "-c", paths.TESTS / "pytest.ini", f"--confcutdir={folder}"]
        code = console.run([*command, f"--junitxml={report}", folder], cwd=paths.TESTS, check=False)
        counts = results.from_junit(report)
    counts.failed = max(counts.failed, int(code != 0))
    return counts


def lint():
    passed, failed = linting.lint()
    return results.Counts(passed=len(passed), failed=len(failed))


def fuzz(seconds):
    """Shares `seconds` of fuzzing among all targets of the asan build."""
    directory = paths.build_dir("asan")
    targets = sorted(
        path for path in directory.rglob("*_fuzz") if path.is_file() and os.access(path, os.X_OK)
    )
    if not targets:
        return results.Counts()
    share = max(1, seconds // len(targets))
    console.say(f"    {len(targets)} targets, {share} s each")
    counts = results.Counts()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for passed in pool.map(lambda target: _fuzz_one(target, share), targets):
            counts += results.Counts(passed=int(passed), failed=int(not passed))
    return counts


def _fuzz_one(target, seconds):
    found = cache.folder("fuzz", target.name)
    crashes = paths.BUILD / "fuzz-crashes"
    crashes.mkdir(parents=True, exist_ok=True)
    corpus = paths.ROOT / "fuzz" / "corpus" / target.name
    command = [
        target,
        f"-max_total_time={seconds}",
        "-timeout=10",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        f"-artifact_prefix={crashes}/{target.name}-",
        found,
        *([corpus] if corpus.is_dir() else []),
    ]
    done = subprocess.run([str(a) for a in command], capture_output=True, text=True, errors="replace")
    if done.returncode == 0:
        return True
    tail = "\n".join(done.stderr.splitlines()[-60:])
    console.say(f"{target.name} failed; its input is in {crashes}\n{tail}")
    return False

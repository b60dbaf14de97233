# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The stage of `./dev test` that drives the code interpreter's language runners, without a server."""

import os
import tempfile
from pathlib import Path

import clients
import console
import paths
import results

FOLDER = paths.TESTS / "interpreter_runners"
_LIMIT = 900


def run(*, only=(), extra=()):
    files = [path for path in sorted(FOLDER.glob("test_*.py")) if not only or path.stem.removeprefix("test_") in only]
    environ = os.environ | {"ALCOVE_TEST_NODE": str(clients.node_bin() / "node")}
    with tempfile.TemporaryDirectory(prefix="alcove-runners-") as folder:
        report = Path(folder) / "report.xml"
        # The fixtures above this folder are for tests with a server.
        command = [clients.test_python(), "-B", "-m", "pytest", "-c", paths.TESTS / "pytest.ini", f"--confcutdir={FOLDER}"]
        code = console.run([*command, f"--junitxml={report}", *extra, *files], cwd=paths.TESTS, env=environ, check=False, timeout=_LIMIT)
        counts = results.from_junit(report)
    counts.failed = max(counts.failed, int(code != 0))
    return counts

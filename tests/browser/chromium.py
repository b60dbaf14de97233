# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Headless Chromium with a home of its own, which is all that it knows of the machine."""

import os
import subprocess

# The tests run as root, for whom Chromium has no sandbox of its own.
_OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_PATIENCE = 60


def make_profile(home, trusted):
    """A home whose certificate store, which Chromium asks, holds one authority."""
    store = home / ".pki" / "nssdb"
    store.mkdir(parents=True)
    subprocess.run(["certutil", "-d", f"sql:{store}", "-N", "--empty-password"], check=True)
    subprocess.run(["certutil", "-d", f"sql:{store}", "-A", "-t", "C,,", "-n", "alcove", "-i", trusted], check=True)


def command(home, *arguments):
    return ["chromium", *_OPTIONS, f"--user-data-dir={home / 'profile'}", *arguments]


def environ(home):
    return {"HOME": str(home), "PATH": os.environ["PATH"]}


def page_of(home, url):
    """What the page is after its scripts have run, as HTML."""
    with open(home / "chromium.log", "wb") as log:
        # Its clock goes on by what scripts wait for, and stands still while something is loaded.
        shown = subprocess.run(
            command(home, "--virtual-time-budget=10000", "--dump-dom", url),
            env=environ(home), stdout=subprocess.PIPE, stderr=log, timeout=_PATIENCE,
        )
    assert shown.returncode == 0, (home / "chromium.log").read_text()[-3000:]
    return shown.stdout.decode()

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What a generation of clients runs, in the tiers of `./dev test`."""

import dataclasses
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "dev"))

import client_stages  # noqa: E402
import clients  # noqa: E402

_GENERATION = clients.Generation(
    name="newest",
    python=("e2b==2.63.0",),
    npm=("e2b@2.51.0",),
    suites={"tls": "smoke", "plain": "full"},
    full_tier={"tls": "full"},
    skip="",
)


@pytest.fixture
def marks_of(monkeypatch):
    """A function that returns which marks select the Python tests."""
    monkeypatch.setattr(client_stages, "_pytest", lambda generation, files, environ, marks, extra: marks)

    def marks(mode, **tier):
        for title, work in client_stages.suites(_GENERATION, mode, {}, **tier):
            if title.startswith("python"):
                return work()
        return None

    return marks


def test_each_tier_runs_more(marks_of):
    assert (marks_of("tls", quick=True), marks_of("plain", quick=True)) == ("smoke and not wire", None)
    assert (marks_of("tls"), marks_of("plain")) == ("smoke and not wire", "")
    assert (marks_of("tls", full=True), marks_of("plain", full=True)) == ("not wire", "")


def test_the_page_of_compatibility_is_made_of_the_largest_suites():
    older = dataclasses.replace(_GENERATION, suites={"tls": "smoke", "plain": "smoke"}, full_tier={"plain": "full"})
    assert (older.shows_all(full=False), older.shows_all(full=True)) == (False, True)
    # All of it by TLS too shows nothing new.
    assert _GENERATION.shows_all(full=False)


def test_the_last_two_generations_run_everything():
    assert all(generation.suites_in(full=True)["plain"] == "full" for generation in clients.generations()[-2:])


def test_the_last_generation_runs_everything_in_both_modes():
    newest = clients.generations()[-1]
    assert newest.suites["plain"] == newest.full_tier["tls"] == "full"

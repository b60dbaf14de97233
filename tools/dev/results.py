# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Counts of what ran, read from the reports that the test runners write."""

import dataclasses
import xml.etree.ElementTree
from pathlib import Path

import console


@dataclasses.dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __iadd__(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        return self


@dataclasses.dataclass
class Stage:
    name: str
    seconds: float
    counts: Counts
    note: str = ""


def from_junit(path):
    """Counts of a JUnit report (pytest, ctest, node). A missing report counts as one failure."""
    counts = Counts()
    try:
        root = xml.etree.ElementTree.parse(path).getroot()
    except (OSError, xml.etree.ElementTree.ParseError):
        return Counts(failed=1)
    for case in root.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            counts.failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            counts.skipped += 1
        else:
            counts.passed += 1
    return counts


def from_googletest(folder):
    """Counts of all GoogleTest XML reports in a folder."""
    counts = Counts()
    for path in Path(folder).glob("*.xml"):
        for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            if case.find("failure") is not None:
                counts.failed += 1
            elif case.get("status") == "notrun" or case.get("result") in ("skipped", "suppressed"):
                counts.skipped += 1
            else:
                counts.passed += 1
    return counts


def show(stages, seconds):
    """The closing table and the line that CI reads."""
    total = Counts()
    console.say()
    console.say(f"{'stage':<28}{'time':>14}{'passed':>9}{'failed':>9}{'skipped':>9}")
    for stage in stages:
        total += stage.counts
        numbers = "".join(
            f"{number or '-':>9}" for number in (stage.counts.passed, stage.counts.failed, stage.counts.skipped)
        )
        note = f"  {stage.note}" if stage.note else ""
        console.say(f"{stage.name:<28}{console.minutes(stage.seconds):>14}{numbers}{note}")
    console.say(f"{'all':<28}{console.minutes(seconds):>14}")
    console.say()
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    console.say(f"{total.passed} passed, {total.failed} failed{skipped}")
    return total

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""What counts as a report of a sanitizer in a log."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "dev"))

import sanitized_stage  # noqa: E402

REPORTS = (
    "==75481==ERROR: AddressSanitizer: heap-use-after-free on address 0x5030000001d0",
    "WARNING: ThreadSanitizer: data race (pid=42)",
    "src/relay/carrier.cc:70:3: runtime error: signed integer overflow",
)


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_is_found_and_shown(tmp_path, capfd, report):
    log = tmp_path / "relay.log"
    log.write_text(f"warn  the queue is taken\n{report}\n    #0 0x555b67dfc7b6\n")
    assert sanitized_stage.show_reports(log) == 1
    assert "#0 0x555b67dfc7b6" in capfd.readouterr().out


def test_other_lines_are_none(tmp_path):
    log = tmp_path / "relay.log"
    assert sanitized_stage.show_reports(log) == 0
    log.write_text("error start the relay: no answer in time\n")
    assert sanitized_stage.show_reports(log) == 0

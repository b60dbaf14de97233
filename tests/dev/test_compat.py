# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""The table of docs/compatibility.md: what notes become, that it is read as it was written, and
that a run which shows something else is told."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "dev"))

import clients  # noqa: E402
import compat  # noqa: E402
import console  # noqa: E402

PY, JS = "`e2b` for Python", "`e2b` for JavaScript"
REFUSAL = "pause is not available on this server yet."


def record(**lists):
    base = {
        "methods": [
            [PY, "Sandbox.create()", "sync"],
            [PY, "Sandbox.create()", "async"],
            [PY, "Sandbox.pause()", "sync"],
            [PY, "Sandbox.pause()", "async"],
            [JS, "Sandbox.fork()", ""],
        ],
        "returned": [[PY, "Sandbox.create()", "sync"], [PY, "Sandbox.create()", "async"]],
        "refused": [[PY, "Sandbox.pause()", "sync", REFUSAL]],
        "endpoints": ["GET /sandboxes/{}", "GET /sandboxes/metrics", "POST /sandboxes/{}/pause"],
        "answered": [["GET", "/sandboxes/metrics"], ["GET", "/elsewhere"]],
        "turned_down": [["POST", "/sandboxes/i1/pause", REFUSAL]],
        "differences": [["ping", "gets no answer"]],
    }
    return compat.Record(**(base | lists))


def table(generation="newest", **lists):
    return compat.table_of({generation: record(**lists)}, also=["GET /teams"])


def compare(committed, shown, *, whole=frozenset({"newest"}), everybody=frozenset({"newest"})):
    return compat.differences(committed, shown, whole=whole, everybody=everybody)


def test_states():
    cells = table().cells
    assert cells[PY, "Sandbox.create()", "newest"] == {"sync": "yes", "async": "yes"}
    assert cells[PY, "Sandbox.pause()", "newest"] == {"sync": "refused", "async": "not tested"}
    assert cells[JS, "Sandbox.fork()", "newest"] == {"": "not tested"}
    # A method that returned once is more than one that was refused for an option.
    both = table(refused=[[PY, "Sandbox.create()", "sync", REFUSAL]])
    assert both.cells[PY, "Sandbox.create()", "newest"]["sync"] == "yes"
    assert both.notes[compat.REFUSED, REFUSAL] == {"`Sandbox.create()`", "`POST /sandboxes/{id}/pause`"}


def test_endpoints():
    cells = {row: states[""] for (section, row, _), states in table().cells.items() if section == compat.ENDPOINTS}
    assert cells == {
        "GET /sandboxes/{id}": "not tested",
        "GET /sandboxes/metrics": "yes",
        "POST /sandboxes/{id}/pause": "refused",
        "GET /teams": "not tested",
    }
    # An older generation that never asked for it has no such row.
    assert (compat.ENDPOINTS, "GET /teams", "2.22") not in table("2.22").cells


def test_what_is_written_is_read_again():
    shown = table()
    read = compat.parse("# A head\n" + compat.render(shown, clients.generations()))
    assert read.notes == shown.notes
    assert read.cells.keys() == shown.cells.keys()
    assert compare(read, shown) == []
    assert read.cells[PY, "Sandbox.pause()", "newest"] == {"sync": "refused", "async": "not tested"}


@pytest.mark.parametrize(
    ("lists", "told"),
    [
        ({"returned": []}, ["Sandbox.create() with newest: the table says 'yes', async showed 'not tested'", "sync"]),
        ({"returned": [[PY, "Sandbox.create()", "sync"]]}, ["the table says 'yes', async showed 'not tested'"]),
        ({"refused": []}, ["Sandbox.pause() with newest: the table says 'refused'", "`Sandbox.pause()` was not shown"]),
        ({"methods": [[JS, "Sandbox.new()", ""]]}, ["Sandbox.new() with newest: is not in the table"]),
        ({"differences": []}, ["ping: gets no answer was not shown"]),
        ({"differences": [["ping", "answers"]]}, ["ping: answers is not in the table", "gets no answer was not shown"]),
        ({"answered": []}, ["GET /sandboxes/metrics with newest: the table says 'yes'"]),
    ],
)
def test_whole_run_must_show_what_the_table_says(lists, told):
    found = "\n".join(compare(table(), table(**lists)))
    assert found
    for text in told:
        assert text in found


def test_method_that_is_gone():
    without = [entry for entry in record().methods if entry[0] != JS]
    (text,) = compare(table(), table(methods=without))
    assert text == f"{JS}: Sandbox.fork() with newest: is in the table, and not in the packages"


def test_part_of_a_run_may_show_less_but_not_more():
    nothing = {"returned": [], "refused": [], "answered": [], "turned_down": [], "differences": []}
    assert compare(table(), table(**nothing), whole=set()) == []
    (text,) = compare(table(), table(returned=[*record().returned, (JS, "Sandbox.fork()", "")]), whole=set())
    assert text == f"{JS}: Sandbox.fork() with newest: the table says 'not tested', the run showed 'yes'"
    refused = table(refused=[*record().refused, (JS, "Sandbox.fork()", "", "fork is not available on this server yet.")])
    assert len(compare(table(), refused, whole=set())) == 2


def test_whole_run_that_noted_nothing_fails():
    with pytest.raises(console.DevError):
        compat.check({"2.45": record(), "newest": record(returned=[])}, whole={"2.45", "newest"}, everybody={"newest"})


def test_notes_of_a_generation_that_ran_in_part_need_not_be_shown():
    nothing = {"returned": [], "refused": [], "answered": [], "turned_down": [], "differences": []}
    both = compat.table_of({"2.45": record(), "newest": record(differences=[])})
    part = compat.table_of({"2.45": record(**nothing), "newest": record(differences=[])})
    everybody = {"2.45", "newest"}
    assert compare(both, part, whole={"newest"}, everybody=everybody) == []
    assert len(compare(both, part, whole=everybody, everybody=everybody)) > 2

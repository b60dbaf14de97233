# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""docs/compatibility.md: what the conformance tests showed of each method and endpoint, per
generation of clients. The tests note it while they run (tests/recorder.py, js/recorder.mjs); here
the notes of a run become a table, and are compared with the table that is committed."""

import dataclasses
import json
import re
import tomllib
from pathlib import Path

import clients
import console
import paths

PAGE = paths.ROOT / "docs" / "compatibility.md"
MARK = "<!-- What follows is written by `./dev compat --write`. -->"
_KEPT = paths.BUILD / "compat"
_LISTS = paths.TESTS / "compat.toml"

# From worst to best.
STATES = ("not tested", "refused", "yes")
ENDPOINTS = "Endpoints"
REFUSED = "What is refused"
DIFFERENCES = "Differences from a virtual machine"
_SECTIONS = (
    "`e2b` for Python",
    "`e2b-code-interpreter` for Python",
    "`e2b` for JavaScript",
    "`@e2b/code-interpreter` for JavaScript",
    "`@e2b/cli`",
    ENDPOINTS,
)
_NOTES = {REFUSED: ("the server says", "to"), DIFFERENCES: ("what", "how it is here")}


@dataclasses.dataclass
class Table:
    """`cells` maps (section, row, generation) to the state of each flavour ("sync", "async", or ""
    for all); `notes` maps (section, row) to a set of texts."""

    cells: dict = dataclasses.field(default_factory=dict)
    notes: dict = dataclasses.field(default_factory=dict)

    def note(self, section, row, text):
        self.notes.setdefault((section, row), set()).add(text)

    def column(self, generation):
        return {key: states for key, states in self.cells.items() if key[2] == generation}


class Record:
    """What the suites of one generation noted."""

    NAMES = ("methods", "returned", "refused", "endpoints", "answered", "turned_down", "differences")

    def __init__(self, **lists):
        for name in self.NAMES:
            setattr(self, name, {_hashable(entry) for entry in lists.get(name, ())})

    def add_folder(self, folder):
        for path in Path(folder).glob("*.json"):
            for name, entries in json.loads(path.read_text()).items():
                getattr(self, name).update(map(_hashable, entries))

    def keep(self, generation):
        _KEPT.mkdir(parents=True, exist_ok=True)
        (_KEPT / f"{generation}.json").write_text(json.dumps({name: sorted(getattr(self, name)) for name in self.NAMES}))

    @classmethod
    def kept(cls, generation):
        """The record of the generation's last whole run, or None."""
        try:
            return cls(**json.loads((_KEPT / f"{generation}.json").read_text()))
        except OSError:
            return None


def _hashable(entry):
    return tuple(entry) if isinstance(entry, list) else entry


def table_of(records, also=()):
    """The table that the records (by generation) show. `also`: endpoints that no package names."""
    table = Table()
    for generation, record in records.items():
        for section, name, flavour in record.methods:
            key = (section, name, flavour)
            refused = any(entry[:3] == key for entry in record.refused)
            state = "yes" if key in record.returned else "refused" if refused else "not tested"
            table.cells.setdefault((section, name, generation), {})[flavour] = state
        for section, name, _, text in record.refused:
            table.note(REFUSED, text, f"`{name}`")
        for name, state in _endpoint_states(record, also, every=generation == "newest").items():
            table.cells[ENDPOINTS, _shown(name), generation] = {"": state}
        for method, path, text in record.turned_down:
            name = _match(method, path, record.endpoints | set(also))
            if name:
                table.note(REFUSED, text, f"`{_shown(name)}`")
        for title, text in record.differences:
            table.note(DIFFERENCES, title, text)
    return table


def _endpoint_states(record, also, *, every):
    if not record.endpoints:
        return {}
    names = record.endpoints | set(also)
    answered = {_match(method, path, names) for method, path in record.answered}
    refused = {_match(method, path, names) for method, path, _ in record.turned_down}
    states = {name: "yes" if name in answered else "refused" if name in refused else "not tested" for name in names}
    # What no package names belongs to a generation that was seen using it, and to the newest.
    return {name: state for name, state in states.items() if every or name in record.endpoints or state != "not tested"}


def _match(method, path, names):
    """The endpoint of a request, the one with the fewest blanks; None if it is none of these."""
    found = []
    for name in names:
        known, template = name.split(" ", 1)
        if known == method and re.fullmatch(re.escape(template).replace(r"\{\}", "[^/]+"), path):
            found.append(name)
    return min(found, key=lambda name: name.count("{}"), default=None)


def _shown(endpoint):
    return endpoint.replace("{}", "{id}")


def differences(committed, shown, *, whole, everybody):
    """What the committed table does not say as the run showed it: a list of texts. `whole` are the
    generations of which everything ran: others may show less than the table says, never more. All
    notes have to be shown only by whole runs of `everybody`."""
    found = []
    for (section, row, generation), states in sorted(shown.cells.items()):
        known = committed.cells.get((section, row, generation))
        where = f"{section}: {row} with {generation}"
        if known is None:
            found.append(f"{where}: is not in the table")
            continue
        for flavour, state in sorted(states.items()):
            said = known.get(flavour, known.get("", "not tested"))
            better = STATES.index(state) > STATES.index(said)
            if better or (generation in whole and state != said):
                found.append(f"{where}: the table says {said!r}, {flavour or 'the run'} showed {state!r}")
    for (section, row), texts in sorted(shown.notes.items()):
        for text in sorted(texts - committed.notes.get((section, row), set())):
            found.append(f"{section}: {row}: {text} is not in the table")
    for generation in sorted(whole):
        for section, row, _ in sorted(committed.column(generation).keys() - shown.column(generation).keys()):
            found.append(f"{section}: {row} with {generation}: is in the table, and not in the packages")
    if whole >= everybody:
        for (section, row), texts in sorted(committed.notes.items()):
            for text in sorted(texts - shown.notes.get((section, row), set())):
                found.append(f"{section}: {row}: {text} was not shown")
    return found


def render(table, generations):
    lines = [MARK, "", "## Generations", "", "| generation | Python | npm | tested |", "|---|---|---|---|"]
    for generation in generations:
        modes = ", ".join(_tested(generation, mode) for mode in generation.suites)
        packages = [" ".join(f"`{pin}`" for pin in pins) for pins in (generation.python, generation.npm)]
        lines.append(f"| {generation.name} | {packages[0]} | {packages[1]} | {modes or f'no: {generation.skip}'} |")
    names = [generation.name for generation in generations if not generation.skip]
    for section in _SECTIONS:
        rows = sorted({row for known, row, _ in table.cells if known == section})
        lines += ["", f"## {section}", "", f"| | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
        for row in rows:
            cells = [_cell(table.cells.get((section, row, name), {})) for name in names]
            lines.append(f"| `{row}` | {' | '.join(cells)} |")
    for section, heads in _NOTES.items():
        lines += ["", f"## {section}", "", f"| {heads[0]} | {heads[1]} |", "|---|---|"]
        for (_, row), texts in sorted(entry for entry in table.notes.items() if entry[0][0] == section):
            lines.append(f"| {row} | {', '.join(sorted(texts))} |")
    return "\n".join(lines) + "\n"


def _tested(generation, mode):
    more = generation.full_tier.get(mode)
    return f"{generation.suites[mode]} by {mode}" + (f" ({more} with `--full`)" if more else "")


def _cell(states):
    if len(set(states.values())) <= 1:
        return next(iter(states.values()), "")
    return ", ".join(f"{flavour} {states[flavour]}" for flavour in ("sync", "async"))


def parse(text):
    """The table in a page that `render` wrote."""
    table = Table()
    section, names = None, []
    for line in text.partition(MARK)[2].splitlines():
        if line.startswith("## "):
            section, names = line[3:], []
        elif line.startswith("|") and not line.startswith("|---"):
            fields = [field.strip() for field in line[1:-1].split("|")]
            if not names:
                names = fields[1:]
            elif section in _NOTES:
                for entry in fields[1].split(", ") if section == REFUSED else fields[1:]:
                    table.note(section, fields[0], entry)
            elif section in _SECTIONS:
                for name, cell in zip(names, fields[1:]):
                    if cell:
                        table.cells[section, fields[0].strip("`"), name] = _parse_cell(cell)
    return table


def _parse_cell(cell):
    if cell in STATES:
        return {"": cell}
    return dict(part.split(" ", 1) for part in cell.split(", "))


def _also():
    with open(_LISTS, "rb") as file:
        return tomllib.load(file)["endpoints"]


def check(records, *, whole, everybody):
    """Compares a run with the committed page; the number of rows compared and the differences."""
    shown = table_of(records, _also())
    if not all(records[name].returned for name in whole):
        raise console.DevError("the run noted no call of any client: nothing was compared")
    return len(shown.cells) + len(shown.notes), differences(parse(PAGE.read_text()), shown, whole=whole, everybody=everybody)


def write():
    """Writes the page from the last whole run of each generation; a generation without one keeps
    what the page says of it."""
    old = parse(PAGE.read_text())
    generations = clients.generations()
    records = {generation.name: Record.kept(generation.name) for generation in generations if not generation.skip}
    missing = [name for name, record in records.items() if record is None]
    new = table_of({name: record for name, record in records.items() if record}, _also())
    for name in missing:
        console.say(f"{name}: no whole run (`./dev test --full conformance --client {name}`), kept as it is")
        new.cells |= old.column(name)
    if missing:
        for (section, row), texts in old.notes.items():
            new.notes.setdefault((section, row), set()).update(texts)
    head = PAGE.read_text().partition(MARK)[0]
    PAGE.write_text(head + render(new, generations))
    console.say(f"{PAGE.relative_to(paths.ROOT)}: {len(new.cells)} cells")

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Rows of a benchmark: one line each, with the floor or peer measured in the same run."""

import dataclasses
import json
import os
import sys
import time

_COLUMNS = ("name", "p50", "p99", "n", "beside", "floor", "ratio")


@dataclasses.dataclass
class Row:
    """Texts, ready to print. `floor` is what `beside` names took in the same run; `ratio` is
    the value divided by it, so for times less is better and for throughput more."""

    name: str
    p50: str = ""
    p99: str = ""
    n: str = ""
    beside: str = ""
    floor: str = ""
    ratio: str = ""


def percentile(samples, share):
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def times(name, samples, *, beside="", floor=()):
    """A row of durations in seconds; `floor` holds the durations to compare with."""
    middle = percentile(samples, 0.5)
    row = Row(name, _ms(middle), _ms(percentile(samples, 0.99)), str(len(samples)), beside)
    if floor:
        row.floor = _ms(percentile(floor, 0.5))
        row.ratio = f"{middle / percentile(floor, 0.5):.2f}"
    return row


def rates(name, samples, unit, *, beside="", floor=()):
    """A row of throughputs; p99 is the slow end."""
    middle = percentile(samples, 0.5)
    slow = percentile(samples, 0.01)
    row = Row(name, f"{middle:,.0f} {unit}", f"{slow:,.0f} {unit}", str(len(samples)), beside)
    if floor:
        row.floor = f"{percentile(floor, 0.5):,.0f} {unit}"
        row.ratio = f"{middle / percentile(floor, 0.5):.2f}"
    return row


def timed(action):
    """(seconds, result)"""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def table(rows):
    lines = [_COLUMNS, *(tuple(dataclasses.asdict(row).values()) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_COLUMNS))]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join("| " + " | ".join(text.ljust(width) for text, width in zip(line, widths)) + " |" for line in lines)


def run(main):
    """Runs a benchmark, prints its table, and leaves it for `./dev bench` where that asks for it."""
    rows = main()
    text = table(rows)
    print(text, flush=True)
    if wanted := os.environ.get("ALCOVE_BENCH_TABLE"):
        with open(wanted, "w") as out:
            json.dump({"about": sys.modules["__main__"].__doc__, "table": text}, out)


def _ms(seconds):
    return f"{seconds * 1000:.2f} ms"

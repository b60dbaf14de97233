# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""run_code as people use it: a day of an analyst, and an agent whose model asks for tools."""

import asyncio
import base64
import csv
import io
import json
import random
import statistics

import pytest
from harness import got
from interpreter.client import client, needs_routing_headers, run, start, succeed  # noqa: F401

pytestmark = [needs_routing_headers, pytest.mark.limit(300)]

_CITIES = ("Oslo", "Rīga", "東京")


@pytest.fixture
def sales():
    """Rows of a table, and the same as CSV."""
    rng = random.Random(6)
    rows = [
        {"day": f"2026-03-{day:02}", "city": city, "pieces": rng.randint(1, 90), "price": round(rng.uniform(1, 20), 2)}
        for day in range(1, 29)
        for city in _CITIES
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return rows, text.getvalue()


@pytest.mark.smoke
async def test_a_day_of_an_analyst(sandbox, sales):
    rows, text = sales
    revenue = {city: sum(row["pieces"] * row["price"] for row in rows if row["city"] == city) for city in _CITIES}

    # In the morning: the data go up, and are looked at.
    await got(sandbox.files.write("data/sales.csv", text))
    execution = await succeed(sandbox, "import pandas as pd\nsales = pd.read_csv('data/sales.csv', parse_dates=['day'])\nsales")
    table = execution.results[0]
    assert table.is_main_result and "<table" in table.html
    assert table.data["pieces"] == [row["pieces"] for row in rows]
    assert table.data["day"] == [f"{row['day']}T00:00:00" for row in rows]

    # A first try with a mistake in it; what was there is still there.
    assert (await run(sandbox, "sales['revenu']")).error.name == "KeyError"
    code = "sales['revenue'] = sales.pieces * sales.price\nby_city = sales.groupby('city', sort=False).revenue.sum()\nby_city.to_dict()"
    assert (await succeed(sandbox, code)).results[0].json == pytest.approx(revenue)

    # A chart: as an image for people, as data for programs, as a file for later.
    code = "import matplotlib.pyplot as plt\nplt.bar(by_city.index, by_city, label='March')\nplt.title('Revenue')\nplt.ylabel('Revenue (EUR)')\nplt.savefig('revenue.svg')\nplt.show()"
    (figure,) = (await succeed(sandbox, code)).results
    assert base64.b64decode(figure.png, validate=True).startswith(b"\x89PNG")
    assert (figure.chart.title, figure.chart.y_unit) == ("Revenue", "EUR")
    assert [bar.label for bar in figure.chart.elements] == list(_CITIES)
    assert [bar.value for bar in figure.chart.elements] == pytest.approx(list(revenue.values()))

    # The same files in other languages: R works out medians, JavaScript writes a report, bash packs it.
    code = "sales <- read.csv('data/sales.csv', fileEncoding = 'UTF-8')\nfor (city in unique(sales$city)) cat(city, median(sales$pieces[sales$city == city]), '\\n')"
    lines = "".join((await succeed(sandbox, code, language="r")).logs.stdout).splitlines()
    medians = {city: statistics.median(row["pieces"] for row in rows if row["city"] == city) for city in _CITIES}
    assert {line.split()[0]: float(line.split()[1]) for line in lines} == medians
    code = f"""
        import fs from 'node:fs/promises'
        const medians: Record<string, number> = {json.dumps(medians)}
        const lines = Object.entries(medians).map(([city, pieces]) => `- ${{city}}: ${{pieces}}`)
        await fs.writeFile('report.md', ['# March', ...lines, ''].join('\\n'))
        lines.length
    """
    assert (await succeed(sandbox, code, language="typescript")).text == "3"
    execution = await succeed(sandbox, "tar -czf day.tar.gz report.md revenue.svg data && tar -tzf day.tar.gz | sort", language="bash")
    assert "".join(execution.logs.stdout).split() == ["data/", "data/sales.csv", "report.md", "revenue.svg"]

    # Three simulations beside each other, each with a state of its own. Each goes on when all have
    # come as far: they would wait for ever if they ran one after the other.
    contexts = [await got(sandbox.create_code_context(cwd="/home/user/data")) for _ in range(3)]
    code = """
        import os, pathlib, time
        pathlib.Path(f"here-{number}").touch()
        while len(list(pathlib.Path().glob("here-*"))) < 3:
            time.sleep(0.01)
        number * 100
    """
    await asyncio.gather(*(start(sandbox, f"number = {number}", context=context) for number, context in enumerate(contexts)))
    executions = await asyncio.gather(*(start(sandbox, code, context=context, timeout=60) for context in contexts))
    assert [execution.text for execution in executions] == ["0", "100", "200"]
    assert (await run(sandbox, "number")).error.name == "NameError"

    # In the evening the results come down.
    assert (await got(sandbox.files.read("report.md"))).splitlines()[1:] == [f"- {city}: {medians[city]:g}" for city in _CITIES]
    assert bytes(await got(sandbox.files.read("day.tar.gz", format="bytes"))).startswith(b"\x1f\x8b")
    assert "<svg" in await got(sandbox.files.read("revenue.svg"))


class _Model:
    """A model with a script: it says the next code if the last answer has what it needs for that."""

    _SCRIPT = [
        ("What is the mean", "import json\nrecords = json.load(open('readings.json'))\nsum(r['value'] for r in records)"),
        ("KeyError: 'value'", "print(sorted({key for r in records for key in r}))"),
        ("'reading'", "import statistics as s\nstatistics.mean(r['reading'] for r in records)"),
        ("name 'statistics' is not defined", "mean = s.mean(r['reading'] for r in records)\nmean"),
        ("4.85", "import matplotlib.pyplot as plt\nplt.plot([r['reading'] for r in records])\nplt.show()\nmean"),
    ]

    def __init__(self):
        self._said = 0

    def next(self, answer):
        if self._said == len(self._SCRIPT):
            return {"text": f"The mean is {answer}"}
        needed, code = self._SCRIPT[self._said]
        assert needed in answer
        self._said += 1
        return {"tool": "run_code", "arguments": json.dumps({"code": code})}


def _answer(execution):
    """What an agent hands back to its model."""
    if execution.error:
        return f"{execution.error.name}: {execution.error.value}\n{execution.error.traceback}"
    parts = [*execution.logs.stdout, *execution.logs.stderr, execution.text or ""]
    parts += [f"[chart: {result.chart.type.value}]" for result in execution.results if result.chart]
    return "".join(parts)


async def test_an_agent_whose_model_learns_from_errors(sandbox):
    readings = [{"sensor": i, "reading": (i * 37) % 11} for i in range(40)]
    await got(sandbox.files.write("readings.json", json.dumps(readings)))
    model, answer, errors = _Model(), "What is the mean of readings.json?", []
    for _ in range(10):
        said = model.next(answer)
        if "text" in said:
            break
        execution = await run(sandbox, **json.loads(said["arguments"]))
        errors += [execution.error.name] if execution.error else []
        answer = _answer(execution)
    assert errors == ["KeyError", "NameError"]
    assert said["text"] == f"The mean is {statistics.mean(row['reading'] for row in readings)}[chart: line]"


async def test_an_agent_that_gives_up_on_a_loop_goes_on(client, sandbox):  # noqa: F811
    """The model's code does not end: the agent's own limit ends it, and the next code finds the state."""
    from e2b import TimeoutException

    await succeed(sandbox, "found = []")
    with pytest.raises(TimeoutException):
        await run(sandbox, "while True:\n    found.append(len(found))", timeout=1)
    execution = await succeed(sandbox, "len(found) > 0 and found[-1] == len(found) - 1")
    assert execution.text == "True"

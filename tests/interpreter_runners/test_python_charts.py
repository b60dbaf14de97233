# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Charts as data: programs with random data; what is extracted equals the data. `e2b-charts` is asked
too, where it is right. A failing case is repeated by its seed."""

import datetime
import random
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import e2b_charts
import matplotlib.axes
import matplotlib.pyplot as plt
import numpy
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src" / "interpreter" / "runners" / "python"))

from alcove_runner import charts, jsonable
from alcove_runner.charts import boxes

boxes.watch(matplotlib.axes.Axes)


@pytest.fixture(params=range(5))
def data(request):
    """Distinct random numbers of a random count."""
    rng = random.Random(request.param)
    count = rng.randint(3, 9)
    yield [round(rng.uniform(-50, 50), 3) for _ in range(count)]
    plt.close("all")


def extract():
    return jsonable.convert(charts.extract(plt.gcf()))


def oracle():
    return jsonable.convert(e2b_charts.chart_figure_to_dict(plt.gcf()))


def points(chart):
    return [element["points"] for element in chart["elements"]]


def pairs(xs, ys):
    return [[x, y] for x, y in zip(xs, ys)]


LINES = {
    "plot": (lambda x, y: plt.plot(x, y), "linear", "linear"),
    "markers": (lambda x, y: plt.plot(x, y, "o"), "linear", "linear"),
    "step": (lambda x, y: plt.step(x, y), "linear", "linear"),
    "array": (lambda x, y: plt.plot(numpy.array(x), numpy.array(y)), "linear", "linear"),
    "label": (lambda x, y: plt.plot(x, y, label="named"), "linear", "linear"),
    "symlog": (lambda x, y: (plt.plot(x, y), plt.yscale("symlog")), "linear", "symlog"),
    "asinh": (lambda x, y: (plt.plot(x, y), plt.yscale("asinh")), "linear", "asinh"),
    "semilogx": (lambda x, y: plt.semilogx(x, y), "log", "linear"),
    "units": (lambda x, y: (plt.plot(x, y), plt.xlabel("Time (s)"), plt.ylabel("U [mV]")), "linear", "linear"),
    "title": (lambda x, y: (plt.plot(x, y), plt.title("T"), plt.grid(True)), "linear", "linear"),
}


@pytest.mark.parametrize("program", LINES)
def test_lines(data, program):
    draw, x_scale, y_scale = LINES[program]
    xs = [float(i + 1) for i in range(len(data))]
    draw(xs, data)
    chart = extract()
    assert chart["type"] == "line"
    assert points(chart) == [pairs(xs, data)]
    assert (chart["x_scale"], chart["y_scale"]) == (x_scale, y_scale)
    assert chart == oracle()


@pytest.mark.parametrize("kind", ["date", "datetime", "datetime64", "category"])
def test_lines_over_other_axes(data, kind):
    start = datetime.datetime(2023, 9, 1)
    moments = [start + datetime.timedelta(days=i) for i in range(len(data))]
    xs = {
        "date": [moment.date() for moment in moments],
        "datetime": moments,
        "datetime64": numpy.array(moments, dtype="datetime64[ns]"),
        "category": [f"c{i}" for i in range(len(data))],
    }[kind]
    plt.plot(xs, data)
    chart = extract()
    shown = xs if kind == "category" else [x.isoformat() for x in (xs if kind == "date" else moments)]
    assert points(chart) == [pairs(shown, data)]
    assert chart["x_scale"] == ("categorical" if kind == "category" else "datetime")
    assert chart == oracle()


SCATTERS = {
    "plain": (lambda x, y: plt.scatter(x, y, label="a"), "linear"),
    "sizes": (lambda x, y: plt.scatter(x, y, s=[10] * len(x), c=x, label="a"), "linear"),
    "log": (lambda x, y: (plt.scatter(x, y, label="a"), plt.xscale("log")), "log"),
}


@pytest.mark.parametrize("program", SCATTERS)
def test_scatters(data, program):
    draw, x_scale = SCATTERS[program]
    xs = [float(i + 1) for i in range(len(data))]
    draw(xs, data)
    chart = extract()
    assert (chart["type"], chart["x_scale"]) == ("scatter", x_scale)
    assert points(chart) == [pairs(xs, data)]
    assert chart == oracle()


BARS = {
    "standing": (lambda names, y: plt.bar(names, y, label="g"), True),
    "lying": (lambda names, y: plt.barh(names, y, label="g"), True),
    # The published extractor takes tick texts for the labels of numbered bars.
    "numbered": (lambda names, y: plt.bar(range(len(y)), y, label="g"), False),
    "errors": (lambda names, y: plt.bar(names, y, yerr=[1] * len(y), label="g"), False),
}


@pytest.mark.parametrize("program", BARS)
def test_bars(data, program):
    names = [f"c{i}" for i in range(len(data))]
    draw, oracle_is_right = BARS[program]
    draw(names, data)
    chart = extract()
    labels = [str(i) for i in range(len(data))] if program == "numbered" else names
    assert chart["type"] == "bar"
    assert chart["elements"] == [{"label": n, "group": "g", "value": v} for n, v in zip(labels, data)]
    if oracle_is_right:
        assert chart == oracle()


def test_one_bar_and_equal_bars(data):
    plt.bar(["a", "b"], [data[0]] * 2)
    assert [bar["value"] for bar in extract()["elements"]] == [data[0]] * 2


def test_pies(data):
    sizes = [abs(value) + 1 for value in data]
    plt.pie(sizes, labels=[str(i) for i in range(len(sizes))])
    chart = extract()
    assert chart["type"] == "pie"
    want = [360 * size / sum(sizes) for size in sizes]
    assert [wedge["angle"] for wedge in chart["elements"]] == pytest.approx(want, abs=1e-3)
    assert chart == oracle()


@pytest.mark.parametrize("options", [{}, {"patch_artist": True}, {"vert": False}, {"showfliers": True}])
def test_boxes(data, options):
    values = [*data, 500.0]
    plt.boxplot([values], **options)
    (box,) = extract()["elements"]
    low, middle, high = numpy.percentile(values, [25, 50, 75])
    reach = 1.5 * (high - low)
    inside = [value for value in values if low - reach <= value <= high + reach]
    assert [box["first_quartile"], box["median"], box["third_quartile"]] == pytest.approx([low, middle, high])
    assert (box["min"], box["max"]) == (min(inside), max(inside))
    assert sorted(box["outliers"]) == sorted(set(values) - set(inside))


def test_a_superchart_has_one_chart_per_axes(data):
    _, (left, right) = plt.subplots(1, 2)
    left.plot(data)
    right.scatter(range(len(data)), data, label="a")
    chart = extract()
    assert [one["type"] for one in chart["elements"]] == ["line", "scatter"]
    assert chart["elements"] == oracle()["elements"]


def test_unknown_and_empty(data):
    assert charts.extract(plt.figure()) == {}
    plt.imshow([data, data])
    assert extract() == oracle() == {"type": "unknown", "title": None, "elements": []}

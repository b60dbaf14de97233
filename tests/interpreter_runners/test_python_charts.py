# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Charts as data: what is extracted from programs with random data equals the data. The extractor that
E2B publishes is asked too, where it is right. A failing case is repeated by its name and seed."""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import e2b_charts
import matplotlib.axes
import matplotlib.pyplot as plt
import numpy
import pytest
from interpreter import chart_programs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src" / "interpreter" / "runners" / "python"))

from alcove_runner import charts, jsonable
from alcove_runner.charts import boxes

boxes.watch(matplotlib.axes.Axes)


@pytest.fixture(autouse=True)
def no_figures():
    yield
    plt.close("all")


def extract():
    return jsonable.convert(charts.extract(plt.gcf()))


def published():
    """What the published extractor says, None if it fails."""
    try:
        return jsonable.convert(e2b_charts.chart_figure_to_dict(plt.gcf()))
    except Exception:
        return None


def rounded(chart):
    """With nine digits: the published extractor rounds the numbers of boxes."""
    return json.loads(json.dumps(chart), parse_float=lambda text: float(f"{float(text):.9g}"))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", chart_programs.kinds())
def test_the_chart_of_a_program_is_its_data(name, seed):
    program = chart_programs.make(name, seed)
    exec(program.code, {})
    assert not chart_programs.differences(extract(), program.chart)
    assert (rounded(extract()) == rounded(published())) == program.published_agrees


def test_figures_of_too_many_points_have_no_chart():
    numbers = numpy.arange(charts._MAX_POINTS / 2)
    _, (left, right) = plt.subplots(1, 2)
    left.plot(numbers)
    right.scatter(numbers, numbers)
    assert [len(one["elements"][0]["points"]) for one in extract()["elements"]] == [len(numbers)] * 2
    right.plot([1, 2])
    assert charts.extract(plt.gcf()) == {}


def test_figures_without_data_have_no_chart():
    assert charts.extract(plt.figure()) == {}
    plt.subplots()
    assert extract() == {}

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""run_code: what the client makes of matplotlib's charts. Every type, with labels, units, ticks and
scales; and programs with random data, whose charts must be that data."""

import random

import pytest
from e2b_code_interpreter import charts
from interpreter import chart_programs
from interpreter.client import needs_routing_headers, succeed
from interpreter.shared_sandbox import shared  # noqa: F401

pytestmark = [needs_routing_headers, pytest.mark.limit(180)]

# A failing program is repeated by its name and seed.
_SEED = 20261118


async def _chart(sandbox, code):
    """The chart of the only figure that the code leaves."""
    execution = await succeed(sandbox, f"import matplotlib.pyplot as plt\n{code}\nplt.show()")
    (figure,) = [result for result in execution.results if not result.is_main_result]
    assert figure.png and figure.extra == {}
    return figure.chart


# What is drawn is the server's: one generation of clients is enough.
@pytest.mark.wire
@pytest.mark.parametrize("name", chart_programs.kinds())
async def test_the_chart_of_a_program_is_its_data(shared, name):
    program = chart_programs.make(name, _SEED)
    chart = await _chart(shared, program.code)
    assert not chart_programs.differences(chart.to_dict(), program.chart)


@pytest.mark.wire
async def test_programs_with_data_that_are_new_each_time(shared):
    seed = random.randrange(1 << 32)
    for name in chart_programs.kinds()[::6]:
        program = chart_programs.make(name, seed)
        chart = await _chart(shared, program.code)
        assert not chart_programs.differences(chart.to_dict(), program.chart), (name, seed)


async def test_a_line_chart(shared):
    code = """
import datetime
dates = [datetime.date(2023, 9, 1) + datetime.timedelta(seconds=86400 * i) for i in range(3)]
plt.plot(dates, [1, 4, 9], label="y")
plt.xlabel("Date")
plt.ylabel("Count (1000)")
plt.title("Growth")
plt.grid(True)
"""
    chart = await _chart(shared, code)
    assert (type(chart), chart.type, chart.title) == (charts.LineChart, charts.ChartType.LINE, "Growth")
    assert (chart.x_label, chart.x_unit, chart.y_label, chart.y_unit) == ("Date", None, "Count (1000)", "1000")
    assert (chart.x_scale, chart.y_scale) == (charts.ScaleType.DATETIME, charts.ScaleType.LINEAR)
    assert all(tick.endswith("+00:00") for tick in chart.x_ticks) and all(isinstance(tick, float) for tick in chart.y_ticks)
    assert len(chart.x_ticks) == len(chart.x_tick_labels) > 1 and len(chart.y_ticks) == len(chart.y_tick_labels) > 1
    (line,) = chart.elements
    assert (line.label, line.points) == ("y", [("2023-09-01", 1), ("2023-09-02", 4), ("2023-09-03", 9)])


async def test_a_scatter_chart(shared):
    chart = await _chart(shared, "plt.scatter([1, 2, 3], [4.5, 5, 6], label='one')\nplt.scatter([1], [0], label='two')\nplt.xlabel('A [ms]')")
    assert (type(chart), chart.title, chart.x_unit, chart.y_label) == (charts.ScatterChart, None, "ms", None)
    assert [(element.label, element.points) for element in chart.elements] == [("one", [(1, 4.5), (2, 5), (3, 6)]), ("two", [(1, 0)])]


async def test_a_bar_chart(shared):
    code = "plt.bar(['Author A', 'Author B', 'Author C', 'Author D'], [100, 200, 300, 400], label='Books Sold')\nplt.xlabel('Authors')\nplt.ylabel('Number of Books Sold')\nplt.title('Book Sales by Authors')"
    chart = await _chart(shared, code)
    assert (type(chart), chart.title) == (charts.BarChart, "Book Sales by Authors")
    assert (chart.x_label, chart.y_label, chart.x_unit, chart.y_unit) == ("Authors", "Number of Books Sold", None, None)
    assert [(bar.label, bar.value, bar.group) for bar in chart.elements] == [(f"Author {letter}", value, "Books Sold") for letter, value in zip("ABCD", (100, 200, 300, 400))]


async def test_a_pie_chart(shared):
    chart = await _chart(shared, "plt.pie([90, 10], labels=['No', 'No, in blue'], startangle=90)\nplt.title('Will it rain?')")
    assert (type(chart), chart.title) == (charts.PieChart, "Will it rain?")
    assert [(wedge.label, wedge.angle, wedge.radius) for wedge in chart.elements] == [("No", 324, 1), ("No, in blue", 36, 1)]


@pytest.mark.parametrize("filled", [True, False])
async def test_a_box_chart(shared, filled):
    data = {"A": [85, 90, 78, 92, 88], "B": [95, 89, 76, 91, 84, 87], "C": [75, 82, 88, 79, 86]}
    code = f"plt.boxplot({list(data.values())}, tick_labels={[f'Class {name}' for name in data]}, patch_artist={filled})\nplt.ylabel('Score')"
    chart = await _chart(shared, code)
    assert (type(chart), chart.y_label, chart.x_label) == (charts.BoxAndWhiskerChart, "Score", None)
    assert [(box.label, box.min, box.first_quartile, box.median, box.third_quartile, box.max, box.outliers) for box in chart.elements] == [
        ("Class A", 78, 85, 88, 90, 92, []),
        ("Class B", 84, 84.75, 88, 90.5, 95, [76]),
        ("Class C", 75, 79, 82, 86, 88, []),
    ]


async def test_a_superchart(shared):
    code = "figure, (left, right) = plt.subplots(1, 2)\nfigure.suptitle('Both')\nleft.plot([1, 2], [3, 4])\nright.scatter([1], [2], label='s')\nright.set_title('Right')"
    chart = await _chart(shared, code)
    assert (type(chart), chart.type.value, chart.title) == (charts.SuperChart, "superchart", "Both")
    assert [(type(part), part.title) for part in chart.elements] == [(charts.LineChart, None), (charts.ScatterChart, "Right")]
    assert chart.elements[0].elements[0].points == [(1, 3), (2, 4)]


async def test_an_unknown_chart(shared):
    chart = await _chart(shared, "plt.imshow([[1, 2], [3, 4]])\nplt.title('Image')")
    assert (chart.type, chart.title, chart.elements) == (charts.ChartType.UNKNOWN, "Image", [])
    chart = await _chart(shared, "plt.subplot(projection='3d').plot([1, 2], [3, 4], [5, 6])")
    assert chart.type == charts.ChartType.UNKNOWN


async def test_a_figure_without_data_has_no_chart(shared):
    assert await _chart(shared, "plt.subplots()") is None
    execution = await succeed(shared, "import matplotlib.pyplot as plt\nplt.figure();")
    assert [result.formats() for result in execution.results] == [["text"]]


async def test_one_figure_after_the_other(shared):
    code = "import matplotlib.pyplot as plt\nfor i in range(3):\n    plt.figure()\n    plt.plot([i, i + 1])\n    plt.title(f'{i}')"
    execution = await succeed(shared, code)
    assert [result.chart.title for result in execution.results] == ["0", "1", "2"]
    assert [result.chart.elements[0].points[0] for result in execution.results] == [(0, 0), (0, 1), (0, 2)]


@pytest.mark.parametrize(
    ("label", "unit"),
    [("Time (s)", "s"), ("t [ms]", "ms"), ("Weight (kg) (net)", "kg"), ("t(s)", None), ("plain", None), ("", None), ("x [m/s] (y)", "m/s")],
)
async def test_units_are_read_from_labels(shared, label, unit):
    chart = await _chart(shared, f"plt.plot([1, 2])\nplt.xlabel({label!r})\nplt.ylabel({label!r})")
    assert (chart.x_label, chart.x_unit) == (chart.y_label, chart.y_unit) == (label or None, unit)


@pytest.mark.parametrize("scale", ["linear", "log", "symlog", "logit", "asinh", "function", "functionlog"])
async def test_scales(shared, scale):
    options = ", functions=(lambda v: v, lambda v: v)" if scale.startswith("function") else ""
    chart = await _chart(shared, f"plt.plot([0.1, 0.2], [0.3, 0.4])\nplt.yscale({scale!r}{options})\nplt.xscale({scale!r}{options})")
    assert (chart.x_scale, chart.y_scale) == (charts.ScaleType(scale),) * 2
    assert chart.elements[0].points == [(0.1, 0.3), (0.2, 0.4)]


async def test_categories_and_dates_have_scales_of_their_own(shared):
    chart = await _chart(shared, "import datetime\nplt.plot(['a', 'b', 'c'], [datetime.datetime(2020, 1, d, 3) for d in (1, 2, 3)])")
    assert (chart.x_scale, chart.y_scale) == (charts.ScaleType.CATEGORICAL, charts.ScaleType.DATETIME)
    assert (chart.x_ticks, chart.x_tick_labels) == ([0, 1, 2], ["a", "b", "c"])
    assert chart.elements[0].points[0] == ("a", "2020-01-01T03:00:00")


async def test_charts_stay_dicts_for_json(shared):
    execution = await succeed(shared, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    assert execution.results[0].chart.to_dict()["type"] == "line"
    assert '"type": "line"' in execution.to_json()

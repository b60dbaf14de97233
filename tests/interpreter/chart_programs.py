# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Programs that draw random data with matplotlib, pandas or seaborn, and what their charts must say.

A program is Python source that leaves one figure open. It is run by the runner alone
(tests/interpreter_runners) and by a client through a server (tests/conformance)."""

import dataclasses
import datetime
import random
import statistics

_IMPORTS = "import datetime\nimport matplotlib.pyplot as plt\nimport numpy as np\nimport pandas as pd\n"
_KINDS = {}


class Near(float):
    """A number that was calculated on the way: a quartile, or a pie's angle, which has six digits."""


@dataclasses.dataclass
class Program:
    name: str
    code: str
    chart: dict  # members that the chart must have
    published_agrees: bool = True  # the extractor that E2B publishes sees the same


def kinds():
    return list(_KINDS)


def make(name, seed):
    """The program of that name with the data of that seed."""
    rng = random.Random(f"{name} {seed}")
    code, chart, *rest = _KINDS[name](rng)
    return Program(name, _IMPORTS + code + "\n", chart, *rest)


def differences(chart, expected, where="chart"):
    """What in the chart is not as expected, as texts; empty if all is well."""
    if isinstance(expected, dict) and isinstance(chart, dict):
        missing = [f"{where} has no {key}" for key in expected if key not in chart]
        shared = [key for key in expected if key in chart]
        return missing + [text for key in shared for text in differences(chart[key], expected[key], f"{where}.{key}")]
    if isinstance(expected, (list, tuple)) and isinstance(chart, (list, tuple)) and len(chart) == len(expected):
        pairs = enumerate(zip(chart, expected))
        return [text for i, (one, other) in pairs for text in differences(one, other, f"{where}[{i}]")]
    if _same(chart, expected):
        return []
    return [f"{where} is {chart!r}, not {expected!r}"]


def _same(value, expected):
    numbers = (int, float)
    if isinstance(expected, Near):
        return isinstance(value, numbers) and abs(value - expected) <= 1e-5 * max(1.0, abs(expected))
    # Whole numbers may come as 1 or as 1.0.
    alike = isinstance(value, numbers) and isinstance(expected, numbers) or type(value) is type(expected)
    return alike and value == expected


def _kind(function):
    _KINDS[function.__name__.removeprefix("_").replace("_", " ")] = function
    return function


def _numbers(rng, *, count=None, low=-50.0, high=50.0):
    """Distinct numbers, so that no series is level by chance."""
    count = count or rng.randint(3, 9)
    values = []
    while len(values) < count:
        value = round(rng.uniform(low, high), 3)
        if value not in values and value != 0:
            values.append(value)
    return values


def _steps(values):
    return [float(i + 1) for i in range(len(values))]


def _names(rng, count):
    return [f"{rng.choice(['north', 'süd', '東', 'x y'])} {i}" for i in range(count)]


def _days(rng, count):
    start = datetime.date(rng.randint(1990, 2030), rng.randint(1, 12), rng.randint(1, 28))
    return [start + datetime.timedelta(days=3 * i) for i in range(count)]


def _moments(rng, count):
    start = datetime.datetime(rng.randint(1990, 2030), rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23))
    return [start + datetime.timedelta(minutes=17 * i) for i in range(count)]


def _pairs(xs, ys):
    return [[x, y] for x, y in zip(xs, ys)]


def _line(series, **more):
    """`series` is {label: points}."""
    elements = [{"label": label, "points": points} for label, points in series.items()]
    return {"type": "line", "elements": elements, "x_scale": "linear", "y_scale": "linear"} | more


def _scatter(series, **more):
    return _line(series, type="scatter") | more


# Lines


@_kind
def _plot(rng):
    y = _numbers(rng)
    return f"plt.plot({y})", _line({"Line 0": _pairs(map(float, range(len(y))), y)}, title=None, x_label=None, x_unit=None)


@_kind
def _plot_with_names(rng):
    y = _numbers(rng)
    code = f"plt.plot({_steps(y)}, {y}, label='measured')\nplt.title('Voltage')\nplt.xlabel('Time (s)')\nplt.ylabel('U [mV]')"
    names = {"title": "Voltage", "x_label": "Time (s)", "x_unit": "s", "y_label": "U [mV]", "y_unit": "mV"}
    return code, _line({"measured": _pairs(_steps(y), y)}, **names)


@_kind
def _three_lines_with_a_grid_and_a_legend(rng):
    series = {name: _numbers(rng, count=5) for name in "abc"}
    code = "".join(f"plt.plot({_steps(y)}, {y}, label={name!r})\n" for name, y in series.items())
    return code + "plt.grid(True)\nplt.legend()", _line({name: _pairs(_steps(y), y) for name, y in series.items()})


@_kind
def _markers(rng):
    x, y = _numbers(rng, count=6), _numbers(rng, count=6)
    return f"plt.plot({x}, {y}, 'o', label='m')", _line({"m": _pairs(x, y)})


@_kind
def _steps_of_an_array(rng):
    y = _numbers(rng)
    return f"plt.step(np.array({_steps(y)}), np.array({y}))", _line({"Line 0": _pairs(_steps(y), y)})


@_kind
def _columns_of_an_array(rng):
    a, b = _numbers(rng, count=4), _numbers(rng, count=4)
    points = {"Line 0": _pairs(map(float, range(4)), a), "Line 1": _pairs(map(float, range(4)), b)}
    return f"plt.plot(np.array([{a}, {b}]).T)", _line(points)


@_kind
def _dates(rng):
    y = _numbers(rng)
    x = _days(rng, len(y))
    chart = _line({"Line 0": _pairs([day.isoformat() for day in x], y)}, x_scale="datetime")
    return f"plt.plot({x}, {y})", chart


@_kind
def _datetimes_upright(rng):
    x = _numbers(rng)
    y = _moments(rng, len(x))
    chart = _line({"Line 0": _pairs(x, [moment.isoformat() for moment in y])}, y_scale="datetime")
    return f"plt.plot({x}, {y})", chart


@_kind
def _datetime64(rng):
    y = _numbers(rng)
    x = [moment.isoformat() for moment in _moments(rng, len(y))]
    return f"plt.plot(np.array({x}, dtype='datetime64[ns]'), {y})", _line({"Line 0": _pairs(x, y)}, x_scale="datetime")


@_kind
def _categories(rng):
    y = _numbers(rng)
    x = _names(rng, len(y))
    return f"plt.plot({x}, {y})", _line({"Line 0": _pairs(x, y)}, x_scale="categorical", x_tick_labels=x)


def _scaled(name, scales, *, low=0.01, high=1e4):
    """A line on axes with other scales than the plain one."""

    def draw(rng):
        y = sorted(_numbers(rng, low=low, high=high))
        x = _steps(y)
        code = f"plt.plot({x}, {y})\n" + "\n".join(f"plt.{axis}scale({scale!r})" for axis, scale in scales.items())
        return code, _line({"Line 0": _pairs(x, y)}, **{f"{axis}_scale": scale for axis, scale in scales.items()})

    _KINDS[name] = draw


_scaled("log", {"y": "log"})
_scaled("log log", {"x": "log", "y": "log"})
_scaled("symlog", {"x": "symlog", "y": "symlog"}, low=-1e3)
_scaled("asinh", {"y": "asinh"}, low=-1e3)
_scaled("logit", {"y": "logit"}, low=0.01, high=0.99)


@_kind
def _pandas_lines(rng):
    columns = {"p": _numbers(rng, count=5), "q": _numbers(rng, count=5)}
    chart = _line({name: _pairs(map(float, range(5)), y) for name, y in columns.items()})
    return f"pd.DataFrame({columns}).plot()", chart


@_kind
def _pandas_series_over_days(rng):
    y = _numbers(rng, count=6)
    start = _days(rng, 1)[0]
    days = [(start + datetime.timedelta(days=i)).isoformat() + "T00:00:00" for i in range(6)]
    code = f"pd.Series({y}, index=pd.date_range('{start}', periods=6)).plot()"
    # The published extractor cannot turn pandas' periods into numbers.
    return code, _line({"Line 0": _pairs(days, y)}, x_scale="datetime"), False


@_kind
def _seaborn_line(rng):
    y = _numbers(rng)
    code = f"import seaborn as sns\nsns.lineplot(x={_steps(y)}, y={y}, errorbar=None)"
    return code, _line({"Line 0": _pairs(_steps(y), y)})


@_kind
def _line_of_two_points(rng):
    y = _numbers(rng, count=2)
    return f"plt.plot([1, 2], {y}, label='l')", _line({"l": _pairs([1.0, 2.0], y)})


@_kind
def _level_and_upright_lines_of_two_points(rng):
    (y,) = _numbers(rng, count=1)
    chart = _line({"level": [[1.0, y], [2.0, y]], "upright": [[y, 1.0], [y, 2.0]]})
    # The published extractor takes them for lines of the grid.
    return f"plt.plot([1, 2], [{y}, {y}], label='level')\nplt.plot([{y}, {y}], [1, 2], label='upright')", chart, False


@_kind
def _line_of_one_point(rng):
    x, y = _numbers(rng, count=2)
    return f"plt.plot([{x}], [{y}], 'o')", _line({"Line 0": [[x, y]]})


# Scatters


@_kind
def _two_scatters(rng):
    series = {name: (_numbers(rng, count=5), _numbers(rng, count=5)) for name in ("left", "right")}
    code = "".join(f"plt.scatter({x}, {y}, label={name!r})\n" for name, (x, y) in series.items())
    return code + "plt.legend()", _scatter({name: _pairs(x, y) for name, (x, y) in series.items()})


@_kind
def _scatter_with_sizes_and_a_level_line(rng):
    x, y = _numbers(rng, count=7), _numbers(rng, count=7)
    code = f"plt.scatter({x}, {y}, s=np.arange(7) * 9, c={y}, label='s')\nplt.axhline({y[0]})"
    return code, _scatter({"s": _pairs(x, y)})


@_kind
def _scatter_on_log_axes(rng):
    x, y = _numbers(rng, low=0.1, count=6), _numbers(rng, low=0.1, count=6)
    code = f"plt.scatter({x}, {y}, label='s')\nplt.loglog()"
    return code, _scatter({"s": _pairs(x, y)}, x_scale="log", y_scale="log")


@_kind
def _scatter_of_categories_and_dates(rng):
    x = _names(rng, 4)
    y = _moments(rng, 4)
    chart = _scatter({"s": _pairs(x, [moment.isoformat() for moment in y])}, x_scale="categorical", y_scale="datetime")
    # The published extractor gives positions on the axes instead of the data.
    return f"plt.scatter({x}, {y}, label='s')", chart, False


@_kind
def _pandas_scatter(rng):
    x, y = _numbers(rng, count=5), _numbers(rng, count=5)
    chart = _scatter({"s": _pairs(x, y)}, x_label="x", y_label="y")
    return f"pd.DataFrame(dict(x={x}, y={y})).plot.scatter('x', 'y', label='s')", chart


@_kind
def _scatters_without_names(rng):
    x, y, z = (_numbers(rng, count=4) for _ in range(3))
    chart = _scatter({"Scatter 0": _pairs(x, y), "Scatter 1": _pairs(x, z)})
    # The published extractor leaves matplotlib's own names.
    return f"plt.scatter({x}, {y})\nplt.scatter({x}, {z})", chart, False


# Bars


def _bars(group, names, values):
    return [{"label": name, "group": group, "value": float(value)} for name, value in zip(names, values)]


def _bar(elements, **more):
    return {"type": "bar", "elements": elements} | more


@_kind
def _bars_of_names(rng):
    y = _numbers(rng)
    x = _names(rng, len(y))
    code = f"plt.bar({x}, {y}, label='Books sold')\nplt.xlabel('Authors')\nplt.ylabel('Books (1)')"
    return code, _bar(_bars("Books sold", x, y), x_label="Authors", y_label="Books (1)", x_unit=None, y_unit="1")


@_kind
def _lying_bars(rng):
    y = _numbers(rng)
    x = _names(rng, len(y))
    code = f"plt.barh({x}, {y}, label='g')\nplt.ylabel('where')\nplt.xlabel('how much [kg]')"
    return code, _bar(_bars("g", x, y), x_label="where", y_label="how much [kg]", y_unit="kg")


@_kind
def _grouped_bars(rng):
    names = _names(rng, 4)
    left, right = _numbers(rng, count=4), _numbers(rng, count=4)
    code = f"at = np.arange(4)\nplt.bar(at - 0.2, {left}, 0.4, label='l')\nplt.bar(at + 0.2, {right}, 0.4, label='r')\n"
    return code + f"plt.xticks(at, {names})", _bar(_bars("l", names, left) + _bars("r", names, right))


@_kind
def _stacked_bars(rng):
    names = _names(rng, 4)
    low, high = _numbers(rng, count=4, low=1), _numbers(rng, count=4, low=1)
    code = f"plt.bar({names}, {low}, label='low')\nplt.bar({names}, {high}, bottom={low}, label='high')"
    return code, _bar(_bars("low", names, low) + _bars("high", names, high))


@_kind
def _bars_at_numbers(rng):
    y = _numbers(rng, count=5)
    # The published extractor pairs bars with the texts of ticks, wherever those are.
    return f"plt.bar([2, 4, 6, 8, 10], {y}, label='g')", _bar(_bars("g", ["2", "4", "6", "8", "10"], y)), False


@_kind
def _bars_with_errors(rng):
    y = _numbers(rng, count=4)
    x = _names(rng, 4)
    return f"plt.bar({x}, {y}, yerr=[0.5] * 4, capsize=3, label='g')", _bar(_bars("g", x, y)), False


@_kind
def _equal_bars(rng):
    value = _numbers(rng, count=1)[0]
    # The published extractor takes equal heights for lying bars, and so gives their widths.
    return f"plt.bar(['a', 'b', 'c'], [{value}] * 3, label='g')", _bar(_bars("g", "abc", [value] * 3)), False


@_kind
def _histogram(rng):
    counts = [rng.randint(1, 9) for _ in range(4)]
    values = [10 * i + 5 for i, count in enumerate(counts) for _ in range(count)]
    chart = _bar(_bars("g", ["5", "15", "25", "35"], counts))
    # The published extractor overlooks the label, which is with the first bar.
    return f"plt.hist({values}, bins=[0, 10, 20, 30, 40], label='g')", chart, False


@_kind
def _bars_with_labels_of_their_own(rng):
    names, y = _names(rng, 3), _numbers(rng, count=3)
    bars = [bar for name, value in zip(names, y) for bar in _bars(name.upper(), [name], [value])]
    return f"plt.bar({names}, {y}, label={[name.upper() for name in names]})", _bar(bars), False


@_kind
def _pandas_bars(rng):
    names, p, q = _names(rng, 3), _numbers(rng, count=3), _numbers(rng, count=3)
    code = f"pd.DataFrame(dict(p={p}, q={q}), index={names}).plot.bar()"
    return code, _bar(_bars("p", names, p) + _bars("q", names, q))


@_kind
def _seaborn_bars(rng):
    y = _numbers(rng, count=4)
    x = _names(rng, 4)
    return f"import seaborn as sns\nsns.barplot(x={x}, y={y}, errorbar=None)", _bar(_bars("Group 0", x, y))


@_kind
def _one_bar(rng):
    y = _numbers(rng, count=1)
    # As of equal bars.
    return f"plt.bar(['only'], {y}, label='g')", _bar(_bars("g", ["only"], y)), False


@_kind
def _one_lying_bar(rng):
    y = _numbers(rng, count=1)
    return f"plt.barh(['only'], {y}, label='g')\nplt.xlabel('kg')", _bar(_bars("g", ["only"], y), x_label=None, y_label="kg")


@_kind
def _two_lying_groups(rng):
    names, left, right = _names(rng, 4), _numbers(rng, count=4), _numbers(rng, count=4)
    code = f"at = np.arange(4)\nplt.barh(at - 0.2, {left}, 0.4, label='l')\nplt.barh(at + 0.2, {right}, 0.4, label='r')\n"
    code += f"plt.yticks(at, {names})\nplt.ylabel('where')\nplt.xlabel('weight [kg]')"
    chart = _bar(_bars("l", names, left) + _bars("r", names, right), x_label="where", y_label="weight [kg]", y_unit="kg")
    # The published extractor swaps the names of the axes once for each group.
    return code, chart, False


@_kind
def _two_groups_of_one_bar_without_names(rng):
    a, b = _numbers(rng, count=2)
    return f"plt.bar(['a'], [{a}])\nplt.bar(['b'], [{b}])", _bar(_bars("Group 0", "a", [a]) + _bars("Group 1", "b", [b])), False


# Pies


def _pie_chart(labels, values, radius=1.0):
    angles = [Near(360 * value / sum(values)) for value in values]
    wedges = [{"label": label, "angle": angle, "radius": radius} for label, angle in zip(labels, angles)]
    return {"type": "pie", "elements": wedges}


def _pie_data(rng):
    shares = _numbers(rng, low=1)
    return _names(rng, len(shares)), shares


@_kind
def _pie(rng):
    labels, shares = _pie_data(rng)
    code = f"plt.pie({shares}, labels={labels}, autopct='%1.1f%%', startangle=90)\nplt.title('Shares')"
    return code, _pie_chart(labels, shares) | {"title": "Shares"}


@_kind
def _ring_with_a_piece_pulled_out(rng):
    labels, shares = _pie_data(rng)
    explode = [0.1] + [0] * (len(shares) - 1)
    code = f"plt.pie({shares}, labels={labels}, explode={explode}, radius=0.75, counterclock=False, wedgeprops=dict(width=0.3))"
    return code, _pie_chart(labels, shares, radius=0.75)


@_kind
def _pie_with_a_shadow(rng):
    labels, shares = _pie_data(rng)
    # The published extractor does not know what a shadow is.
    return f"plt.pie({shares}, labels={labels}, shadow=True)", _pie_chart(labels, shares), False


@_kind
def _ring_in_a_ring(rng):
    (outer_labels, outer), (inner_labels, inner) = _pie_data(rng), _pie_data(rng)
    code = f"plt.pie({outer}, labels={outer_labels}, radius=1, shadow=dict(ox=-0.1), wedgeprops=dict(width=0.3))\n"
    code += f"plt.pie({inner}, labels={inner_labels}, radius=0.7)"
    chart = _pie_chart(outer_labels, outer)
    chart["elements"] += _pie_chart(inner_labels, inner, radius=0.7)["elements"]
    return code, chart, False


# Boxes


def _box(label, values):
    """As matplotlib has it: quartiles by linear interpolation, whiskers to the last value within 1.5 of
    their distance, but never inside of the box."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    reach = 1.5 * (high - low)
    inside = [value for value in values if low - reach <= value <= high + reach]
    return {
        "label": label,
        "min": Near(min(low, *inside)),
        "first_quartile": Near(low),
        "median": Near(middle),
        "third_quartile": Near(high),
        "max": Near(max(high, *inside)),
        "outliers": [v for v in values if v < low - reach] + [v for v in values if v > high + reach],
    }


def _boxes(groups, **more):
    return {"type": "box_and_whisker", "elements": [_box(name, values) for name, values in groups.items()]} | more


def _are_simple(chart):
    """The published extractor takes a pair of outliers for a line of the box."""
    return all(len(box["outliers"]) < 2 for box in chart["elements"])


def _box_data(rng):
    return {name: [*_numbers(rng, count=9), 400.0] for name in _names(rng, 3)}


@_kind
def _filled_boxes(rng):
    groups = _box_data(rng)
    code = f"plt.boxplot({list(groups.values())}, patch_artist=True)\nplt.xticks([1, 2, 3], {list(groups)})\nplt.ylabel('t (ms)')"
    chart = _boxes(groups, y_label="t (ms)", y_unit="ms", x_label=None)
    return code, chart, _are_simple(chart)


@_kind
def _plain_boxes(rng):
    groups = _box_data(rng)
    # The published extractor sees boxes without a filling as lines.
    return f"plt.boxplot({list(groups.values())}, tick_labels={list(groups)})", _boxes(groups), False


@_kind
def _lying_boxes(rng):
    groups = _box_data(rng)
    code = f"plt.boxplot({list(groups.values())}, orientation='horizontal', patch_artist=True)\n"
    code += f"plt.yticks([1, 2, 3], {list(groups)})\nplt.xlabel('t [s]')"
    return code, _boxes(groups, y_label="t [s]", y_unit="s", x_label=None), False


@_kind
def _box_without_whiskers(rng):
    values = [1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0]
    return f"plt.boxplot([{values}], patch_artist=True)", _boxes({"1": values}), False


@_kind
def _pandas_boxes(rng):
    groups = {name: _numbers(rng, count=8) for name in "pq"}
    return f"pd.DataFrame({groups}).plot.box()", _boxes(groups), False


@_kind
def _seaborn_boxes(rng):
    groups = {name: _numbers(rng, count=8) for name in "pq"}
    x = [name for name, values in groups.items() for _ in values]
    y = [value for values in groups.values() for value in values]
    chart = _boxes(groups)
    return f"import seaborn as sns\nsns.boxplot(x={x}, y={y})", chart, _are_simple(chart)


# Figures with several axes, and what has no data of its own


@_kind
def _four_charts_in_one(rng):
    y, (labels, shares), names = _numbers(rng, count=4), _pie_data(rng), _names(rng, 4)
    code = f"figure, ((a, b), (c, d)) = plt.subplots(2, 2)\nfigure.suptitle('All of it')\na.plot({y})\n"
    code += f"b.scatter({y}, {y}, label='s')\nc.bar({names}, {y}, label='g')\nd.pie({shares}, labels={labels})"
    parts = [
        _line({"Line 0": _pairs(map(float, range(4)), y)}),
        _scatter({"s": _pairs(y, y)}),
        _bar(_bars("g", names, y)),
        _pie_chart(labels, shares),
    ]
    return code, {"type": "superchart", "title": "All of it", "elements": parts}


@_kind
def _two_axes_in_one_place(rng):
    left, right = _numbers(rng, count=5), _numbers(rng, count=5, low=1e5, high=2e5)
    code = f"figure, axes = plt.subplots()\naxes.plot({left})\nother = axes.twinx()\nother.plot({right})\nother.set_ylabel('p [Pa]')"
    parts = [
        _line({"Line 0": _pairs(map(float, range(5)), left)}, y_unit=None),
        _line({"Line 0": _pairs(map(float, range(5)), right)}, y_unit="Pa"),
    ]
    return code, {"type": "superchart", "title": "", "elements": parts}


@_kind
def _image(rng):
    return f"plt.imshow([{_numbers(rng, count=4)}])\nplt.title('seen')", {"type": "unknown", "title": "seen", "elements": []}


@_kind
def _filled_area(rng):
    y = _numbers(rng)
    return f"plt.plot({y})\nplt.fill_between(range({len(y)}), {y})", {"type": "unknown", "elements": []}

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Line and scatter charts."""

import datetime
import re

import numpy
from matplotlib.collections import PathCollection

from alcove_runner.charts import axis

_AUTOMATIC = re.compile(r"_child(\d+)$")


def describe_lines(axes):
    lines = [line for line in axes.lines if _is_in_data(line, axes)]
    elements = [
        {"label": _name(line, "Line"), "points": _pairs(line.get_xdata(), line.get_ydata())}
        for line in lines
    ]
    return _chart(axes, elements)


def describe_scatter(axes):
    elements = []
    for collection in axes.collections:
        if isinstance(collection, PathCollection):
            # Masked values are points that are not drawn.
            offsets = numpy.ma.filled(numpy.ma.asarray(collection.get_offsets(), dtype=float), numpy.nan)
            xs, ys = axis.values(axes.xaxis, offsets[:, 0]), axis.values(axes.yaxis, offsets[:, 1])
            pairs = [[x, y] for x, y in zip(xs, ys)]
            elements.append({"label": _name(collection, "Scatter"), "points": pairs})
    return _chart(axes, elements)


def count(axes):
    """Of all lines and scatters, before a list is made of any."""
    scattered = (one.get_offsets() for one in axes.collections if isinstance(one, PathCollection))
    return sum(len(line.get_xdata()) for line in axes.lines) + sum(len(offsets) for offsets in scattered)


def is_grid_like(line):
    """A reference line beside the data: two points, level or upright."""
    x, y = line.get_xdata(), line.get_ydata()
    return len(x) == 2 and len(y) == 2 and (x[0] == x[1] or y[0] == y[1])


def _is_in_data(line, axes):
    """False for axhline and the like, which span the axes wherever the data are."""
    return all(line.get_transform().contains_branch_seperately(axes.transData))


def _name(artist, kind):
    name = str(artist.get_label())
    automatic = _AUTOMATIC.match(name)
    return f"{kind} {automatic.group(1)}" if automatic else name


def _chart(axes, elements):
    return {
        "elements": elements,
        **axis.names(axes.xaxis, axes.yaxis),
        **axis.ticks(axes.xaxis, "x"),
        **axis.ticks(axes.yaxis, "y"),
    }


def _pairs(xs, ys):
    return [[x, y] for x, y in zip(_values(xs), _values(ys))]


def _values(values):
    if numpy.ma.isMaskedArray(values):
        values = numpy.ma.filled(values.astype(float), numpy.nan)
    # Most are plain numbers: those need no look at each value's type.
    if isinstance(values, numpy.ndarray) and values.ndim == 1 and values.dtype.kind in "iubf":
        return values.astype(float).tolist()
    return [_plain(value) for value in values]


def _plain(value):
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, numpy.datetime64):
        return str(value.astype("datetime64[s]"))
    if isinstance(value, str):
        return str(value)
    if value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        # A pandas Period stands for its first moment; anything else for its text.
        start = getattr(value, "start_time", None)
        return start.isoformat() if start is not None else str(value)

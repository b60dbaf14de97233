# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Bar charts and histograms."""

import re

from matplotlib.container import BarContainer

from alcove_runner.charts import axis

_AUTOMATIC = re.compile(r"_container(\d+)$")


def describe(axes):
    containers = [one for one in axes.containers if isinstance(one, BarContainer)]
    lying = bool(containers) and all(_is_lying(one) for one in containers)
    elements = [element for one in containers for element in _elements(axes, one)]
    # The labels of lying bars are on the y axis: the chart is told as if it stood.
    x, y = (axes.yaxis, axes.xaxis) if lying else (axes.xaxis, axes.yaxis)
    return {"elements": elements, **axis.names(x, y)}


def _elements(axes, container):
    lying = _is_lying(container)
    first = container.patches[0] if container.patches else None
    for bar in container.patches:
        if lying:
            along, start, width = axes.yaxis, bar.get_y(), bar.get_height()
            value = _length(bar.get_width(), first.get_x())
        else:
            along, start, width = axes.xaxis, bar.get_x(), bar.get_width()
            value = _length(bar.get_height(), first.get_y())
        place = round(start + width / 2, 10)
        # Bars of a group stand beside their tick, less than half a step away.
        text = axis.text_at(along, place, reach=0.5)
        yield {"label": text, "group": _group(container, bar), "value": value}


def _length(drawn, start):
    """Axes.bar adds the start of its first bar to all lengths and takes it off again. Of all numbers of
    which that makes this one, the shortest is the one that was given."""
    drawn, start = float(drawn), float(start)
    for digits in range(1, 17):
        short = float(f"{drawn:.{digits}g}")
        if (start + short) - start == drawn:
            return short
    return drawn


def _group(container, bar):
    name = str(container.get_label())
    if not name.startswith("_"):
        return name
    # Histograms have their label at the first bar, and every bar may have one of its own.
    for one in (bar, container.patches[0]):
        if not str(one.get_label()).startswith("_"):
            return str(one.get_label())
    automatic = _AUTOMATIC.match(name)
    return f"Group {automatic.group(1)}" if automatic else name


def _is_lying(container):
    return container.orientation == "horizontal"

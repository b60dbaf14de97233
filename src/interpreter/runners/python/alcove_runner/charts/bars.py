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
    name = str(container.get_label())
    automatic = _AUTOMATIC.match(name)
    group = f"Group {automatic.group(1)}" if automatic else name
    for bar in container.patches:
        if _is_lying(container):
            along, start, width, value = axes.yaxis, bar.get_y(), bar.get_height(), bar.get_width()
        else:
            along, start, width, value = axes.xaxis, bar.get_x(), bar.get_width(), bar.get_height()
        place = round(start + width / 2, 10)
        # Bars of a group stand beside their tick, less than half a step away.
        text = axis.text_at(along, place, reach=0.5)
        yield {"label": text, "group": group, "value": float(value)}


def _is_lying(container):
    return container.orientation == "horizontal"

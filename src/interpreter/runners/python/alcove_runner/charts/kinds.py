# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Which kind of chart one axes is."""

from matplotlib.collections import LineCollection, PathCollection
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle, Shadow, Wedge
from matplotlib.text import Text

from alcove_runner.charts import bars, boxes, pies, points


def describe(axes):
    kind, extract = _kind(axes)
    chart = {"type": kind, "title": axes.get_title() or None}
    chart.update(extract(axes) if extract else {"elements": []})
    return chart


def _kind(axes):
    if axes.name == "3d":
        # Points have two coordinates.
        return "unknown", None
    # A shadow shows again what its patch shows.
    artists = [child for child in axes._children if not isinstance(child, (Text, Shadow))]
    if boxes.recorded(axes):
        return "box_and_whisker", boxes.describe
    if _all(artists, Line2D):
        return "line", points.describe_lines
    drawn = [artist for artist in artists if not isinstance(artist, Line2D)]
    lines = [artist for artist in artists if isinstance(artist, Line2D)]
    if _all(drawn, PathCollection) and all(points.is_grid_like(line) for line in lines):
        return "scatter", points.describe_scatter
    if _all(drawn, Wedge) and not lines:
        return "pie", pies.describe
    # Error bars are line collections and the lines of their caps.
    solid = [artist for artist in drawn if not isinstance(artist, LineCollection)]
    if solid and _all(solid, Rectangle) and _in_bars(axes, solid):
        only_bars = len(solid) == len(drawn) and all(points.is_grid_like(line) for line in lines)
        if only_bars or len(axes.containers) > len(_bar_containers(axes)):
            return "bar", bars.describe
    return "unknown", None


def _all(artists, kind):
    return all(isinstance(artist, kind) for artist in artists)


def _bar_containers(axes):
    return [one for one in axes.containers if isinstance(one, BarContainer)]


def _in_bars(axes, rectangles):
    held = {id(bar) for container in _bar_containers(axes) for bar in container.patches}
    return all(id(one) in held for one in rectangles)

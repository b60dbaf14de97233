# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Charts of matplotlib figures as data (the shape is in the sheet's section 3.3)."""


# Of a figure. What is drawn beyond them nobody tells apart, and their lists would fill a sandbox.
_MAX_POINTS = 500_000


def extract(figure):
    # Later than this module: `boxes` is wanted while matplotlib itself is being imported.
    from alcove_runner.charts import kinds, points

    axes = figure.get_axes()
    if not any(one.has_data() for one in axes):
        return {}
    if sum(points.count(one) for one in axes) > _MAX_POINTS:
        return {}
    if len(axes) == 1:
        return kinds.describe(axes[0])
    elements = [kinds.describe(one) for one in axes]
    return {"type": "superchart", "title": figure.get_suptitle(), "elements": elements}

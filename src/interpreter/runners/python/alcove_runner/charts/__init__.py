# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Charts of matplotlib figures as data (the shape is in the sheet's section 3.3)."""


def extract(figure):
    # Later than this module: `boxes` is wanted while matplotlib itself is being imported.
    from alcove_runner.charts import kinds

    axes = figure.get_axes()
    if not any(one.has_data() for one in axes):
        return {}
    if len(axes) == 1:
        return kinds.describe(axes[0])
    elements = [kinds.describe(one) for one in axes]
    return {"type": "superchart", "title": figure.get_suptitle(), "elements": elements}

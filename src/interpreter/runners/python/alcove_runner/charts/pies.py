# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Pie charts."""

from matplotlib.patches import Wedge


def describe(axes):
    wedges = [patch for patch in axes.patches if isinstance(patch, Wedge)]
    return {
        "elements": [
            {
                "label": str(wedge.get_label()),
                "angle": float(round(abs(wedge.theta2 - wedge.theta1))),
                "radius": float(wedge.r),
            }
            for wedge in wedges
        ]
    }

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Pie charts."""

import math

from matplotlib.patches import Wedge


def describe(axes):
    wedges = [patch for patch in axes.patches if isinstance(patch, Wedge)]
    return {
        "elements": [
            {
                "label": str(wedge.get_label()),
                "angle": _rounded(abs(float(wedge.theta2) - float(wedge.theta1))),
                "radius": float(wedge.r),
            }
            for wedge in wedges
        ]
    }


def _rounded(angle):
    """Without the noise of matplotlib's 32-bit angles."""
    if angle == 0 or not math.isfinite(angle):
        return angle
    exponent = math.floor(math.log10(angle))
    digits = max(1, 8 - exponent)
    return round(angle, digits - 1 - exponent)

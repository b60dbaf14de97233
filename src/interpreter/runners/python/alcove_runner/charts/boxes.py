# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Box plots. The drawing of a box does not tell its data (whiskers of no length, boxes without
patches), so what Axes.bxp was given is kept with the axes."""

_NOTE = "_alcove_boxes"


def watch(axes_class):
    """Makes the class note each box plot that it draws."""
    original = axes_class.bxp

    def bxp(self, bxpstats, *args, **options):
        stats = list(bxpstats)
        drawn = original(self, stats, *args, **options)
        notes = self.__dict__.setdefault(_NOTE, [])
        positions = options.get("positions", args[0] if args else None)
        notes.append((stats, positions, _is_lying(options), drawn["medians"]))
        return drawn

    bxp.__doc__ = original.__doc__
    axes_class.bxp = bxp


def recorded(axes):
    """The notes whose boxes are still drawn."""
    return [note for note in getattr(axes, _NOTE, ()) if note[3] and note[3][0] in axes._children]


def describe(axes):
    from alcove_runner.charts import axis

    elements, lying = [], False
    for stats, positions, lying, _ in recorded(axes):
        along = axes.yaxis if lying else axes.xaxis
        places = positions if positions is not None else range(1, len(stats) + 1)
        for place, one in zip(places, stats):
            elements.append(_element(axis.text_at(along, float(place), reach=0.5), one))
    x, y = (axes.yaxis, axes.xaxis) if lying else (axes.xaxis, axes.yaxis)
    return {"elements": elements, **axis.names(x, y)}


def _element(label, stats):
    return {
        "label": label,
        "min": float(stats["whislo"]),
        "first_quartile": float(stats["q1"]),
        "median": float(stats["med"]),
        "third_quartile": float(stats["q3"]),
        "max": float(stats["whishi"]),
        "outliers": [float(value) for value in stats.get("fliers", ())],
    }


def _is_lying(options):
    vertical = options.get("vert")
    return options.get("orientation") == "horizontal" or (vertical is not None and not vertical)

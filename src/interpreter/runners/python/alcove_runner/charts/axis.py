# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Labels, units, ticks and scales of an axis."""

import re
import sys

from matplotlib import category, dates, ticker

_UNIT = re.compile(r"\s\((.*?)\)|\[(.*?)\]")


def label(axis):
    return axis.get_label_text() or None


def unit(axis):
    found = _UNIT.search(axis.get_label_text())
    return (found.group(1) or found.group(2) or None) if found else None


def names(x, y):
    """The keys of all charts with two axes."""
    return {"x_label": label(x), "y_label": label(y), "x_unit": unit(x), "y_unit": unit(y)}


def ticks(axis, prefix):
    places = [float(place) for place in axis.get_ticklocs()]
    shown = places
    if _is_period(axis):
        shown = [value(axis, place) for place in places]
    elif is_date(axis):
        shown = [dates.num2date(place).isoformat() for place in places]
    texts = _texts(axis)
    return {
        f"{prefix}_ticks": shown,
        f"{prefix}_tick_labels": texts,
        f"{prefix}_scale": _scale(axis, places, texts),
    }


def is_date(axis):
    kinds = (dates.DateConverter, dates.ConciseDateConverter, dates._SwitchableDateConverter)
    is_formatted = isinstance(axis.get_major_formatter(), dates.DateFormatter)
    return isinstance(_converter(axis), kinds) or is_formatted or _is_period(axis)


def _converter(axis):
    # The attribute is on its way out since matplotlib 3.10, which brought the method.
    return axis.get_converter() if hasattr(axis, "get_converter") else axis.converter


def _is_period(axis):
    """pandas counts regular dates in steps of their frequency, which it notes on the axis."""
    return type(_converter(axis)).__name__ == "PeriodConverter" and hasattr(axis, "freq")


def values(axis, numbers):
    """Positions on the axis as the user gave them."""
    if is_date(axis) or categories(axis):
        return [value(axis, number) for number in numbers]
    return [None if number != number else number for number in numbers.tolist()]


def value(axis, number):
    """A position on the axis as the user gave it."""
    number = float(number)
    if number != number:
        return None
    if _is_period(axis):
        return sys.modules["pandas"].Period(ordinal=int(number), freq=axis.freq).start_time.isoformat()
    if is_date(axis):
        moment = dates.num2date(number).replace(tzinfo=None)
        return moment.isoformat()
    return categories(axis).get(number, number)


def categories(axis):
    mapping = getattr(axis.units, "_mapping", None)
    if not isinstance(axis.units, category.UnitData) or not mapping:
        return {}
    return {float(place): name for name, place in mapping.items()}


def text_at(axis, place, *, reach):
    """What the axis says at a place: the category or fixed tick within reach, else the number."""
    named = categories(axis) or _fixed_texts(axis)
    near = min(named, key=lambda tick: abs(tick - place), default=None)
    if near is not None and abs(near - place) <= reach and named[near]:
        return named[near]
    shown = value(axis, place)
    return shown if isinstance(shown, str) else f"{float(place):.10g}"


def _fixed_texts(axis):
    if not isinstance(axis.get_major_formatter(), (ticker.FixedFormatter, ticker.FuncFormatter)):
        return {}
    return dict(zip((float(place) for place in axis.get_ticklocs()), _texts(axis)))


def _texts(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]


def _scale(axis, places, texts):
    if is_date(axis):
        return "datetime"
    if axis.get_scale() != "linear":
        return axis.get_scale()
    counts = bool(places) and all(
        place == i and text != str(i) for i, (place, text) in enumerate(zip(places, texts))
    )
    return "categorical" if categories(axis) or counts else "linear"

# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Further MIME types of results: e2b/data, e2b/chart and application/json."""

import sys

from IPython.core.formatters import BaseFormatter, ObjectName
from traitlets import Unicode

from alcove_runner import jsonable

# Of a table's `data`: they take up to 700 MB, here and in the interpreter, of a sandbox's 2 GiB.
_MAX_CELLS = 2_000_000


class DataFormatter(BaseFormatter):
    """The columns of a pandas DataFrame. Does not import pandas: without it there are none."""

    format_type = Unicode("e2b/data")
    print_method = ObjectName("_repr_e2b_data_")
    _return_type = (dict, list, str)

    def __call__(self, obj):
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(obj, getattr(pandas, "DataFrame", ())):
            return _columns(obj)
        return super().__call__(obj)


class ChartFormatter(BaseFormatter):
    """What a matplotlib Figure shows, as data."""

    format_type = Unicode("e2b/chart")
    print_method = ObjectName("_repr_e2b_chart_")
    _return_type = (dict, str)

    def __call__(self, obj):
        figure = sys.modules.get("matplotlib.figure")
        if figure is not None and isinstance(obj, getattr(figure, "Figure", ())):
            return _chart(obj)
        return super().__call__(obj)


def install(shell):
    formatter = shell.display_formatter
    for kind in (DataFormatter, ChartFormatter):
        added = kind(parent=formatter)
        formatter.formatters[added.format_type] = added
    # By name: pandas is not imported for it.
    formatter.formatters["text/plain"].for_type_by_name("pandas.core.frame", "DataFrame", _print_frame)
    formatter.formatters["text/html"].for_type_by_name("pandas.core.frame", "DataFrame", _frame_html)
    json = formatter.formatters["application/json"]
    json.for_type(list, _container)
    json.for_type(dict, _container)


def _columns(frame):
    if frame.size > _MAX_CELLS:
        return None
    columns = jsonable.Made()
    # By position: names of columns may repeat.
    for position, name in enumerate(frame.columns):
        columns[name if isinstance(name, str) else jsonable.text_of(name)] = _values(frame.iloc[:, position])
    return columns


def _print_frame(frame, printer, cycle):
    printer.text(_shown(frame, repr))


def _frame_html(frame):
    return _shown(frame, lambda shown: shown._repr_html_())


def _shown(frame, show):
    try:
        return show(frame)
    except Exception:
        # Some object has no text.
        copy = frame.copy(deep=False)
        for position, kind in enumerate(frame.dtypes):
            if kind == object:
                copy.isetitem(position, [jsonable.text_of(value) for value in frame.iloc[:, position]])
        return show(copy)


def _values(column):
    # Most columns are plain numbers or dates: those need no look at each value's type.
    dtype = column.dtype
    kind = dtype.kind if type(dtype).__module__.startswith("numpy") and dtype.itemsize <= 8 else "O"
    if kind in "iub":
        return column.tolist()
    if kind == "f":
        return [value if value - value == 0 else None for value in column.tolist()]
    if kind == "M":
        # What is missing is not even itself.
        return [value.isoformat() if value == value else None for value in column]
    return [_convert(value) for value in column]


def _convert(value):
    try:
        return jsonable.convert(value, default=jsonable.text_of)
    except Exception:
        # A container inside itself, and objects that refuse to be looked at.
        return jsonable.text_of(value)


def _chart(figure):
    try:
        from alcove_runner import charts

        return jsonable.convert(charts.extract(figure), default=str)
    except Exception:
        # An image without data is better than no image.
        return {}


def _container(value):
    try:
        return jsonable.convert(value)
    except Exception:
        return None

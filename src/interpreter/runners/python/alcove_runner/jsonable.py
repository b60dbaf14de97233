# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Python values as JSON: numpy and pandas values, dates, keys of any simple type."""

import base64
import datetime
import enum
import sys

_PLAIN = (str, bool, type(None))
# The interpreter takes frames of 256 levels.
_MAX_DEPTH = 200


class NotJsonable(Exception):
    pass


def convert(value, *, default=None):
    """Returns what json.dumps takes. `default` is asked for unknown values; without one they raise
    NotJsonable."""
    return _value(value, default, _MAX_DEPTH)


def _value(value, default, levels):
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int:
        return _integer(value, default)
    if kind is float:
        return _number(value)
    if isinstance(value, enum.Enum):
        return _value(value.value, default, levels)
    if isinstance(value, (dict, list, tuple)) and levels == 0:
        raise NotJsonable("nested too deeply")
    if isinstance(value, dict):
        return {_key(key, default): _value(item, default, levels - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_value(item, default, levels - 1) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return _integer(int(value), default)
    if isinstance(value, float):
        return _number(float(value))
    return _special(value, default, levels)


def _integer(value, default):
    """Larger ones would arrive as rounded floats."""
    if -(1 << 63) <= value < 1 << 64:
        return value
    if default is not None:
        return default(value)
    raise NotJsonable("an integer of more than 64 bits")


def _special(value, default, levels):
    if _is_missing(value):
        return None
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.datetime64):
            return str(value)
        if isinstance(value, numpy.ndarray):
            return _value(value.tolist(), default, levels)
        if isinstance(value, numpy.generic):
            item = value.item()
            # A type that Python has no match for (longdouble) gives itself back.
            return float(item) if isinstance(item, numpy.generic) else _value(item, default, levels)
    if default is not None:
        return default(value)
    raise NotJsonable(type(value).__name__)


def _key(key, default):
    if type(key) is str:
        return key
    if key is None:
        return "null"
    if key is True or key is False:
        return "true" if key else "false"
    plain = _value(key, default, _MAX_DEPTH)
    if isinstance(plain, (str, int, float)):
        return str(plain)
    if default is not None:
        return str(key)
    raise NotJsonable(f"a key of type {type(key).__name__}")


def _is_missing(value):
    """pandas' NaT and NA, numpy's NaT."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and (value is getattr(pandas, "NaT", None) or value is getattr(pandas, "NA", None)):
        return True
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, (numpy.datetime64, numpy.timedelta64)):
        return False
    return bool(numpy.isnat(value))


def _number(value):
    return value if value - value == 0 else None


def bundle(data):
    """A MIME bundle as it goes into a frame: images are base64, everything else is JSON."""
    return {str(mime): _entry(str(mime), value) for mime, value in data.items() if value is not None}


def _entry(mime, value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        if mime.startswith("text/") or mime == "image/svg+xml":
            return bytes(value).decode("utf-8", "replace")
        return base64.b64encode(value).decode()
    if type(value) is str:
        return value
    return convert(value, default=str)

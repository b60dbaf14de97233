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
# In one value: containers, and eights of items. Lists that hold each other twice are small, and endless
# to write.
_MAX_WORK = 2_000_000


class NotJsonable(Exception):
    pass


class Made(dict):
    """JSON already: nothing in it is looked at again."""


def convert(value, *, default=None):
    """Returns what json.dumps takes. `default` is asked for unknown values; without one they raise
    NotJsonable."""
    if type(value) in _PLAIN:
        return value
    return _value(value, _Walk(default))


def text_of(value):
    """The text of any value, whatever its own methods do."""
    if isinstance(value, (dict, list, tuple)):
        import reprlib

        return reprlib.repr(value)
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__} whose text cannot be made>"


class _Walk:
    def __init__(self, default):
        self.default = default
        self.work_left = _MAX_WORK
        self.path = set()

    def enter(self, container):
        """Before the container's items; leave() is not called after an error, which ends the walk."""
        self.work_left -= 1 + len(container) // 8
        if self.work_left < 0:
            raise NotJsonable("too many items")
        if len(self.path) >= _MAX_DEPTH:
            raise NotJsonable("nested too deeply")
        if id(container) in self.path:
            raise NotJsonable("a container inside itself")
        self.path.add(id(container))

    def leave(self, container):
        self.path.remove(id(container))


def _value(value, walk):
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int:
        return _integer(value, walk.default)
    if kind is float:
        return _number(value)
    if isinstance(value, enum.Enum):
        return _value(value.value, walk)
    if isinstance(value, dict):
        walk.enter(value)
        made = {_key(key, walk): _value(item, walk) for key, item in value.items()}
        walk.leave(value)
        return made
    if isinstance(value, (list, tuple)):
        walk.enter(value)
        made = [_value(item, walk) for item in value]
        walk.leave(value)
        return made
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return _integer(int(value), walk.default)
    if isinstance(value, float):
        return _number(float(value))
    return _special(value, walk)


def _integer(value, default):
    """Larger ones would arrive as rounded floats."""
    if -(1 << 63) <= value < 1 << 64:
        return value
    if default is not None:
        return default(value)
    raise NotJsonable("an integer of more than 64 bits")


def _special(value, walk):
    if _is_missing(value):
        return None
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, numpy.datetime64):
            return str(value)
        if isinstance(value, numpy.ndarray):
            return _value(value.tolist(), walk)
        if isinstance(value, numpy.generic):
            item = value.item()
            # A type that Python has no match for (longdouble) gives itself back.
            return float(item) if isinstance(item, numpy.generic) else _value(item, walk)
    if walk.default is not None:
        return walk.default(value)
    raise NotJsonable(type(value).__name__)


def _key(key, walk):
    if type(key) is str:
        return key
    if key is None:
        return "null"
    if key is True or key is False:
        return "true" if key else "false"
    plain = _value(key, walk)
    if isinstance(plain, (str, int, float)):
        return str(plain)
    if walk.default is not None:
        return walk.default(key)
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


def entry(mime, value):
    """What a MIME bundle says, as it goes into a frame: images are base64, everything else is JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        if mime.startswith("text/") or mime == "image/svg+xml":
            return bytes(value).decode("utf-8", "replace")
        return base64.b64encode(value).decode()
    if type(value) in (str, Made):
        return value
    return convert(value, default=text_of)

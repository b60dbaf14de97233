# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Notes what a run of the Python tests shows of the official clients, for docs/compatibility.md:
which public methods the installed packages have, which of them returned, which were refused, and
which endpoints answered. tools/dev/compat.py makes the table of it.

The packages stay as published: each public method is looked up through a descriptor that passes
the call on unchanged."""

import contextvars
import enum
import functools
import importlib
import inspect
import json
import logging
import os
import re
import urllib.parse
from pathlib import Path

import e2b

SECTIONS = {"e2b": "`e2b` for Python", "e2b_code_interpreter": "`e2b-code-interpreter` for Python"}
CLI = "`@e2b/cli`"
# What the server says of something that it does not have.
REFUSAL = re.compile(r'(?:^|: |")([\w.\[\] -]+ (?:is not available on this server yet|are not enabled|is running already)\.)')
# The texts are short; the pattern takes minutes for a megabyte of anything else.
_MAX_REFUSAL = 1000
# Modules whose classes are for users; the rest of the packages is their inside.
_PUBLIC = re.compile(r"e2b\.(?:sandbox|template|volume(?!\.client)|secret)|e2b_code_interpreter\.code_interpreter")
_NOT_FOR_USERS = {"VolumeConnectionConfig", "TransportWithLogger", "DefaultBuildLogger", "DockerfileParserInterface", "from_dict", "to_dict"}
_REQUEST = re.compile(r'HTTP Request: (\w+) (\S+) "\S+ (\d)\d\d')

_ASKED_BY = "_alcove_asked_by"

_inside = contextvars.ContextVar("inside a recorded call", default=False)


class Record:
    def __init__(self):
        self.methods = set()  # (section, name, flavour)
        self.returned = set()
        self.refused = set()  # (section, name, flavour, text)
        self.endpoints = set()  # "GET /sandboxes/{sandbox_id}", as the package's own client knows them
        self.answered = set()  # (method, path)
        self.turned_down = set()  # (method, path, text) of refused requests
        self.differences = set()  # (title, what happens)

    def call_returned(self, key):
        self.returned.add(key)

    def call_raised(self, key, text, request=None):
        """`request`: the last one that failed before it, (method, path), if it was one of this program's."""
        refusal = REFUSAL.search(text[:_MAX_REFUSAL])
        if refusal:
            self.refused.add((*key, refusal[1]))
            if request:
                self.turned_down.add((*request, refusal[1]))

    def reply(self, method, path, status, body):
        """A reply to a request that a test made by itself."""
        seen = (method, urllib.parse.urlsplit(path).path)
        refusal = REFUSAL.search(body[:_MAX_REFUSAL].decode(errors="replace"))
        if 200 <= status < 300:
            self.answered.add(seen)
        elif refusal:
            self.turned_down.add((*seen, refusal[1]))

    def command(self, args, code, output=""):
        """A run of the CLI that a test expected to end so."""
        if "--help" in args:
            return
        words = 3 if args[1:2] == ("snapshot",) else 2
        key = (CLI, " ".join(args[:words]), "")
        if code == 0:
            self.call_returned(key)
        else:
            self.call_raised(key, output)

    def command_exists(self, words):
        self.methods.add((CLI, " ".join(words), ""))

    def differs(self, title, text):
        self.differences.add((title, text))

    def save(self, folder):
        content = {name: sorted(value) for name, value in vars(self).items()}
        Path(folder, f"{os.getpid()}.json").write_text(json.dumps(content))


record = Record()


class _Method:
    """Stands where the client's method stood."""

    def __init__(self, inner, key):
        self._inner = inner
        self._key = key

    def __get__(self, instance, owner=None):
        # What asked for a list shows what it can do with the list's first page.
        asked_by = getattr(instance, _ASKED_BY, None)
        return _recorded(self._inner.__get__(instance, owner), [self._key, *([asked_by] if asked_by else [])])


def _recorded(method, keys):
    async def finish(coroutine):
        with _noting(keys) as done:
            result = await coroutine
            done(result)
            return result

    # Whoever asks must see what the client's method is: it may be called from a thread if it is sync.
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def call(*args, **kwargs):
            if _inside.get():
                return await method(*args, **kwargs)
            return await finish(method(*args, **kwargs))

        return call

    @functools.wraps(method)
    def call(*args, **kwargs):
        if _inside.get():
            return method(*args, **kwargs)
        with _noting(keys) as done:
            result = method(*args, **kwargs)
            if not inspect.iscoroutine(result):
                done(result)
                return result
        return finish(result)

    return call


class _noting:
    """Marks what runs below as the client's own doing, and notes how it ends."""

    def __init__(self, keys):
        self._keys = keys

    def __enter__(self):
        _inside.set(True)
        return self._note

    def _note(self, result):
        if hasattr(result, "next_items"):
            setattr(result, _ASKED_BY, self._keys[0])
        # False says that there was nothing to do it to, which any server can say.
        elif result is not False:
            for key in self._keys:
                record.call_returned(key)

    def __exit__(self, kind, error, trace):
        # Not a reset: a coroutine that is thrown away ends in a context that is not its own.
        _inside.set(False)
        if error is not None:
            for key in self._keys:
                record.call_raised(key, str(error), _requests.failed)


class _Requests(logging.Handler):
    """Reads what the HTTP libraries log of each answered request."""

    # The last one that was answered with an error, which is what a call that fails tells of.
    failed = None

    def emit(self, entry):
        seen = _REQUEST.match(entry.getMessage())
        if not seen:
            return
        request = (seen[1], urllib.parse.urlsplit(seen[2]).path)
        if seen[3] == "2":
            record.answered.add(request)
        else:
            self.failed = request


_requests = _Requests()


def _watch_transport():
    """The clients before 2.40 send their calls to the agent by httpcore alone, which logs no paths."""
    try:
        import httpcore
    except ImportError:
        return

    def note(request, response):
        if 200 <= response.status < 300:
            record.answered.add((request.method.decode(), request.url.target.decode().partition("?")[0]))
        return response

    def watched(handle):
        return functools.wraps(handle)(lambda pool, request: note(request, handle(pool, request)))

    def watched_async(handle):
        @functools.wraps(handle)
        async def call(pool, request):
            return note(request, await handle(pool, request))

        return call

    httpcore.ConnectionPool.handle_request = watched(httpcore.ConnectionPool.handle_request)
    httpcore.AsyncConnectionPool.handle_async_request = watched_async(httpcore.AsyncConnectionPool.handle_async_request)


def _classes(package):
    """The package's classes for users: those that have no subclass in the package itself."""
    found = set()
    root = Path(package.__file__).parent
    for path in root.rglob("*.py"):
        module = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        if _PUBLIC.match(module):
            classes = vars(importlib.import_module(module)).values()
            found |= {c for c in classes if inspect.isclass(c) and c.__module__ == module}
    skipped = (BaseException, enum.Enum, dict)
    leaves = [c for c in found if not issubclass(c, skipped) and not any(c in d.__mro__[1:] for d in found)]
    return [c for c in leaves if not c.__name__.startswith("_") and c.__name__.removeprefix("Async") not in _NOT_FOR_USERS]


def _methods(kind, package):
    """Public methods with their raw attributes, inherited ones of the same package too."""
    found = {}
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] == package:
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    return {
        name: value
        for name, value in found.items()
        if hasattr(value, "__get__")
        and not (isinstance(value, property) or inspect.isclass(value) or inspect.ismemberdescriptor(value))
        and name not in _NOT_FOR_USERS
    }


def _flavour(kind):
    if "_async" in kind.__module__:
        return "async"
    return "sync" if "_sync" in kind.__module__ else ""


def _wrap(package):
    section = SECTIONS[package.__name__]
    for kind in _classes(package):
        name = kind.__name__.removeprefix("Async")
        methods = _methods(kind, package.__name__)
        # Before 2.0 the constructor was how the sync client created.
        if kind is e2b.Sandbox and "create" not in methods:
            methods["__init__"] = kind.__init__
        for method, inner in methods.items():
            shown = name if method == "__init__" else f"{name}.{method}"
            key = (section, f"{shown}()", _flavour(kind))
            record.methods.add(key)
            setattr(kind, method, _Method(inner, key))


def _known_endpoints():
    """The endpoints that the package's own client names."""
    root = Path(e2b.__file__).parent
    for path in (root / "api" / "client" / "api").rglob("*.py"):
        text = path.read_text()
        found = re.search(r'"method": "(\w+)",\s+"url": f?"([^"]+)"', text)
        if found:
            yield f"{found[1].upper()} {re.sub(r'{.*?}', '{}', found[2])}"
    for path in (root / "envd").rglob("*_connect.py"):
        package, service = path.stem.split("_")[0], path.stem.split("_")[0].capitalize()
        for method in set(re.findall(r"(?:Name}|\.[A-Z]\w+)/([A-Z]\w+)", path.read_text())):
            yield f"POST /{package}.{service}/{method}"


def start():
    import e2b_code_interpreter

    for package in (e2b, e2b_code_interpreter):
        _wrap(package)
    record.endpoints.update(_known_endpoints())
    _watch_transport()
    for name, level in (("httpx", logging.INFO), ("pyqwest.access", logging.DEBUG)):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.propagate = False
        logger.addHandler(_requests)

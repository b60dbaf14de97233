# SPDX-License-Identifier: Apache-2.0
# Copyright the alcove authors
"""Adapts libraries when, and only when, user code imports them."""

import importlib.abc
import importlib.util
import os
import sys

from alcove_runner import libraries

_ADAPTERS = {
    "PIL.Image": libraries.adapt_pillow,
    "plotly.io": libraries.adapt_plotly,
    "altair": libraries.adapt_altair,
    "getpass": libraries.adapt_getpass,
    "matplotlib.axes._axes": libraries.adapt_matplotlib,
}


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the other finders find the module, and calls the adapter after it was loaded."""

    def __init__(self):
        self._looking = set()

    def find_spec(self, name, path=None, target=None):
        adapt = _ADAPTERS.get(name)
        if adapt is None or name in self._looking:
            return None
        self._looking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking.discard(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, adapt)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader, adapt):
        self._loader = loader
        self._adapt = adapt

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # The module keeps its own loader: resources and sources are looked up through it.
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._adapt(module)
        except Exception:
            # A version of the library that is built differently: it works as it is.
            pass


def install():
    sys.meta_path.insert(0, _Finder())
    # matplotlib reads this when pyplot is imported; the backend then attaches itself to the shell.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    for name, adapt in _ADAPTERS.items():
        if name in sys.modules:
            adapt(sys.modules[name])

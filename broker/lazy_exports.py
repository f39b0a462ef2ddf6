"""Public names of a package that are loaded when they are first used.

A package's `__init__` names its exports without importing their modules. So `mercast pub --help` stays quick, and a
broker process loads only what it needs.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping


def lazy_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Returns the `__getattr__` of a package. `modules` has the module of each exported name."""

    def load(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(modules[name]), name)

    return load

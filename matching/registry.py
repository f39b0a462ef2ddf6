"""The table of indexes by name. It is a literal, so that a reader sees all indexes in one place.

matching.create("pst-bloom")           creates an index
matching.create("pst-hash", access_predicates=3)
matching.create("a-tree", backend="native")
matching.names()                       the indexes that this installation can create
matching.info("pst-bloom").accepts     the expressions that the index can store

A backend is an implementation of an index. The Python backend is the readable one. The native backend is C++ and needs
the compiled module `matching._native`. An installation without a C++ compiler lacks this module.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from matching.errors import BackendMissingError, UnknownIndexError
from matching.matcher import Matcher
from matching.nearest import nearest

PYTHON = "python"
NATIVE = "native"

NATIVE_MODULE = "matching._native"


class Accepts(StrEnum):
    """The expressions that an index can store."""

    CONJUNCTIONS = "conjunctions"
    NORMAL_FORMS = "conjunctions, DNF and CNF"
    """The index refuses an expression if its disjunctive and its conjunctive normal form both have too many clauses."""
    ANY_EXPRESSION = "any expression"


@dataclass(frozen=True, slots=True)
class IndexInfo:
    name: str
    title: str
    accepts: Accepts
    implementations: Mapping[str, tuple[str, str]]
    """The module and the class of each backend. The first backend is the default."""

    @property
    def backends(self) -> tuple[str, ...]:
        return tuple(self.implementations)

    @property
    def available_backends(self) -> tuple[str, ...]:
        """The backends that this installation has."""
        return tuple(backend for backend in self.implementations if backend != NATIVE or has_native_module())

    def load(self, backend: str) -> type[Matcher]:
        """Imports the class that implements the index on this backend."""
        module, class_name = self.implementations[backend]
        index: type[Matcher] = getattr(importlib.import_module(module), class_name)
        return index


INDEXES = {
    info.name: info
    for info in (
        IndexInfo(
            "auto",
            "the best index for each expression",
            Accepts.ANY_EXPRESSION,
            {PYTHON: ("matching.indexes.auto", "Auto"), NATIVE: ("matching.indexes.auto", "NativeAuto")},
        ),
        IndexInfo(
            "scan",
            "linear scan",
            Accepts.ANY_EXPRESSION,
            {PYTHON: ("matching.indexes.scan", "LinearScan"), NATIVE: ("matching.native.scan", "NativeScan")},
        ),
        IndexInfo(
            "a-tree",
            "A-Tree",
            Accepts.ANY_EXPRESSION,
            {PYTHON: ("matching.indexes.a_tree", "ATree"), NATIVE: ("matching.native.a_tree", "NativeATree")},
        ),
        IndexInfo("flat", "access-predicate lists", Accepts.CONJUNCTIONS, {NATIVE: ("matching.native.flat", "Flat")}),
        IndexInfo("pst-bloom", "PSTBloom", Accepts.CONJUNCTIONS, {PYTHON: ("matching.indexes.pst.bloom", "PSTBloom")}),
        IndexInfo("pst-hash", "PSTHash", Accepts.CONJUNCTIONS, {PYTHON: ("matching.indexes.pst.hash", "PSTHash")}),
        IndexInfo("be-tree", "BE-Tree", Accepts.CONJUNCTIONS, {PYTHON: ("matching.indexes.be_tree", "BETree")}),
        IndexInfo("op-index", "OpIndex", Accepts.NORMAL_FORMS, {PYTHON: ("matching.indexes.op_index", "OpIndex")}),
    )
}


def names(backend: str | None = None) -> tuple[str, ...]:
    """The names of the indexes that this installation can create, with the given backend if there is one."""
    return tuple(
        name
        for name, info in INDEXES.items()
        if (info.available_backends if backend is None else backend in info.available_backends)
    )


def info(name: str) -> IndexInfo:
    """The description of an index. Raises UnknownIndexError for an unknown name."""
    if name not in INDEXES:
        raise UnknownIndexError(f"no index is called {name!r}{nearest(name, INDEXES)}; there are {', '.join(INDEXES)}")
    return INDEXES[name]


def create(name: str, backend: str | None = None, **options: object) -> Matcher:
    """Creates an empty index. The options are the keyword arguments of its class.

    The default backend is the first one of the index. `auto` uses the native backend if it is installed.
    """
    chosen = info(name)
    if backend is None:
        backend = chosen.backends[-1] if name == "auto" and has_native_module() else chosen.backends[0]
    if backend not in chosen.backends:
        raise UnknownIndexError(f"{name} has no backend {backend!r}; it has {', '.join(chosen.backends)}")
    if backend == NATIVE and not has_native_module():
        raise BackendMissingError(name)
    index = chosen.load(backend)
    for option in options:
        known = [parameter for parameter in inspect.signature(index).parameters if parameter != "self"]
        if option not in known:
            there_are = f"there are {', '.join(known)}" if known else "it has none"
            raise UnknownIndexError(f"{name} has no option {option!r}{nearest(option, known)}; {there_are}")
    return index(**options)


@cache
def has_native_module() -> bool:
    """Whether the compiled module is installed."""
    return importlib.util.find_spec(NATIVE_MODULE) is not None


def describe_backend() -> str:
    """The phrase for versions and reports that says whether matching uses the native core."""
    return (
        "matching with the native core" if has_native_module() else "matching in pure Python, no native core installed"
    )

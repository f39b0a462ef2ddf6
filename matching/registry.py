"""The indexes by name: a literal table, so that reading it tells what there is.

matching.create("pst-bloom")           an index
matching.create("pst-hash", access_predicates=3)
matching.names()                       all names
matching.info("pst-bloom").accepts     what it can hold
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from matching.errors import UnknownIndexError
from matching.matcher import Matcher


class Accepts(StrEnum):
    CONJUNCTIONS = "conjunctions"
    NORMAL_FORMS = "conjunctions, DNF and CNF"
    """Refuses an expression when its disjunctive and its conjunctive normal form both have too many clauses."""
    ANY_EXPRESSION = "any expression"


@dataclass(frozen=True, slots=True)
class IndexInfo:
    name: str
    title: str
    accepts: Accepts
    module: str
    class_name: str
    backends: tuple[str, ...] = ("python",)

    def load(self) -> type[Matcher]:
        index: type[Matcher] = getattr(importlib.import_module(self.module), self.class_name)
        return index


INDEXES = {
    info.name: info
    for info in (
        IndexInfo("auto", "the best index for each expression", Accepts.ANY_EXPRESSION, "matching.auto", "Auto"),
        IndexInfo("scan", "linear scan", Accepts.ANY_EXPRESSION, "matching.linear_scan", "LinearScan"),
        IndexInfo("a-tree", "A-Tree", Accepts.ANY_EXPRESSION, "matching.a_tree", "ATree"),
        IndexInfo("pst-bloom", "PSTBloom", Accepts.CONJUNCTIONS, "matching.pst_bloom", "PSTBloom"),
        IndexInfo("pst-hash", "PSTHash", Accepts.CONJUNCTIONS, "matching.pst_hash", "PSTHash"),
        IndexInfo("be-tree", "BE-Tree", Accepts.CONJUNCTIONS, "matching.be_tree", "BETree"),
        IndexInfo("op-index", "OpIndex", Accepts.NORMAL_FORMS, "matching.op_index", "OpIndex"),
    )
}


def names() -> tuple[str, ...]:
    return tuple(INDEXES)


def info(name: str) -> IndexInfo:
    if name not in INDEXES:
        raise UnknownIndexError(f"no index is called {name!r}{nearest(name, INDEXES)}; there are {', '.join(INDEXES)}")
    return INDEXES[name]


def create(name: str, backend: str | None = None, **options: object) -> Matcher:
    """An empty index. Options are the keyword arguments of its class."""
    chosen = info(name)
    if backend is not None and backend not in chosen.backends:
        raise UnknownIndexError(f"{name} has no backend {backend!r}; it has {', '.join(chosen.backends)}")
    index = chosen.load()
    known = [parameter for parameter in inspect.signature(index).parameters if parameter != "self"]
    for option in options:
        if option not in known:
            there_are = f"there are {', '.join(known)}" if known else "it has none"
            raise UnknownIndexError(f"{name} has no option {option!r}{nearest(option, known)}; {there_are}")
    return index(**options)


def nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def backend_in_words() -> str:
    return "matching in pure Python"

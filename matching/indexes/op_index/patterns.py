"""MATCHES: RE2 sets match many regular expressions in one pass over the value.

A set cannot change after it is compiled, and compiling costs far more than matching. So new patterns are first matched
one by one. When there are enough of them, they become a set. The set is used until half of its patterns are removed.

A set whose automaton runs out of memory reports no match, without an error. Each set therefore has one more pattern,
which matches everything. If that pattern is missing from the result, the patterns are matched one by one.

Cost: insert and remove O(1), plus a share of compiling the set once; match O(length of the value * sets).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic

from matching.expressions.model import Predicate
from matching.indexes.op_index.operator_index import T, ValueIndex

SET_SIZE = 32
MATCHES_EVERYTHING = ""


class Pattern(Generic[T]):
    __slots__ = ("compiled", "pattern_set", "targets", "text")

    def __init__(self, text: str, compiled: Any) -> None:
        self.text = text
        self.compiled = compiled
        self.targets: dict[int, T] = {}
        self.pattern_set: PatternSet[T] | None = None
        """The set that contains the pattern. None while the pattern is matched by itself."""

    def matches(self, value: str) -> bool:
        return self.compiled.search(value) is not None


class PatternSet(Generic[T]):
    """A fixed sequence of patterns. It is compiled on first use."""

    __slots__ = ("_compiled", "_is_compiled", "live", "patterns")

    def __init__(self, patterns: list[Pattern[T]]) -> None:
        self.patterns = patterns
        self.live = len(patterns)
        """The number of patterns that still have targets. The set still matches the others, without effect."""
        self._compiled: Any = None
        self._is_compiled = False

    def matching(self, value: str) -> list[Pattern[T]]:
        if not self._is_compiled:
            self._compiled = _compile_set([pattern.text for pattern in self.patterns])
            self._is_compiled = True
        found = None if self._compiled is None else self._compiled.Match(value)
        if found is None or len(self.patterns) not in found:
            return [pattern for pattern in self.patterns if pattern.matches(value)]
        return [self.patterns[index] for index in found if index < len(self.patterns)]


def _compile_set(texts: list[str]) -> Any:
    """Compiles a set, with the pattern that matches everything as its last one.

    Returns None if RE2 has not enough memory for it.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    compiled = re2.Set.SearchSet(options)
    try:
        for text in (*texts, MATCHES_EVERYTHING):
            compiled.Add(text)
        compiled.Compile()
    except re2.error:
        # RE2 accepted each pattern alone, so only their combination is too large.
        return None
    return compiled


class Patterns(ValueIndex[T]):
    __slots__ = ("_by_text", "_sets", "_single")

    def __init__(self) -> None:
        self._by_text: dict[str, Pattern[T]] = {}
        self._single: dict[str, Pattern[T]] = {}
        self._sets: dict[PatternSet[T], None] = {}

    def insert(self, predicate: Predicate, target: T) -> None:
        text = str(predicate.values[0])
        if text not in self._by_text:
            self._by_text[text] = Pattern(text, predicate.operand)
            self._add_single(self._by_text[text])
        self._by_text[text].targets[target.number] = target

    def remove(self, predicate: Predicate, target: T) -> None:
        text = str(predicate.values[0])
        pattern = self._by_text[text]
        del pattern.targets[target.number]
        if pattern.targets:
            return
        del self._by_text[text]
        if pattern.pattern_set is None:
            del self._single[text]
            return
        pattern.pattern_set.live -= 1
        if pattern.pattern_set.live * 2 <= SET_SIZE:
            self._dissolve(pattern.pattern_set)

    def match(self, value: str) -> Iterable[T]:
        matching = [pattern for pattern in self._single.values() if pattern.matches(value)]
        for pattern_set in self._sets:
            matching += pattern_set.matching(value)
        hits: list[T] = []
        for pattern in matching:
            hits += pattern.targets.values()
        return hits

    @property
    def nodes(self) -> int:
        return len(self._single) + len(self._sets)

    def _add_single(self, pattern: Pattern[T]) -> None:
        pattern.pattern_set = None
        self._single[pattern.text] = pattern
        if len(self._single) == SET_SIZE:
            pattern_set = PatternSet(list(self._single.values()))
            for member in pattern_set.patterns:
                member.pattern_set = pattern_set
            self._sets[pattern_set] = None
            self._single.clear()

    def _dissolve(self, pattern_set: PatternSet[T]) -> None:
        del self._sets[pattern_set]
        for pattern in pattern_set.patterns:
            if pattern.targets:
                self._add_single(pattern)

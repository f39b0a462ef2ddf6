"""CONTAINS: each substring is stored under one of its trigrams.

A value contains a substring only if it contains that trigram. So the trigrams of the value lead to the few substrings
to search for. A substring is stored under the trigram that has the fewest others. A substring that is shorter than
three characters is stored under itself.

Cost: insert O(length); remove O(1); match O(length of the value + substrings that share a trigram with it).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from matching.expressions.model import Predicate
from matching.indexes.op_index.operator_index import T, ValueIndex

GRAM = 3


class Substrings(ValueIndex[T]):
    __slots__ = ("_by_gram", "_gram_lengths", "_gram_of", "_targets")

    def __init__(self) -> None:
        self._targets: dict[str, dict[int, T]] = {}
        """The targets of each substring, by number."""
        self._gram_of: dict[str, str] = {}
        self._by_gram: dict[str, dict[str, None]] = {}
        """The substrings under each gram, in the order of insertion."""
        self._gram_lengths: Counter[int] = Counter()
        """The number of grams of each length. Values are only split into grams of these lengths."""

    def insert(self, predicate: Predicate, target: T) -> None:
        substring = predicate.operand
        if substring not in self._targets:
            self._targets[substring] = {}
            self._add_substring(substring)
        self._targets[substring][target.number] = target

    def remove(self, predicate: Predicate, target: T) -> None:
        substring = predicate.operand
        del self._targets[substring][target.number]
        if not self._targets[substring]:
            del self._targets[substring]
            self._remove_substring(substring)

    def match(self, value: str) -> Iterable[T]:
        hits: list[T] = []
        for length in self._gram_lengths:
            for gram in _grams(value, length):
                for substring in self._by_gram.get(gram, ()):
                    if substring in value:
                        hits += self._targets[substring].values()
        return hits

    @property
    def nodes(self) -> int:
        return len(self._by_gram)

    def _add_substring(self, substring: str) -> None:
        grams = _grams(substring, min(GRAM, len(substring)))
        gram = min(grams, key=lambda each: len(self._by_gram.get(each, ())))
        if gram not in self._by_gram:
            self._by_gram[gram] = {}
            self._gram_lengths[len(gram)] += 1
        self._by_gram[gram][substring] = None
        self._gram_of[substring] = gram

    def _remove_substring(self, substring: str) -> None:
        gram = self._gram_of.pop(substring)
        del self._by_gram[gram][substring]
        if self._by_gram[gram]:
            return
        del self._by_gram[gram]
        self._gram_lengths[len(gram)] -= 1
        if not self._gram_lengths[len(gram)]:
            del self._gram_lengths[len(gram)]


def _grams(text: str, length: int) -> dict[str, None]:
    """The distinct substrings of one length, in the order of occurrence. Every text has one empty substring."""
    return dict.fromkeys(text[start : start + length] for start in range(len(text) - length + 1))

"""The attribute filter: a candidate that asks for an attribute which the publication lacks is not evaluated [BET 6.2].

A signature has a bit for each attribute, chosen by its hash; a subscription can match only if all its bits are among
the publication's. Several attributes may share a bit, so what passes is still verified.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from matching.indexes.be_tree.evaluation import Groups
from matching.indexes.be_tree.nodes import LeafNode


class CandidateFilter(ABC):
    """Between the leaves that a publication reaches and the evaluation of what is in them."""

    @abstractmethod
    def add_dimension(self, dimension: int, attribute: str) -> None:
        """From now on subscriptions use this dimension."""

    @abstractmethod
    def remove_dimension(self, dimension: int) -> None:
        """No subscription uses it any more."""

    @abstractmethod
    def signature(self, dimensions: Iterable[int]) -> int:
        """Of a subscription, or of a publication, on these dimensions."""

    @abstractmethod
    def filter_leaves(self, leaves: Sequence[LeafNode], dimensions: Iterable[int]) -> Groups:
        """The subscriptions of each leaf that the publication's dimensions do not rule out."""


class NoFilter(CandidateFilter):
    def add_dimension(self, dimension: int, attribute: str) -> None:
        """Nothing to learn."""

    def remove_dimension(self, dimension: int) -> None:
        """Nothing to forget."""

    def signature(self, dimensions: Iterable[int]) -> int:
        return 0

    def filter_leaves(self, leaves: Sequence[LeafNode], dimensions: Iterable[int]) -> Groups:
        return [leaf.subscriptions.values() for leaf in leaves]


class BloomFilter(CandidateFilter):
    def __init__(self, width: int) -> None:
        self._width = width
        self._bits: dict[int, int] = {}

    def add_dimension(self, dimension: int, attribute: str) -> None:
        self._bits[dimension] = 1 << (sdbm_hash(attribute) % self._width)

    def remove_dimension(self, dimension: int) -> None:
        del self._bits[dimension]

    def signature(self, dimensions: Iterable[int]) -> int:
        signature = 0
        for dimension in dimensions:
            signature |= self._bits[dimension]
        return signature

    def filter_leaves(self, leaves: Sequence[LeafNode], dimensions: Iterable[int]) -> Groups:
        missing = ~self.signature(dimensions)
        return [
            [subscription for subscription in leaf.subscriptions.values() if not subscription.signature & missing]
            for leaf in leaves
        ]


def sdbm_hash(text: str) -> int:
    """The hash of the sdbm library, on 32 bits."""
    code = 0
    for byte in text.encode():
        code = (byte + (code << 6) + (code << 16) - code) & 0xFFFFFFFF
    return code

"""The attribute filter: it drops candidates that require an attribute which the publication lacks [BET 6.2].

A signature has a bit for each attribute, selected by its hash. A subscription can match only if all its bits are set in
the signature of the publication. Several attributes may share a bit, so the remaining candidates are still verified.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from matching.indexes.be_tree.evaluation import Groups
from matching.indexes.be_tree.nodes import LeafNode


class CandidateFilter(ABC):
    """Filters the subscriptions in the leaves that a publication reaches, before they are evaluated."""

    @abstractmethod
    def add_dimension(self, dimension: int, attribute: str) -> None:
        """Adds a dimension that subscriptions use from now on."""

    @abstractmethod
    def remove_dimension(self, dimension: int) -> None:
        """Removes a dimension that no subscription uses any more."""

    @abstractmethod
    def signature(self, dimensions: Iterable[int]) -> int:
        """The signature of a subscription or a publication with these dimensions."""

    @abstractmethod
    def filter_leaves(self, leaves: Sequence[LeafNode], dimensions: Iterable[int]) -> Groups:
        """The subscriptions of each leaf that the publication's dimensions do not rule out."""


class NoFilter(CandidateFilter):
    def add_dimension(self, dimension: int, attribute: str) -> None:
        """Does nothing."""

    def remove_dimension(self, dimension: int) -> None:
        """Does nothing."""

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
    """The hash function of the sdbm library, on 32 bits."""
    code = 0
    for byte in text.encode():
        code = (byte + (code << 6) + (code << 16) - code) & 0xFFFFFFFF
    return code

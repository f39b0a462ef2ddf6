"""A node of the A-Tree: a predicate, a subexpression or a whole expression [ATREE 4.1].

Two relations lead downwards. `operands` is what the node means: the distinct expressions that its connective combines,
none of them an AND in an AND or an OR in an OR. `children` is how the node is built: operands, or nodes of the same
connective that stand for several operands at once. The children's operands together are always the node's own.
"""

from __future__ import annotations

from enum import StrEnum

from matching.expressions.model import Predicate, Truth


class Kind(StrEnum):
    PREDICATE = "predicate"
    AND = "and"
    OR = "or"
    NOT = "not"
    XOR = "xor"
    XNOR = "xnor"


ASSOCIATIVE = frozenset((Kind.AND, Kind.OR))
NEEDS_FALSITY = frozenset((Kind.NOT, Kind.XOR, Kind.XNOR))
"""Connectives that can be true because an operand is false."""


class Node:
    __slots__ = (
        "children",
        "falsity_listeners",
        "identity",
        "ids",
        "is_watched",
        "kind",
        "level",
        "listeners",
        "needs_falsity",
        "operands",
        "parents",
        "predicate",
        "queued",
        "seen",
        "serial",
        "share",
        "share_known_at",
        "sources",
        "to_check",
        "truth",
        "uses",
    )

    def __init__(
        self, kind: Kind, predicate: Predicate | None, operands: tuple[Node, ...], identity: int, serial: int
    ) -> None:
        self.kind = kind
        self.predicate = predicate
        self.operands = operands
        """By serial. Without any, an AND is TRUE and an OR is FALSE."""
        self.identity = identity
        self.serial = serial
        self.share = 1.0
        """A guess at the share of publications that make a connective true."""
        self.share_known_at = 0
        """How many uses of predicates there were when the share was guessed."""

        self.ids: dict[int, None] = {}
        """The subscriptions that are this expression."""
        self.uses = 0
        """Its subscriptions, and the nodes that have it as an operand; at zero, the node goes."""

        self.children: tuple[Node, ...] = ()
        self.parents: dict[Node, None] = {}
        self.level = 1

        self.listeners: dict[Node, None] = {}
        """The parents that are told this node's result."""
        self.falsity_listeners = 0
        """How many of the listeners ask whether the node is false, and not only whether it is true."""
        self.sources: tuple[Node, ...] = ()
        """The children to which this node listens."""
        self.needs_falsity = False
        self.is_watched = False
        """Has subscriptions or listeners: its result is pushed. The result of any other node is pulled."""
        self.to_check: tuple[Node, ...] = ()
        """The children that must be true besides the one that spoke first."""

        self.queued = 0
        """The last publication for which the node was put into its level's queue."""
        self.seen = 0
        """The last publication for which `truth` is known. Nothing is cleaned up after a publication."""
        self.truth: Truth = None

    @property
    def is_inner(self) -> bool:
        return bool(self.operands)

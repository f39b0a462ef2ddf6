"""A node of the A-Tree: a predicate, a subexpression or a whole expression [ATREE 4.1].

A node has two relations to lower nodes. `operands` defines its meaning: the distinct expressions that its connective
combines. An AND has no AND as an operand, and an OR has no OR. `children` defines how the node is evaluated: from
operands, or from nodes of the same connective that combine several operands. The operands of all children together are
always the operands of the node.
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
        """In the order of serials. An AND without operands is TRUE, an OR without operands is FALSE."""
        self.identity = identity
        self.serial = serial
        self.share = 1.0
        """The estimated share of publications for which a connective is true."""
        self.share_known_at = 0
        """The number of uses of predicates when the share was estimated."""

        self.ids: dict[int, None] = {}
        """The subscriptions with this expression."""
        self.uses = 0
        """The number of subscriptions, and of nodes that have it as an operand. At zero the node is removed."""

        self.children: tuple[Node, ...] = ()
        self.parents: dict[Node, None] = {}
        self.level = 1

        self.listeners: dict[Node, None] = {}
        """The parents that this node's result is pushed to."""
        self.falsity_listeners = 0
        """The number of listeners that also need to know whether the node is false."""
        self.sources: tuple[Node, ...] = ()
        """The children that this node listens to."""
        self.needs_falsity = False
        """Whether this node needs the false results of its sources, too."""
        self.is_watched = False
        """Whether the node has subscriptions or listeners. Its result is then pushed. Others are pulled."""
        self.to_check: tuple[Node, ...] = ()
        """The children to check when a source is true. All of them must be true for the node to be true."""

        self.queued = 0
        """The last publication for which the node was added to the queue of its level."""
        self.seen = 0
        """The last publication for which `truth` is known. It makes a cleanup after each publication unnecessary."""
        self.truth: Truth = None

    @property
    def is_inner(self) -> bool:
        return bool(self.operands)

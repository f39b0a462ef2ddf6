"""IDs that do not depend on the order of operands, and the table from IDs to nodes [ATREE 4.2.1].

A predicate's ID is a hash of what it says; AND adds its operands' IDs, OR multiplies them, NOT, XOR and XNOR work on
the bits. So expressions that differ in the order or the grouping of operands have one ID.

The converse does not hold: `a OR b AND c` and `(a OR b) AND (a OR c)` have one ID by arithmetic, and any two
expressions may by chance. An ID only says where to look; the nodes found there are compared by what they combine.

Departs from [ATREE 4.2.1]: IDs are numbers modulo a prime and not machine words, because a product of even words
loses a bit with each factor and is soon zero.
"""

from __future__ import annotations

import functools
import hashlib
import operator
from collections.abc import Iterator, Sequence

from matching.expressions.model import Predicate
from matching.expressions.values import Value
from matching.indexes.a_tree.node import Kind, Node

MERSENNE_PRIME = 2**61 - 1


class Identities:
    def __init__(self, modulus: int = MERSENNE_PRIME) -> None:
        """A small modulus makes IDs collide, which costs time and changes no answer."""
        self._modulus = modulus

    def of_predicate(self, predicate: Predicate) -> int:
        values = [_text(value) for value in predicate.values]
        content = repr((predicate.attribute, str(predicate.operator), str(predicate.type_class), values))
        digest = hashlib.blake2b(content.encode(), digest_size=8).digest()
        return int.from_bytes(digest) % self._modulus

    def of_connective(self, kind: Kind, operands: Sequence[Node]) -> int:
        ids = [operand.identity for operand in operands]
        match kind:
            case Kind.AND:
                return sum(ids) % self._modulus
            case Kind.OR:
                return functools.reduce(lambda product, factor: product * factor % self._modulus, ids, 1)
            case Kind.XOR:
                return functools.reduce(operator.xor, ids) % self._modulus
            case _:
                return ~functools.reduce(operator.xor, ids) % self._modulus


def _text(value: Value) -> str:
    """One text for numbers that are equal: 1 and 1.0, 0.0 and -0.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return repr(value)


class NodeTable:
    """All nodes by ID; nodes whose IDs collide stand side by side."""

    def __init__(self) -> None:
        self._nodes: dict[int, list[Node]] = {}
        self._size = 0

    def __iter__(self) -> Iterator[Node]:
        return (node for colliding in self._nodes.values() for node in colliding)

    def __len__(self) -> int:
        return self._size

    def find_predicate(self, identity: int, predicate: Predicate) -> Node | None:
        for node in self._nodes.get(identity, ()):
            if node.predicate is not None and (node.predicate is predicate or node.predicate.key == predicate.key):
                return node
        return None

    def find_connective(self, identity: int, kind: Kind, operands: tuple[Node, ...]) -> Node | None:
        """Operands are unique nodes in a fixed order: comparing them one level deep compares the expressions."""
        for node in self._nodes.get(identity, ()):
            if node.kind is kind and node.operands == operands:
                return node
        return None

    def add(self, node: Node) -> None:
        self._nodes.setdefault(node.identity, []).append(node)
        self._size += 1

    def remove(self, node: Node) -> None:
        colliding = self._nodes[node.identity]
        colliding.remove(node)
        if not colliding:
            del self._nodes[node.identity]
        self._size -= 1

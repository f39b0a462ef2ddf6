"""IDs that do not depend on the order of operands, and the table from IDs to nodes [ATREE 4.2.1].

The ID of a predicate is a hash of its content. AND adds the IDs of its operands, and OR multiplies them. NOT, XOR and
XNOR combine the bits. Expressions that differ only in the order or the grouping of operands therefore have the same ID.

Expressions with the same ID may still differ. `a OR b AND c` and `(a OR b) AND (a OR c)` have the same ID by
arithmetic. Any two expressions may have the same ID by chance. An ID is only a key for the lookup. The nodes with this
ID are then compared by kind and operands.

Departs from [ATREE 4.2.1]: IDs are numbers modulo a prime, not machine words. A product of even words loses a bit with
each factor and soon becomes zero.
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
    """Identities of expressions that do not depend on the order of operands, and the table of nodes."""

    def __init__(self, modulus: int = MERSENNE_PRIME) -> None:
        """With a small modulus IDs collide. This costs time but does not change results."""
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
    """The same text for equal numbers, such as 1 and 1.0, or 0.0 and -0.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return repr(value)


class NodeTable:
    """All nodes by ID. Nodes whose IDs collide are in one list."""

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
        """Finds a node by its operands. They are unique nodes in a fixed order, so comparing one level is enough."""
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

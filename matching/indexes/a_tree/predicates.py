"""Predicate matching: finds the results of the watched predicates for one publication [ATREE 5].

Equalities and lists of values are points. A PS-Tree stores points well: a leaf has the nodes of the predicates that
cover its space, and no insertion copies a node. Suffixes, substrings and patterns are not sets of ranges. They are
evaluated one by one if the publication has a string.

Departs from [THESIS 6, PST 4]: ranges and complements of points are not in PS-Trees but in `Ranges`. A PS-Tree copies a
predicate to every space that it covers. Among ten thousand predicates such as `price > 3`, each covers thousands of
spaces, and inserting all of them takes quadratic time and memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from matching.expressions.intervals import ValueSet, is_exact, satisfying
from matching.expressions.model import Operator, Predicate, Truth
from matching.expressions.values import CLASS_BY_TYPE, Dimension, TypeClass, Value
from matching.indexes.a_tree.node import Kind, Node
from matching.indexes.a_tree.ranges import Ranges
from matching.indexes.pst.ps_tree import Leaf, PSTrees


class _NodeLeaf(Leaf):
    __slots__ = ("nodes",)

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[Node, None] = {}

    def _copy(self) -> _NodeLeaf:
        copy = _NodeLeaf()
        copy.nodes.update(self.nodes)
        return copy


class SatisfiedPredicates:
    """Finds the predicates that are true. All others are false or undefined, and no caller needs to know which."""

    def __init__(self) -> None:
        self._constants: dict[Node, None] = {}
        self._present: dict[str, Node] = {}
        self._absent: dict[str, Node] = {}
        self._points = PSTrees(_NodeLeaf)
        self._ranges: dict[Dimension, Ranges] = {}
        self._evaluated: dict[str, dict[Node, None]] = {}

    def add(self, node: Node) -> None:
        predicate = node.predicate
        if predicate is None:
            if node.kind is Kind.AND:
                self._constants[node] = None
        elif predicate.operator is Operator.EXISTS:
            self._present[predicate.attribute] = node
        elif predicate.operator is Operator.NOT_EXISTS:
            self._absent[predicate.attribute] = node
        elif not is_exact(predicate):
            self._evaluated.setdefault(predicate.attribute, {})[node] = None
        else:
            self._add_values(predicate.dimension, satisfying(predicate), node)

    def remove(self, node: Node) -> None:
        predicate = node.predicate
        if predicate is None:
            self._constants.pop(node, None)
        elif predicate.operator is Operator.EXISTS:
            del self._present[predicate.attribute]
        elif predicate.operator is Operator.NOT_EXISTS:
            del self._absent[predicate.attribute]
        elif not is_exact(predicate):
            nodes = self._evaluated[predicate.attribute]
            del nodes[node]
            if not nodes:
                del self._evaluated[predicate.attribute]
        else:
            self._remove_values(predicate.dimension, satisfying(predicate), node)

    def _add_values(self, dimension: Dimension, values: ValueSet, node: Node) -> None:
        if _are_points(values):
            for leaf in self._points.acquire(dimension).insert(values):
                leaf.nodes[node] = None
            return
        if dimension not in self._ranges:
            self._ranges[dimension] = Ranges(values)
        self._ranges[dimension].add(values, node)

    def _remove_values(self, dimension: Dimension, values: ValueSet, node: Node) -> None:
        if _are_points(values):
            tree = self._points.get(dimension)
            assert tree is not None
            for leaf in tree.delete(values):
                del leaf.nodes[node]
            tree.merge(values)
            self._points.release(tree)
            return
        self._ranges[dimension].remove(values, node)
        if self._ranges[dimension].is_empty:
            del self._ranges[dimension]

    def satisfied(self, publication: dict[str, Value]) -> tuple[list[Node], int]:
        """Returns the nodes of true predicates, and the number of predicates that were evaluated and not true."""
        found = list(self._constants)
        for leaf in self._points.locate(publication).values():
            found += leaf.nodes
        failed = 0
        for attribute, value in publication.items():
            ranges = self._ranges.get((attribute, CLASS_BY_TYPE[type(value)]))
            if ranges is not None:
                found += ranges.containing(value)
            if attribute in self._present:
                found.append(self._present[attribute])
            if attribute in self._evaluated and isinstance(value, str):
                candidates = self._evaluated[attribute]
                true = [node for node in candidates if _predicate(node).is_true_for(value)]
                failed += len(candidates) - len(true)
                found += true
        found += [node for attribute, node in self._absent.items() if attribute not in publication]
        return found, failed

    def shape(self) -> Mapping[str, int]:
        return {
            "ps-trees": len(self._points),
            "spaces": sum(len(tree.leaves) for tree in self._points),
            "dimensions with ranges": len(self._ranges),
        }


def _are_points(values: ValueSet) -> bool:
    return values.points(at_most=len(values.intervals)) is not None


class DecidedPredicates:
    """Finds the predicates that are true and those that are false: all on the dimensions that a publication has."""

    def __init__(self) -> None:
        self._constants: dict[Node, None] = {}
        self._presence: dict[Node, None] = {}
        self._dimensions: dict[Dimension, dict[Node, None]] = {}

    def add(self, node: Node) -> None:
        if node.predicate is None:
            self._constants[node] = None
        elif node.predicate.type_class is TypeClass.ANY:
            self._presence[node] = None
        else:
            self._dimensions.setdefault(node.predicate.dimension, {})[node] = None

    def remove(self, node: Node) -> None:
        if node.predicate is None:
            del self._constants[node]
        elif node.predicate.type_class is TypeClass.ANY:
            del self._presence[node]
        else:
            nodes = self._dimensions[node.predicate.dimension]
            del nodes[node]
            if not nodes:
                del self._dimensions[node.predicate.dimension]

    def decided(self, publication: dict[str, Value]) -> Iterable[tuple[Node, Truth]]:
        """Iterates over the nodes of decided predicates and constants, each with its truth."""
        for node in self._constants:
            yield node, node.kind is Kind.AND
        for node in self._presence:
            yield node, _predicate(node).evaluate(publication)
        for attribute, value in publication.items():
            for node in self._dimensions.get((attribute, CLASS_BY_TYPE[type(value)]), ()):
                yield node, _predicate(node).is_true_for(value)

    def shape(self) -> Mapping[str, int]:
        return {"dimensions": len(self._dimensions)}


def _predicate(node: Node) -> Predicate:
    assert node.predicate is not None
    return node.predicate

"""The A-Tree as an index: see the package's docstring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from matching.expressions.model import Expression
from matching.expressions.values import Value
from matching.indexes.a_tree.assembly import Assembler
from matching.indexes.a_tree.graph import Graph
from matching.indexes.a_tree.identities import Identities
from matching.indexes.a_tree.node import Kind, Node
from matching.indexes.a_tree.organisation import (
    CoverReorganisation,
    Covers,
    CoverSelfAdjustment,
    NoCovers,
    NoReorganisation,
    NoSelfAdjustment,
    Organisation,
)
from matching.indexes.a_tree.propagation import FullPropagation, OnDemandPropagation, PredicateIndex
from matching.indexes.a_tree.selectivity import Selectivity
from matching.indexes.a_tree.three_valued import ThreeValued
from matching.indexes.a_tree.zero_suppression import ZeroSuppressed
from matching.matcher import Matcher, SearchResult


class _Predicates(PredicateIndex, Protocol):
    def shape(self) -> Mapping[str, int]: ...


class _Results(Protocol):
    """The results that are propagated: only true ones, or true and false ones."""

    @property
    def predicates(self) -> _Predicates: ...

    def stored_form(self, expression: Expression) -> Expression:
        """The equivalent expression that the graph stores."""
        ...

    def search(self, publication: dict[str, Value]) -> SearchResult: ...


class ATree(Matcher):
    """The A-Tree as an index; see the package for its idea."""

    name = "a-tree"

    def __init__(
        self,
        *,
        reorganisation: bool = True,
        self_adjustment: bool = True,
        zero_suppression: bool = True,
        propagation_on_demand: bool = True,
        identities: Identities | None = None,
    ) -> None:
        """The options switch optimisations on or off. They do not change results."""
        super().__init__()
        self._results: _Results = ZeroSuppressed() if zero_suppression else ThreeValued()
        propagation_class = OnDemandPropagation if propagation_on_demand else FullPropagation
        covers = Covers() if reorganisation or self_adjustment else NoCovers()
        organisation = Organisation(
            covers,
            CoverReorganisation(covers) if reorganisation else NoReorganisation(),
            CoverSelfAdjustment(covers) if self_adjustment else NoSelfAdjustment(),
        )
        selectivity = Selectivity()
        propagation = propagation_class(self._results.predicates, selectivity)
        self._graph = Graph(identities or Identities(), organisation, propagation, selectivity)
        self._assembler = Assembler(self._graph)
        self._roots: dict[int, Node] = {}

    def nodes(self) -> Iterator[Node]:
        return iter(self._graph)

    def root(self, id: int) -> Node:
        """The node of a subscription's expression."""
        return self._roots[id]

    def _insert(self, id: int, expression: Expression) -> None:
        root = self._assembler.assemble(self._results.stored_form(expression))
        self._graph.subscribe(root, id)
        self._roots[id] = root

    def _delete(self, id: int, expression: Expression) -> None:
        self._graph.unsubscribe(self._roots.pop(id), id)

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        return self._results.search(publication)

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        nodes = list(self._graph)
        leaves = sum(node.kind is Kind.PREDICATE for node in nodes)
        roots = sum(node.kind is not Kind.PREDICATE and not node.parents for node in nodes)
        details = {
            "l-nodes": leaves,
            "i-nodes": len(nodes) - leaves - roots,
            "r-nodes": roots,
            "edges": sum(len(node.children) for node in nodes),
            "distinct expressions": sum(bool(node.ids) for node in nodes),
            "watched nodes": sum(node.is_watched for node in nodes),
            **self._results.predicates.shape(),
        }
        return len(nodes), max((node.level for node in nodes), default=0), details

"""OpIndex: subscriptions by pivot attribute, their predicates by operator, matches by counting [OPI].

Every member has a pivot, the rarest of the dimensions that a matching publication must have. A publication opens the
partitions of its dimensions. Each partition stores predicates by operator, in an index that suits the operator. Every
true predicate is counted for its member. A conjunction matches if all its predicates were counted. The index stores
conjunctions, DNF and CNF. It converts any other expression to the normal form that takes fewer entries [OPI 6.1].

A subscription that the empty publication satisfies (TRUE, or only NOT EXISTS) has no pivot. It is evaluated for every
publication.

Cost, with p pairs in a publication: match O(p * p * log(segment) + true predicates in opened partitions). Signatures
save most of the p * p searches. Add and remove are O(predicates * log(predicates of the partition)).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from matching.expressions.model import Expression, Operator
from matching.expressions.normal_forms import DEFAULT_CLAUSES
from matching.expressions.values import Value
from matching.indexes.op_index.counting import Tally
from matching.indexes.op_index.dimensions import Dimensions, Layout
from matching.indexes.op_index.forms import ConjunctiveForm, DisjunctiveForm, smaller_form
from matching.indexes.op_index.members import CnfSubscription, Conjunction, Disjunction
from matching.indexes.op_index.operator_index import OperatorIndexFactory
from matching.indexes.op_index.operators import OPERATOR_INDEXES
from matching.indexes.op_index.partitions import OperatorTable, Partition, Partitions
from matching.matcher import Matcher, SearchResult


class OpIndex(Matcher):
    """OpIndex as an index; see the package for its idea."""

    name = "op-index"

    def __init__(
        self,
        segment_size: int = 64,
        signature_bits: int = 256,
        clause_limit: int = DEFAULT_CLAUSES,
        operator_indexes: Mapping[Operator, OperatorIndexFactory] = OPERATOR_INDEXES,
    ) -> None:
        """With `signature_bits=1` all signatures are equal, and no segment is skipped [OPI 7, OpIndex-BS].

        `operator_indexes` replaces the index of an operator: see `matching.indexes.op_index.operator_index`.
        """
        super().__init__()
        _check_at_least("segment_size", segment_size, 2)
        _check_at_least("signature_bits", signature_bits, 1)
        _check_at_least("clause_limit", clause_limit, 1)
        layout = Layout(segment_size, signature_bits)
        table = OperatorTable(operator_indexes, layout)
        self._clause_limit = clause_limit
        self._numbers = itertools.count()
        self._dimensions = Dimensions(layout)
        self._conjunctions: Partitions[Conjunction] = Partitions(table, self._dimensions.frequency)
        self._cnf: Partitions[Disjunction] = Partitions(table, self._dimensions.frequency)
        self._conjunctions_by_id: dict[int, list[Conjunction]] = {}
        self._cnf_by_id: dict[int, CnfSubscription] = {}
        self._without_pivot: dict[int, Expression] = {}
        self._segments_searched = 0

    @property
    def segments_searched(self) -> int:
        """The number of segments of predicate lists that were searched so far. Signatures reduce it."""
        return self._segments_searched

    def _insert(self, id: int, expression: Expression) -> None:
        if expression.matches({}):
            self._without_pivot[id] = expression
            return
        match smaller_form(self.name, expression, self._clause_limit):
            case DisjunctiveForm(clauses):
                conjunctions = [Conjunction(id, next(self._numbers), each, self._dimensions) for each in clauses]
                self._conjunctions_by_id[id] = conjunctions
                for conjunction in conjunctions:
                    self._conjunctions.insert(conjunction)
            case ConjunctiveForm(clauses):
                self._cnf_by_id[id] = CnfSubscription(id, self._numbers, clauses, self._dimensions)
                self._cnf.insert(self._cnf_by_id[id])

    def _delete(self, id: int, expression: Expression) -> None:
        if id in self._without_pivot:
            del self._without_pivot[id]
        elif id in self._cnf_by_id:
            subscription = self._cnf_by_id.pop(id)
            self._cnf.remove(subscription)
            self._dimensions.release(subscription.mentioned)
        else:
            for conjunction in self._conjunctions_by_id.pop(id):
                self._conjunctions.remove(conjunction)
                self._dimensions.release(conjunction.mentioned)

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        probes = self._dimensions.probe(publication)
        tally = Tally(publication)
        tally.count(self._conjunctions.search(probes))
        tally.mark(self._cnf.search(probes))
        tally.evaluate(self._without_pivot)
        self._segments_searched += probes.segments_searched
        return tally.found()

    def pivots(self, id: int) -> list[list[str]]:
        """The pivot attributes of each member of the subscription."""
        members = [self._cnf_by_id[id]] if id in self._cnf_by_id else self._conjunctions_by_id.get(id, [])
        return [[pivot.dimension[0] for pivot in member.pivots] for member in members]

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        partitions: list[Partition[Conjunction] | Partition[Disjunction]] = []
        partitions += self._conjunctions.partitions()
        partitions += self._cnf.partitions()
        lists = [operator_list for partition in partitions for operator_list in partition.lists.values()]
        details = {
            "dimensions": len(self._dimensions),
            "pivots": len(partitions),
            "operator lists": len(lists),
            "segments": sum(each.index.nodes for each in lists),
            "entries": sum(each.predicates for each in lists),
            "CNF subscriptions": len(self._cnf_by_id),
            "without pivot": len(self._without_pivot),
        }
        nodes = len(partitions) + details["operator lists"] + details["segments"] + len(self._without_pivot)
        return nodes, 3 if partitions else min(1, nodes), details


def _check_at_least(option: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{option} is {value}; it must be at least {least}")

"""The default index: each expression goes to the index that suits it.

Conjunctions, and the conjunctions of a small disjunctive normal form, go to a conjunctive index; what is left goes
to an index for arbitrary expressions. A subscription that was split matches when any of its conjunctions does.
"""

from __future__ import annotations

from collections.abc import Mapping

from matching.matcher import Found, Matcher
from matching.model import Expression
from matching.normal_forms import Clause, as_conjunction, count_disjunctive_clauses, disjunctive_clauses
from matching.pst_bloom import PSTBloom
from matching.registry import create
from matching.values import Value

MOST_CLAUSES = 4
"""Beyond this many conjunctions, an index that shares subexpressions does less work than one that repeats them."""


class Auto(Matcher):
    name = "auto"

    def __init__(self, arbitrary: str = "a-tree") -> None:
        """`arbitrary` names the index for expressions that are neither conjunctions nor small disjunctions of them."""
        super().__init__()
        self._conjunctive = PSTBloom()
        self._arbitrary = create(arbitrary)
        self._pieces: dict[int, range] = {}
        self._owners: dict[int, int] = {}
        self._next_piece = 0

    def _insert(self, id: int, expression: Expression) -> None:
        clauses = _split(expression)
        if clauses is None:
            self._arbitrary.add(id, expression)
            return
        pieces = range(self._next_piece, self._next_piece + len(clauses))
        for piece, clause in zip(pieces, clauses, strict=True):
            self._conjunctive.insert_clause(piece, clause)
            self._owners[piece] = id
        self._pieces[id] = pieces
        self._next_piece = pieces.stop

    def _delete(self, id: int, expression: Expression) -> None:
        if id not in self._pieces:
            self._arbitrary.remove(id)
            return
        for piece in self._pieces.pop(id):
            self._conjunctive.delete_clause(piece)
            del self._owners[piece]

    def _search(self, publication: dict[str, Value]) -> Found:
        pieces = self._conjunctive._search(publication)
        rest = self._arbitrary._search(publication)
        ids = dict.fromkeys(self._owners[piece] for piece in pieces.ids)
        return Found(
            [*ids, *rest.ids], pieces.candidates + rest.candidates, evaluated=pieces.evaluated + rest.evaluated
        )

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        nodes, levels, _ = self._conjunctive._shape()
        other_nodes, other_levels, _ = self._arbitrary._shape()
        details = {
            "conjunctions": len(self._owners),
            "split subscriptions": sum(len(pieces) > 1 for pieces in self._pieces.values()),
            "arbitrary expressions": len(self._arbitrary),
        }
        return nodes + other_nodes, max(levels, other_levels), details


def _split(expression: Expression) -> tuple[Clause, ...] | None:
    """The expression's conjunctions when they are few."""
    clause = as_conjunction(expression)
    if clause is not None:
        return (clause,)
    if count_disjunctive_clauses(expression) <= MOST_CLAUSES:
        return disjunctive_clauses(expression, MOST_CLAUSES)
    return None

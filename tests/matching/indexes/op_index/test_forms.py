"""The choice of a normal form in OpIndex: sizes are counted correctly without building. The smaller form is used."""

from __future__ import annotations

from hypothesis import given, settings

from matching.errors import ExpressionTooLargeError
from matching.expressions.model import And, Expression, Operator, Or, Predicate
from matching.expressions.normal_forms import Clause, conjunctive_clauses, disjunctive_clauses, negation_normal_form
from matching.indexes.op_index.forms import ConjunctiveForm, DisjunctiveForm, FormSize, form_size, smaller_form
from tests.harness.expression_strategies import expressions

ENOUGH = 500
"""The number of clauses up to which a test builds a form."""


def distinct(number: int) -> Predicate:
    return Predicate(f"a{number}", Operator.EQ, (1,))


def size_of(clauses: tuple[Clause, ...]) -> FormSize:
    return FormSize(len(clauses), sum(map(len, clauses)), min(map(len, clauses), default=0))


@settings(deadline=None)
@given(expressions(max_leaves=6))
def test_a_counted_size_is_never_below_the_real_one(expression: Expression) -> None:
    """The count is larger if clauses or predicates are duplicates, because counting does not detect these."""
    normal = negation_normal_form(expression)
    for adding, clauses_of in ((Or, disjunctive_clauses), (And, conjunctive_clauses)):
        counted = form_size(normal, adding)
        try:
            real = size_of(clauses_of(normal, ENOUGH))
        except ExpressionTooLargeError:
            continue
        assert counted.clauses >= real.clauses
        assert counted.predicates >= real.predicates
        assert counted.shortest >= real.shortest


def test_without_repetitions_the_counted_size_is_the_real_one() -> None:
    expression = And(
        (
            Or((distinct(1), distinct(2), And((distinct(3), distinct(4))))),
            Or((distinct(5), And((distinct(6), distinct(7), distinct(8))))),
            distinct(9),
        )
    )
    assert form_size(expression, Or) == size_of(disjunctive_clauses(expression)) == FormSize(6, 26, 3)
    assert form_size(expression, And) == size_of(conjunctive_clauses(expression)) == FormSize(6, 13, 1)


def test_the_form_with_fewer_entries_is_chosen() -> None:
    few_conjunctions = Or((And((distinct(1), distinct(2), distinct(3))), And((distinct(4), distinct(5), distinct(6)))))
    assert isinstance(smaller_form("op-index", few_conjunctions, 100), DisjunctiveForm)
    one_sure_pivot = And((Or((distinct(1), distinct(2))), Or((distinct(3), distinct(4))), distinct(5)))
    assert isinstance(smaller_form("op-index", one_sure_pivot, 100), ConjunctiveForm)


def test_a_conjunction_is_one_conjunction() -> None:
    assert smaller_form("op-index", And((distinct(1), distinct(2))), 1) == DisjunctiveForm(
        ((distinct(1), distinct(2)),)
    )

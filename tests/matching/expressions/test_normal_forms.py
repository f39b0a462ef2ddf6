"""Normal forms keep the truth of every expression, including undefined. They stay within the limit or raise."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from matching.errors import ExpressionTooLargeError
from matching.expressions.model import FALSE, TRUE, And, Expression, Not, Operator, Or, Predicate, Truth, Xnor, Xor
from matching.expressions.normal_forms import (
    LARGEST_COUNT,
    as_conjunction,
    conjunctive_clauses,
    count_disjunctive_clauses,
    disjunctive_clauses,
    negation_normal_form,
    to_conjunctive_normal_form,
    to_disjunctive_normal_form,
)
from matching.expressions.values import Value
from tests.harness.expression_strategies import expressions, publications

LIMIT = 300


def flag(number: int, value: bool = True) -> Predicate:
    return Predicate(f"x{number}", Operator.EQ, (value,))


def flags(drawn: random.Random, count: int, share_missing: float = 0.0) -> dict[str, Value]:
    return {f"x{n}": drawn.random() < 0.5 for n in range(count) if drawn.random() >= share_missing}


def chain_of_xors(length: int) -> Expression:
    chain: Expression = flag(0)
    for n in range(1, length):
        chain = Xor(chain, flag(n)) if n % 2 else Xnor(flag(n), chain)
    return chain


def pairs(outer: type[And] | type[Or], inner: type[And] | type[Or], count: int) -> Expression:
    return outer([inner((flag(2 * n), flag(2 * n + 1))) for n in range(count)])


@given(expressions(), publications())
@settings(deadline=None)
def test_negation_normal_form_keeps_the_truth_and_has_and_or_alone(
    expression: Expression, publication: dict[str, Value]
) -> None:
    normal = negation_normal_form(expression)
    assert normal.evaluate(publication) is expression.evaluate(publication)
    assert all(isinstance(node, And | Or | Predicate) for node in normal.nodes())


@given(expressions(max_leaves=8), publications())
@settings(deadline=None)
def test_disjunctive_normal_form_keeps_the_truth(expression: Expression, publication: dict[str, Value]) -> None:
    assume(count_disjunctive_clauses(expression) <= LIMIT)
    clauses = disjunctive_clauses(expression, LIMIT)
    truth = to_disjunctive_normal_form(expression, LIMIT).evaluate(publication)
    assert truth is expression.evaluate(publication)
    assert expression.matches(publication) is any(
        all(predicate.matches(publication) for predicate in clause) for clause in clauses
    )


@given(expressions(max_leaves=8), publications())
@settings(deadline=None)
def test_conjunctive_normal_form_keeps_the_truth(expression: Expression, publication: dict[str, Value]) -> None:
    try:
        clauses = conjunctive_clauses(expression, LIMIT)
    except ExpressionTooLargeError:
        reject()
    truth = to_conjunctive_normal_form(expression, LIMIT).evaluate(publication)
    assert truth is expression.evaluate(publication)
    assert expression.matches(publication) is all(
        any(predicate.matches(publication) for predicate in clause) for clause in clauses
    )


@given(expressions(max_leaves=8))
@settings(deadline=None)
def test_clauses_repeat_neither_predicates_nor_each_other(expression: Expression) -> None:
    count = count_disjunctive_clauses(expression)
    assume(count <= LIMIT)
    clauses = disjunctive_clauses(expression, LIMIT)
    assert len(clauses) <= count
    assert len({frozenset(clause) for clause in clauses}) == len(clauses)
    assert all(len(set(clause)) == len(clause) for clause in clauses)


def test_dropped_repetitions_leave_undefined_undefined() -> None:
    one, other = flag(0), flag(1)
    repeated = Or((And((one, other)), And((other, one, one)), And((one, Not(one)))))
    clauses = disjunctive_clauses(repeated)
    assert [set(clause) for clause in clauses] == [{one, other}, {one, one.negation}]
    for publication in ({}, {"x0": True}, {"x0": False}, {"x1": False}, {"x0": True, "x1": False}):
        truth: Truth = repeated.evaluate(publication)
        assert to_disjunctive_normal_form(repeated).evaluate(publication) is truth
        assert to_conjunctive_normal_form(repeated).evaluate(publication) is truth


def test_a_thousand_nested_xors_become_a_few_thousand_nodes() -> None:
    length = 1000
    chain = chain_of_xors(length)
    normal = negation_normal_form(chain)
    assert len(list(normal.nodes())) <= 8 * length
    assert normal.size > 2**length
    drawn = random.Random(7)
    for share_missing in (0.0, 0.0, 0.0, 0.001):
        publication = flags(drawn, length, share_missing)
        assert normal.evaluate(publication) is chain.evaluate(publication)


def test_an_operand_of_xor_is_shared_and_not_copied() -> None:
    left, right = And((flag(0), flag(1))), And((flag(2), flag(3)))
    distinct = list(negation_normal_form(Or((Xor(left, right), Xnor(right, left)))).nodes())
    assert sum(isinstance(node, Predicate) for node in distinct) == 8
    assert len(distinct) == 8 + 4 + 6 + 1


def test_deep_expressions_are_normalised_without_recursion() -> None:
    deep: Expression = flag(0)
    for level in range(10_000):
        deep = Not(deep) if level % 2 else And((flag(1), deep))
    normal = negation_normal_form(deep)
    for publication in ({}, {"x0": True}, {"x0": True, "x1": True}, {"x0": False, "x1": True}, {"x1": False}):
        assert normal.evaluate(publication) is deep.evaluate(publication)


def test_too_many_clauses_are_refused_before_any_is_built() -> None:
    with pytest.raises(ExpressionTooLargeError, match=r"disjunctive.*over 10\^18.*limit is 1,024") as refusal:
        disjunctive_clauses(pairs(And, Or, 60))
    assert refusal.value.size == 2**60
    assert refusal.value.limit == 1024
    with pytest.raises(ExpressionTooLargeError, match="conjunctive normal form"):
        conjunctive_clauses(pairs(Or, And, 60))
    assert len(conjunctive_clauses(pairs(And, Or, 60))) == 60
    assert len(disjunctive_clauses(pairs(Or, And, 60))) == 60


def test_the_limit_itself_is_allowed() -> None:
    eight = pairs(And, Or, 3)
    assert count_disjunctive_clauses(eight) == 8
    assert len(disjunctive_clauses(eight, limit=8)) == 8
    with pytest.raises(ExpressionTooLargeError, match="is 8, the limit is 7"):
        disjunctive_clauses(eight, limit=7)
    with pytest.raises(ExpressionTooLargeError):
        disjunctive_clauses(chain_of_xors(12))
    assert len(disjunctive_clauses(chain_of_xors(11))) == 1024


def test_a_false_expression_has_no_clauses_however_large_its_parts_are() -> None:
    assert disjunctive_clauses(And((pairs(And, Or, 60), FALSE))) == ()
    assert conjunctive_clauses(Or((pairs(Or, And, 60), TRUE))) == ()
    assert disjunctive_clauses(Or((And((pairs(And, Or, 60), FALSE)), flag(0)))) == ((flag(0),),)


def test_a_count_beyond_all_memory_is_cut_off() -> None:
    squared: Expression = Or((flag(0), flag(1)))
    for _ in range(100):
        squared = And((squared, squared))
    assert count_disjunctive_clauses(squared) == LARGEST_COUNT
    assert count_disjunctive_clauses(And((squared, FALSE))) == 0
    with pytest.raises(ExpressionTooLargeError, match=r"over 10\^"):
        disjunctive_clauses(squared)


def test_a_size_of_thousands_of_digits_is_still_put_in_words() -> None:
    assert str(ExpressionTooLargeError("the tree", 2**20_000, 10)) == "the tree is over 10^6020, the limit is 10"
    assert str(ExpressionTooLargeError("the tree", 1234, 1000)) == "the tree is 1,234, the limit is 1,000"


def test_constants_have_their_normal_forms() -> None:
    assert disjunctive_clauses(TRUE) == ((),)
    assert disjunctive_clauses(FALSE) == ()
    assert conjunctive_clauses(TRUE) == ()
    assert conjunctive_clauses(FALSE) == ((),)
    assert to_disjunctive_normal_form(TRUE) == TRUE
    assert to_disjunctive_normal_form(FALSE) == FALSE
    assert to_conjunctive_normal_form(TRUE) == TRUE
    assert to_conjunctive_normal_form(FALSE) == FALSE


def test_conjunctions_are_recognised_however_they_are_written() -> None:
    a, b, c = flag(0), flag(1), flag(2)
    assert as_conjunction(a) == (a,)
    assert as_conjunction(TRUE) == ()
    assert as_conjunction(And((a, b, a))) == (a, b)
    assert as_conjunction(And((a, And((b, Not(Not(c))))))) == (a, b, c)
    assert as_conjunction(Not(Or((a, Not(b))))) == (a.negation, b)
    assert as_conjunction(Not(a)) == (a.negation,)
    assert as_conjunction(And((TRUE, a))) == (a,)
    assert as_conjunction(Not(FALSE)) == ()


@pytest.mark.parametrize(
    "expression",
    [
        FALSE,
        Or((flag(0), flag(1))),
        Not(And((flag(0), flag(1)))),
        Xor(flag(0), flag(1)),
        And((flag(0), Or((flag(1), flag(2))))),
        And((flag(0), FALSE)),
    ],
)
def test_other_expressions_do_not_count_as_conjunctions(expression: Expression) -> None:
    assert as_conjunction(expression) is None


@given(expressions(max_leaves=6), publications())
@settings(deadline=None)
def test_a_recognised_conjunction_keeps_the_truth(expression: Expression, publication: dict[str, Value]) -> None:
    predicates = as_conjunction(expression)
    if predicates is not None:
        assert And.of(predicates).evaluate(publication) is expression.evaluate(publication)


@given(st.lists(st.booleans(), min_size=1, max_size=5), publications())
@settings(deadline=None)
def test_nested_negations_of_one_predicate_are_a_conjunction(
    negations: list[bool], publication: dict[str, Value]
) -> None:
    expression: Expression = Predicate("a", Operator.LT, (2,))
    for is_negated in negations:
        expression = Not(expression) if is_negated else And((expression, expression))
    predicates = as_conjunction(expression)
    if predicates is not None:
        assert And.of(predicates).evaluate(publication) is expression.evaluate(publication)
    else:
        assert True in negations

"""Predicates and expressions follow Kleene's three-valued logic, compare by structure, and are immutable."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.errors import ExpressionError, ValueRefusedError
from matching.expressions.model import FALSE, TRUE, And, Expression, Not, Operator, Or, Predicate, Truth, Xnor, Xor
from matching.expressions.values import TypeClass, Value
from tests.harness.expression_strategies import expressions, predicates, publications

PUBLICATION: dict[str, Value] = {"a": 1}
LEAVES: dict[Truth, Predicate] = {
    True: Predicate("a", Operator.EQ, (1,)),
    False: Predicate("a", Operator.EQ, (2,)),
    None: Predicate("b", Operator.EQ, (1,)),
}
TRUTHS: tuple[Truth, ...] = (True, False, None)


def opposite(truth: Truth) -> Truth:
    return None if truth is None else not truth


def is_(operator: str, *values: Value) -> Predicate:
    return Predicate("a", Operator(operator), values)


AND_TABLE: dict[tuple[Truth, Truth], Truth] = {
    (True, True): True,
    (True, False): False,
    (True, None): None,
    (False, True): False,
    (False, False): False,
    (False, None): False,
    (None, True): None,
    (None, False): False,
    (None, None): None,
}
OR_TABLE: dict[tuple[Truth, Truth], Truth] = {
    (True, True): True,
    (True, False): True,
    (True, None): True,
    (False, True): True,
    (False, False): False,
    (False, None): None,
    (None, True): True,
    (None, False): None,
    (None, None): None,
}
XOR_TABLE: dict[tuple[Truth, Truth], Truth] = {
    (True, True): False,
    (True, False): True,
    (True, None): None,
    (False, True): True,
    (False, False): False,
    (False, None): None,
    (None, True): None,
    (None, False): None,
    (None, None): None,
}
XNOR_TABLE = {truths: opposite(truth) for truths, truth in XOR_TABLE.items()}


@pytest.mark.parametrize(
    ("connective", "table"),
    [
        (lambda one, other: And((one, other)), AND_TABLE),
        (lambda one, other: one & other, AND_TABLE),
        (lambda one, other: Or((one, other)), OR_TABLE),
        (lambda one, other: one | other, OR_TABLE),
        (Xor, XOR_TABLE),
        (lambda one, other: one ^ other, XOR_TABLE),
        (Xnor, XNOR_TABLE),
    ],
)
def test_binary_connectives_follow_their_truth_tables(
    connective: Callable[[Expression, Expression], Expression], table: dict[tuple[Truth, Truth], Truth]
) -> None:
    for one, other in itertools.product(TRUTHS, TRUTHS):
        combined = connective(LEAVES[one], LEAVES[other])
        assert combined.evaluate(PUBLICATION) is table[one, other], (one, other)
        assert combined.matches(PUBLICATION) is (table[one, other] is True)


def test_not_follows_its_truth_table() -> None:
    for truth in TRUTHS:
        assert Not(LEAVES[truth]).evaluate(PUBLICATION) is opposite(truth)
        assert (~LEAVES[truth]).evaluate(PUBLICATION) is opposite(truth)


@given(st.lists(st.sampled_from(TRUTHS), min_size=2, max_size=6))
@settings(deadline=None)
def test_and_is_the_least_and_or_the_greatest_of_many(truths: list[Truth]) -> None:
    order = {False: 0, None: 1, True: 2}
    children = [LEAVES[truth] for truth in truths]
    assert And(children).evaluate(PUBLICATION) is min(truths, key=lambda truth: order[truth])
    assert Or(children).evaluate(PUBLICATION) is max(truths, key=lambda truth: order[truth])


@given(expressions(), publications())
@settings(deadline=None)
def test_matching_is_evaluating_to_true(expression: Expression, publication: dict[str, Value]) -> None:
    assert expression.matches(publication) is (expression.evaluate(publication) is True)


def test_constants_are_the_empty_connectives() -> None:
    assert TRUE.evaluate({}) is True
    assert FALSE.evaluate({}) is False
    assert And.of([]) == TRUE
    assert Or.of([]) == FALSE
    assert TRUE != FALSE


def test_one_child_alone_is_itself() -> None:
    child = is_("=", 1)
    assert And.of([child]) is child
    assert Or.of([child]) is child
    assert And.of([child, child]).children == (child, child)
    with pytest.raises(ExpressionError, match=r"use And\.of"):
        And([child])


@pytest.mark.parametrize(
    ("predicate", "value", "truth"),
    [
        (is_("=", 2**53 + 1), float(2**53), False),
        (is_("=", 2**53), float(2**53), True),
        (is_(">", float(2**53)), 2**53 + 1, True),
        (is_("=", 2**63 - 1), 2.0**63, False),
        (is_("<", 2.0**63), 2**63 - 1, True),
        (is_("IN", 2**53 + 1, 7), float(2**53), False),
        (is_("IN", 2**53, 7), float(2**53), True),
        (is_("BETWEEN", float(2**53), 2**53 + 1), 2**53 + 1, True),
        (is_("NOT BETWEEN", 0, 2.0**53), 2**53 + 1, True),
        (is_("=", 0), -0.0, True),
        (is_("<", 0), -0.0, False),
        (is_(">", 1e308), math.inf, True),
        (is_("!=", 0.1), 0.1, False),
    ],
)
def test_numbers_compare_by_exact_value(predicate: Predicate, value: Value, truth: bool) -> None:
    assert predicate.evaluate({"a": value}) is truth


@pytest.mark.parametrize("operator", ["=", "!=", "IN", "NOT IN"])
def test_true_is_not_one(operator: str) -> None:
    number, boolean = is_(operator, 1), is_(operator, True)
    assert number != boolean
    assert boolean.type_class is TypeClass.BOOLEAN
    assert number.evaluate({"a": True}) is None
    assert boolean.evaluate({"a": 1}) is None
    assert boolean.evaluate({"a": 1.0}) is None
    assert boolean.evaluate({"a": True}) is (operator in ("=", "IN"))


@given(predicates())
@settings(deadline=None)
def test_another_class_or_no_value_leaves_a_predicate_undefined(predicate: Predicate) -> None:
    for value in (1, 1.5, "x", True):
        truth = predicate.evaluate({predicate.attribute: value})
        is_defined = predicate.type_class in (TypeClass.ANY, Predicate("a", Operator.EQ, (value,)).type_class)
        assert (truth is not None) is is_defined
    assert (predicate.evaluate({}) is None) is (predicate.type_class is not TypeClass.ANY)


def test_existence_is_never_undefined() -> None:
    for value in (0, "", False, math.inf):
        assert is_("EXISTS").evaluate({"a": value}) is True
        assert is_("NOT EXISTS").evaluate({"a": value}) is False
    assert is_("EXISTS").evaluate({"b": 1}) is False
    assert is_("NOT EXISTS").evaluate({}) is True


@given(predicates(), publications())
@settings(deadline=None)
def test_a_negated_operator_is_kleenes_not(predicate: Predicate, publication: dict[str, Value]) -> None:
    assert predicate.negation.evaluate(publication) is opposite(predicate.evaluate(publication))
    assert predicate.negation.negation == predicate


def test_every_operator_has_another_as_negation() -> None:
    for operator in Operator:
        assert operator.negated is not operator
        assert operator.negated.negated is operator


@pytest.mark.parametrize(
    ("operator", "values", "accepted", "refused"),
    [
        ("BETWEEN", (1, 3), [1, 2.5, 3], [0, 3.5]),
        ("BETWEEN", (3, 1), [], [1, 2, 3]),
        ("NOT BETWEEN", (1, 3), [0, 4], [1, 3]),
        ("IN", ("x", "y"), ["x", "y"], ["z", ""]),
        ("NOT IN", (1, 2), [3, 1.5], [1, 2.0]),
        ("<", ("b",), ["", "a", "azz"], ["b", "é"]),
        ("STARTS WITH", ("ab",), ["ab", "abc"], ["a", "b", "xab"]),
        ("ENDS WITH", ("ab",), ["ab", "xab"], ["b", "abx"]),
        ("CONTAINS", ("ab",), ["ab", "xabx"], ["ba", ""]),
        ("CONTAINS", ("",), ["", "x"], []),
        ("MATCHES", ("b+",), ["abb", "b"], ["", "a"]),
        ("MATCHES", ("^b+$",), ["bb"], ["abb"]),
        ("NOT MATCHES", ("b",), ["a"], ["ab"]),
    ],
)
def test_operators_are_true_for_the_accepted_values_only(
    operator: str, values: tuple[Value, ...], accepted: list[Value], refused: list[Value]
) -> None:
    predicate = is_(operator, *values)
    for value in accepted:
        assert predicate.evaluate({"a": value}) is True
        assert predicate.is_true_for(value)
    for value in refused:
        assert predicate.evaluate({"a": value}) is False
        assert not predicate.is_true_for(value)


@pytest.mark.parametrize(
    ("operator", "values", "problem"),
    [
        ("=", (), "takes 1 value, got 0"),
        ("<", (1, 2), "takes 1 value, got 2"),
        ("BETWEEN", (1,), "takes 2 values, got 1"),
        ("EXISTS", (1,), "takes 0 values, got 1"),
        ("IN", (), "the list is empty"),
        ("IN", (1, "x"), "values of several classes"),
        ("IN", (1, True), "values of several classes"),
        ("BETWEEN", ("a", 1), "values of several classes"),
        ("<", (True,), "booleans have no order"),
        ("BETWEEN", (False, True), "booleans have no order"),
        ("CONTAINS", (1,), "needs a string, not 1"),
        ("MATCHES", ("(",), "regular expression '\\('"),
        ("=", (math.inf,), "infinite"),
    ],
)
def test_impossible_predicates_are_refused_by_attribute_and_reason(
    operator: str, values: tuple[Value, ...], problem: str
) -> None:
    with pytest.raises(ExpressionError, match=problem) as refusal:
        Predicate("a price", Operator(operator), values)
    assert "a price" in str(refusal.value) or operator == "MATCHES"


def test_refused_values_name_the_predicate() -> None:
    with pytest.raises(ValueRefusedError, match=r"^price <: NaN"):
        Predicate("price", Operator.LT, (math.nan,))
    with pytest.raises(ValueRefusedError, match=r"^price IN: NoneType"):
        Predicate("price", Operator.IN, (1, None))  # type: ignore[arg-type]


def test_equal_conditions_are_equal_predicates() -> None:
    assert is_("IN", 3, 1, 3, 2) == is_("IN", 1, 2, 3)
    assert hash(is_("IN", 3, 1, 3, 2)) == hash(is_("IN", 1, 2, 3))
    assert is_("=", 1) == is_("=", 1.0)
    assert hash(is_("=", 1)) == hash(is_("=", 1.0))
    assert is_("=", 1) != is_("!=", 1)
    assert is_("=", 1) != Predicate("b", Operator.EQ, (1,))
    assert is_("=", 1) != "a = 1"


@given(expressions(), expressions())
@settings(deadline=None)
def test_expressions_compare_by_structure(one: Expression, other: Expression) -> None:
    rebuilt = rebuild(one)
    assert rebuilt == one
    assert hash(rebuilt) == hash(one)
    assert (one == other) is (skeleton(one) == skeleton(other))


def rebuild(expression: Expression) -> Expression:
    if isinstance(expression, Predicate):
        return Predicate(expression.attribute, expression.operator, expression.values)
    children = [rebuild(child) for child in expression.children]
    if isinstance(expression, And | Or):
        return type(expression)(children)
    return type(expression)(*children)


def skeleton(expression: Expression) -> object:
    """The structure of an expression as plain tuples. Expressions are equal if these tuples are equal."""
    if isinstance(expression, Predicate):
        return (expression.attribute, expression.operator, expression.type_class, expression.values)
    return (type(expression).__name__, tuple(skeleton(child) for child in expression.children))


def deep(levels: int, leaf: Predicate) -> Expression:
    expression: Expression = leaf
    for level in range(levels):
        expression = Not(expression) if level % 2 else And((leaf, expression))
    return expression


def test_deep_expressions_are_compared_hashed_and_evaluated_without_recursion() -> None:
    one, same, other = deep(10_002, is_("=", 1)), deep(10_002, is_("=", 1)), deep(10_002, is_("=", 2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one.depth == 10_003
    assert len(list(one.nodes())) == 10_003
    assert one.evaluate({"b": 1}) is None
    # If a is 1, NOT (a = 1 AND x) negates x. This happens 5,001 times.
    assert one.evaluate({"a": 1}) is False
    assert one.evaluate({"a": 2}) is True


def test_equality_of_shared_nodes_does_not_write_out_the_tree() -> None:
    def doubled() -> Expression:
        expression: Expression = is_("=", 1)
        for _ in range(200):
            expression = Xor(expression, expression)
        return expression

    assert doubled() == doubled()
    assert doubled().size == 2**200


class CountedReads(dict[str, Value]):
    """A publication that counts lookups of its attributes."""

    reads = 0

    def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
        self.reads += 1
        return super().get(key, default)


def test_a_shared_node_is_evaluated_once() -> None:
    leaf = is_("=", 1)
    expression: Expression = leaf
    for _ in range(50):
        expression = Or((Not(expression), Xor(expression, leaf)))
    publication = CountedReads(a=1)
    assert expression.evaluate(publication) is not None
    assert publication.reads == 1
    assert len(list(expression.nodes())) == 1 + 3 * 50


def test_nodes_occur_once_and_children_first() -> None:
    one, other = is_("=", 1), is_("=", 2)
    inner = Or((one, other))
    outer = And((inner, one, inner))
    assert [id(node) for node in outer.nodes()] == [id(node) for node in (one, other, inner, outer)]
    assert list(outer.predicates()) == [one, other]
    assert outer.size == 5
    assert outer.depth == 3


@pytest.mark.parametrize("expression", [is_("=", 1), TRUE, And((is_("=", 1), is_("=", 2))), Not(is_("=", 1))])
def test_expressions_cannot_be_changed(expression: Expression) -> None:
    for name in ("children", "depth", "structural_hash", "attribute", "anything"):
        # A frozen dataclass with slots refuses names that are not its fields by a TypeError.
        with pytest.raises((AttributeError, TypeError)):
            setattr(expression, name, ())
    for name in ("structural_hash", "children"):
        # A frozen dataclass with slots refuses names that are not its fields by a TypeError.
        with pytest.raises((AttributeError, TypeError)):
            delattr(expression, name)
    assert copy.copy(expression) is expression
    assert copy.deepcopy(expression) is expression


def test_children_given_as_a_list_are_copied() -> None:
    children: list[Expression] = [is_("=", 1), is_("=", 2)]
    both = And(children)
    children.append(is_("=", 3))
    assert len(both.children) == 2


def test_operators_join_conjunctions_and_disjunctions_into_one() -> None:
    one, two, three = is_("=", 1), is_("=", 2), is_("=", 3)
    assert (one & two & three).children == (one, two, three)
    assert (one | (two | three)).children == (one, two, three)
    assert ((one | two) & three).children == (Or((one, two)), three)
    assert (TRUE & one).children == (TRUE, one)


def test_an_expression_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match=r"combine with & \| \^ ~"):
        bool(is_("=", 1))
    with pytest.raises(TypeError, match="combines expressions, not 'a = 1'"):
        And((is_("=", 1), "a = 1"))  # type: ignore[arg-type]

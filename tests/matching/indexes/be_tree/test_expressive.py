"""Expressive events: every semantics of [BET 3.2] gives the result of its definition for each subscription.

The definition is implemented here with sample values, without intervals. There are few operands, with samples at,
between and outside them. Two sets are therefore related exactly if their samples are.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching import And, Expression, Operator, Predicate
from matching.errors import ExpressionError, UnsupportedExpressionError
from matching.expressions.normal_forms import as_conjunction
from matching.expressions.values import Value
from matching.indexes.be_tree import BETree, Semantics

NUMBERS = range(5)
SAMPLES: tuple[Value, ...] = (*[half / 2 for half in range(-2, 12)], "a", "m", "z", True, False)
"""Samples for the operands 0 to 4 and 'm': each operand, and a value on each side."""


def number_predicates() -> st.SearchStrategy[Predicate]:
    number = st.sampled_from(NUMBERS)
    single = st.sampled_from((Operator.EQ, Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE))
    attribute = st.sampled_from("ab")
    return st.one_of(
        st.builds(lambda name, operator, value: Predicate(name, operator, (value,)), attribute, single, number),
        st.builds(
            lambda name, operator, values: Predicate(name, operator, tuple(values)),
            attribute,
            st.sampled_from((Operator.IN, Operator.NOT_IN)),
            st.lists(number, min_size=1, max_size=3),
        ),
        st.builds(
            lambda name, operator, low, high: Predicate(name, operator, (low, high)),
            attribute,
            st.sampled_from((Operator.BETWEEN, Operator.NOT_BETWEEN)),
            number,
            number,
        ),
    )


OTHER_PREDICATES = st.sampled_from(
    [
        *[Predicate("s", operator, ("m",)) for operator in (Operator.EQ, Operator.NE, Operator.LT, Operator.GE)],
        Predicate("a", Operator.EQ, ("m",)),
        Predicate("f", Operator.EQ, (True,)),
        Predicate("f", Operator.NE, (True,)),
        Predicate("a", Operator.EXISTS),
        Predicate("s", Operator.EXISTS),
    ]
)
ABSENCES = st.sampled_from([Predicate("a", Operator.NOT_EXISTS), Predicate("s", Operator.NOT_EXISTS)])
EVENTS = st.lists(st.one_of(number_predicates(), OTHER_PREDICATES), max_size=4).map(And.of)
SUBSCRIPTIONS = st.lists(st.one_of(number_predicates(), number_predicates(), OTHER_PREDICATES, ABSENCES), max_size=4)


def sampled_sets(expression: Expression) -> tuple[dict[str, frozenset[int]], set[str]]:
    """The allowed samples for each attribute, and the attributes that must not exist."""
    sets: dict[str, frozenset[int]] = {}
    absent = set()
    for predicate in as_conjunction(expression) or ():
        attribute = predicate.attribute
        if predicate.operator is Operator.NOT_EXISTS:
            absent.add(attribute)
            continue
        allowed = frozenset(n for n, value in enumerate(SAMPLES) if predicate.matches({attribute: value}))
        sets[attribute] = sets.get(attribute, allowed) & allowed
    return sets, absent


def is_related(subscription: Expression, event: Expression, semantics: Semantics) -> bool:
    wanted, absent = sampled_sets(subscription)
    offered, _ = sampled_sets(event)
    if absent & offered.keys() or not all(wanted.values()) or not wanted.keys() <= offered.keys():
        return False
    if semantics in (Semantics.SYMMETRIC, Semantics.EXACT) and wanted.keys() != offered.keys():
        return False
    if semantics in (Semantics.STABBING_SUBSCRIPTION, Semantics.SYMMETRIC):
        return all(wanted[attribute] & offered[attribute] for attribute in wanted)
    if semantics is Semantics.CONTAINMENT:
        return all(wanted[attribute] <= offered[attribute] for attribute in wanted)
    return wanted == offered


@given(
    subscriptions=st.lists(SUBSCRIPTIONS.map(And.of), min_size=5, max_size=40),
    events=st.lists(EVENTS, min_size=1, max_size=5),
    directory=st.sampled_from(("generic", "specialised", "hybrid")),
)
def test_every_semantics_is_its_definition(
    subscriptions: list[Expression], events: list[Expression], directory: str
) -> None:
    index = BETree(max_capacity=2, min_partition=2, directory=directory)
    for id, subscription in enumerate(subscriptions):
        index.add(id, subscription)
    # A subscription that is used as the event is found in most semantics. Random events rarely find any.
    own = [each for each in subscriptions if not sampled_sets(each)[1]][:3]
    for event in (*events, *own):
        for semantics in Semantics:
            expected = [id for id, each in enumerate(subscriptions) if is_related(each, event, semantics)]
            report = index.match_expression(event, semantics)
            assert list(report.ids) == expected, (semantics, str(event))
            assert report.stored == len(subscriptions)
            assert report.matched <= report.candidates <= report.stored


@given(
    subscriptions=st.lists(SUBSCRIPTIONS.map(And.of), max_size=40),
    publication=st.dictionaries(st.sampled_from("absf"), st.sampled_from(SAMPLES)),
)
def test_an_event_of_equalities_is_a_publication(
    subscriptions: list[Expression], publication: dict[str, Value]
) -> None:
    index = BETree(max_capacity=2, min_partition=2)
    for id, subscription in enumerate(subscriptions):
        index.add(id, subscription)
    event = And.of([Predicate(name, Operator.EQ, (value,)) for name, value in publication.items()])
    by_expression = index.match_expression(event, Semantics.STABBING_SUBSCRIPTION)
    assert list(by_expression.ids) == list(index.match(publication).ids)


def filled() -> BETree:
    index = BETree()
    for id in range(100):
        index.add(id, f"a BETWEEN {id} AND {id + 5}")
    return index


@pytest.mark.parametrize(
    ("event", "semantics", "expected"),
    [
        ("a BETWEEN 20 AND 30", Semantics.CONTAINMENT, [20, 21, 22, 23, 24, 25]),
        ("a BETWEEN 20 AND 25", Semantics.EXACT, [20]),
        ("a > 99 AND a < 101", Semantics.STABBING_SUBSCRIPTION, [95, 96, 97, 98, 99]),
        ("a = 3 AND b = 1", Semantics.STABBING_SUBSCRIPTION, [0, 1, 2, 3]),
        ("a = 3 AND b = 1", Semantics.SYMMETRIC, []),
        ("b = 1", Semantics.STABBING_SUBSCRIPTION, []),
    ],
)
def test_intervals_by_example(event: str, semantics: Semantics, expected: list[int]) -> None:
    report = filled().match_expression(event, semantics)
    assert list(report.ids) == expected


def test_the_tree_rules_out_subscriptions_that_a_narrow_event_cannot_match() -> None:
    assert filled().match_expression("a BETWEEN 33 AND 34", Semantics.CONTAINMENT).candidates < 50


def test_patterns_count_as_all_strings() -> None:
    index = BETree()
    index.add(1, "s CONTAINS 'x'")
    assert list(index.match_expression("s = 'y'", Semantics.STABBING_SUBSCRIPTION).ids) == [1]
    assert list(index.match_expression("s < 'y'", Semantics.CONTAINMENT).ids) == []
    assert list(index.match_expression("EXISTS s", Semantics.CONTAINMENT).ids) == [1]


def test_events_that_are_none_are_refused() -> None:
    with pytest.raises(UnsupportedExpressionError, match="an event of be-tree"):
        BETree().match_expression("a = 1 OR b = 2", Semantics.EXACT)
    with pytest.raises(ExpressionError, match="leave a out"):
        BETree().match_expression("NOT EXISTS a", Semantics.EXACT)

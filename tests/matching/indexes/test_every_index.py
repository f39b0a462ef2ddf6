"""Every registered index gives the results of the linear scan at any time, after any additions and removals.

An index that is added to the registry is tested without further changes here.
"""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

import matching
from matching import Expression, Matcher
from matching.errors import (
    DuplicateIdError,
    PublicationError,
    UnknownIdError,
    UnsupportedExpressionError,
    ValueRefusedError,
)
from matching.expressions.normal_forms import as_conjunction
from matching.expressions.values import Value
from matching.indexes.scan import LinearScan
from matching.registry import Accepts
from tests.harness.expression_strategies import conjunctions, expressions, publications

DESTINATIONS = ("b1", "b2", "b3")


class IndexAgainstScan(RuleBasedStateMachine):
    """Makes the same calls to the index and the scan, and compares every result."""

    index_name: str
    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.scan: Matcher = LinearScan()
        self.index: Matcher = matching.create(self.index_name)
        self.last_expression: Expression | None = None
        self.last_publication: dict[str, Value] = {}

    def _add(self, id: int, expression: Expression) -> bool:
        destination = DESTINATIONS[id % len(DESTINATIONS)]
        try:
            self.index.add(id, expression, destination)
        except UnsupportedExpressionError:
            assert matching.info(self.index_name).accepts is not Accepts.ANY_EXPRESSION
            assert as_conjunction(expression) is None, "every index holds conjunctions"
            return False
        self.scan.add(id, expression, destination)
        note(f"{id}: {expression}")
        self.last_expression = expression
        return True

    @rule(target=ids, id=st.integers(-3, 40), expression=st.one_of(conjunctions(0, 5), expressions()))
    def add(self, id: int, expression: Expression) -> object:
        if id in self.scan:
            with pytest.raises(DuplicateIdError, match=str(id)):
                self.index.add(id, expression, "b1")
            return multiple()
        return id if self._add(id, expression) else multiple()

    @precondition(lambda self: self.last_expression is not None)
    @rule(target=ids, id=st.integers(41, 60))
    def add_the_same_again(self, id: int) -> object:
        assert self.last_expression is not None
        return id if id not in self.scan and self._add(id, self.last_expression) else multiple()

    @rule(id=consumes(ids))
    def remove(self, id: int) -> None:
        if id in self.scan:
            self.index.remove(id)
            self.scan.remove(id)

    @rule(target=ids, id=consumes(ids), expression=conjunctions())
    def replace(self, id: int, expression: Expression) -> object:
        if id not in self.scan:
            return multiple()
        self.index.remove(id)
        self.scan.remove(id)
        return id if self._add(id, expression) else multiple()

    @rule(id=st.integers(100, 101))
    def remove_an_unknown_id(self, id: int) -> None:
        with pytest.raises(UnknownIdError, match=str(id)):
            self.index.remove(id)

    @rule(publication=publications())
    def match(self, publication: dict[str, Value]) -> None:
        self.last_publication = publication
        self._compare(publication)

    @rule(publication=publications())
    def match_by_other_methods(self, publication: dict[str, Value]) -> None:
        expected = list(self.scan.match(publication).ids)
        packed = msgpack.packb(publication)
        assert list(self.index.match_packed(packed).ids) == expected
        first, _ = self.index.match_many([publication, {}])
        assert list(first.ids) == expected
        by_destination = self.scan.match_destinations(publication).destinations
        assert self.index.match_destinations(publication).destinations == by_destination
        assert self.index.match_packed_destinations(packed).destinations == by_destination

    def _compare(self, publication: dict[str, Value]) -> None:
        expected = self.scan.match(publication)
        report = self.index.match(publication)
        assert list(report.ids) == list(expected.ids)
        assert report.stored == expected.stored
        assert report.matched == expected.matched <= report.candidates

    @invariant()
    def it_stores_what_was_added(self) -> None:
        assert len(self.index) == len(self.scan)
        assert list(self.index) == list(self.scan)

    def teardown(self) -> None:
        """Removes all subscriptions one by one. Results stay correct, and the index is empty at the end."""
        for id in list(self.scan):
            self._compare(self.last_publication)
            self.index.remove(id)
            self.scan.remove(id)
        structure = self.index.describe()
        assert (structure.subscriptions, structure.nodes, structure.levels) == (0, 0, 0)
        assert not any(structure.details.values()), structure.details


def _machine(name: str) -> type[IndexAgainstScan]:
    return type(f"{name} beside scan", (IndexAgainstScan,), {"index_name": name})


@pytest.mark.parametrize("name", matching.names())
def test_an_index_has_the_name_of_its_row_in_the_registry(name: str) -> None:
    assert matching.create(name).name == name


@pytest.mark.parametrize("name", matching.names())
def test_the_index_answers_as_the_scan_does(name: str) -> None:
    run_state_machine_as_test(_machine(name), settings=settings(max_examples=60, stateful_step_count=30, deadline=None))


@pytest.mark.slow
@pytest.mark.parametrize("name", matching.names())
def test_the_index_answers_as_the_scan_does_in_long_runs(name: str) -> None:
    long = settings(max_examples=40, stateful_step_count=60, deadline=None)
    run_state_machine_as_test(_machine(name), settings=long)


@pytest.mark.parametrize("name", matching.names())
def test_a_refused_call_leaves_the_index_as_it_was(name: str) -> None:
    index = matching.create(name)
    index.add(1, "a = 1")
    with pytest.raises(DuplicateIdError):
        index.add(1, "a = 2")
    with pytest.raises(matching.MatchingError, match="line 1, column 4"):
        index.add(2, "a = ")
    with pytest.raises(ValueRefusedError, match="'a'"):
        index.match({"a": float("nan")})
    with pytest.raises(PublicationError, match="not MessagePack"):
        index.match_packed(b"\xc1")
    with pytest.raises(PublicationError, match="map"):
        index.match_packed(msgpack.packb([1, 2]))
    assert list(index.match({"a": 1}).ids) == [1]
    assert len(index) == 1


@pytest.mark.parametrize("name", matching.names())
def test_a_subscription_without_destination_is_named_by_match_destinations(name: str) -> None:
    index = matching.create(name)
    index.add(7, "a = 1")
    with pytest.raises(PublicationError, match="subscription 7"):
        index.match_destinations({"a": 1})


@pytest.mark.parametrize("name", matching.names())
def test_many_publications_leave_no_memory_behind(name: str) -> None:
    """Attributes that no subscription mentions must not take memory."""
    index = matching.create(name)
    index.add(1, "a = 1 AND s = 'x'")
    index.match({"a": 1, "s": "x"})
    before = index.describe().bytes
    for number in range(2_000):
        index.match({f"unknown{number}": number, "s": f"text{number}"})
    assert index.describe().bytes < before + 2_000

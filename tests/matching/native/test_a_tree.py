"""The native A-Tree and the native scan return the ids of Python's linear scan, after any additions and removals.

Nodes are shared exactly as in the Python specification. Colliding IDs do not merge nodes. Only nodes that are true and
watched cost work. Removing expressions frees memory. Errors are the same as in Python.
"""

from __future__ import annotations

import random
import threading

import msgpack
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import matching
from matching import And, Expression, Matcher, Not, Operator, Or, Predicate, Xnor, Xor
from matching.errors import PublicationError, ValueRefusedError
from matching.expressions.values import Value
from matching.indexes.a_tree import ATree
from matching.indexes.scan import LinearScan
from matching.registry import NATIVE
from tests.harness.programs import needs_compiler
from tests.matching.indexes.test_every_index import IndexAgainstScan

pytestmark = needs_compiler


def native(name: str = "a-tree", **options: object) -> Matcher:
    return matching.create(name, backend=NATIVE, **options)


def _machine(name: str, **options: object) -> type[IndexAgainstScan]:
    def prepare(self: IndexAgainstScan) -> None:
        IndexAgainstScan.__init__(self)
        self.index = native(name, **options)

    return type(f"native {name} beside scan", (IndexAgainstScan,), {"index_name": name, "__init__": prepare})


@pytest.mark.parametrize("name", ["a-tree", "scan"])
def test_the_native_index_answers_as_the_scan_does(name: str) -> None:
    run_state_machine_as_test(_machine(name), settings=settings(max_examples=60, stateful_step_count=30, deadline=None))


def test_colliding_ids_merge_nothing() -> None:
    few = settings(max_examples=25, stateful_step_count=30, deadline=None)
    run_state_machine_as_test(_machine("a-tree", identity_bits=1), settings=few)


@pytest.mark.slow
def test_the_native_index_answers_as_the_scan_does_in_long_runs() -> None:
    long = settings(max_examples=60, stateful_step_count=80, deadline=None)
    run_state_machine_as_test(_machine("a-tree"), settings=long)


class Churn:
    """Adds and removes random expressions on a small domain in several indexes, and compares their results."""

    def __init__(self, seed: int, *indexes: Matcher) -> None:
        self._rng = random.Random(seed)
        self._indexes = indexes
        self._ids: list[int] = []
        self._next_id = 0
        self._recent: list[Expression] = []

    def run(self, operations: int, largest: int) -> None:
        for _ in range(operations):
            kind = self._rng.random()
            if kind < 0.1:
                self._match()
            elif kind < 0.56 and len(self._ids) < largest:
                self._add()
            elif self._ids:
                self._remove()

    def empty(self) -> None:
        while self._ids:
            self._remove()

    def _add(self) -> None:
        repeat = self._recent and self._rng.random() < 0.2
        expression = self._rng.choice(self._recent) if repeat else self._expression(self._rng.randrange(4))
        self._recent = [*self._recent[-30:], expression]
        self._next_id += 1
        for index in self._indexes:
            index.add(self._next_id, expression, f"b{self._next_id % 7}")
        self._ids.append(self._next_id)

    def _remove(self) -> None:
        id = self._ids.pop(self._rng.randrange(len(self._ids)))
        for index in self._indexes:
            index.remove(id)

    def _match(self) -> None:
        publication = self.publication()
        first, *others = self._indexes
        expected = list(first.match(publication).ids)
        destinations = first.match_destinations(publication).destinations
        for index in others:
            assert list(index.match(publication).ids) == expected
            assert list(index.match_packed(msgpack.packb(publication)).ids) == expected
            assert index.match_destinations(publication).destinations == destinations

    def publication(self) -> dict[str, Value]:
        return {name: self._rng.randrange(6) for name in "abcdef" if self._rng.random() < 0.6}

    def _expression(self, depth: int) -> Expression:
        rng = self._rng
        if depth == 0 or rng.random() < 0.1:
            return self._predicate()
        parts = [self._expression(depth - 1) for _ in range(rng.randrange(2, 5))]
        kind = rng.choice([And, And, Or, Or, Not, Xor, Xnor])
        if kind is Not:
            return Not(parts[0])
        return kind(parts[0], parts[1]) if kind in (Xor, Xnor) else kind(parts)

    def _predicate(self) -> Predicate:
        rng = self._rng
        operator = rng.choice([operator for operator in Operator if "S" not in str(operator) or "EXISTS" in operator])
        if operator in (Operator.EXISTS, Operator.NOT_EXISTS):
            values: tuple[int, ...] = ()
        elif operator in (Operator.BETWEEN, Operator.NOT_BETWEEN):
            values = (rng.randrange(6), rng.randrange(6))
        else:
            count = 1 if operator not in (Operator.IN, Operator.NOT_IN) else rng.randrange(1, 4)
            values = tuple(rng.randrange(6) for _ in range(count))
        return Predicate(rng.choice("abcdef"), operator, values)


def test_long_churn_leaves_answers_right_and_nothing_behind() -> None:
    index = native()
    churn = Churn(4, LinearScan(), index, native("scan"))
    churn.run(6_000, largest=60)
    churn.empty()
    structure = index.describe()
    assert (structure.nodes, structure.levels) == (0, 0)
    assert not any(structure.details.values())
    assert structure.bytes < 50_000


def test_memory_stays_bounded_while_subscriptions_are_added_and_removed() -> None:
    index = native()
    churn = Churn(9, index)
    churn.run(4_000, largest=200)
    grown = index.describe().bytes
    churn.run(40_000, largest=200)
    assert index.describe().bytes < 2 * grown


@pytest.mark.parametrize("seed", range(3))
def test_nodes_are_shared_as_in_the_python_specification(seed: int) -> None:
    """Covers use nodes and never create any, so reorganisation changes only edges."""
    index, specification = native(), ATree(reorganisation=False, self_adjustment=False)
    churn = Churn(seed, specification, index)
    for _ in range(6):
        churn.run(150, largest=40)
        mine, theirs = index.describe(), specification.describe()
        assert (mine.nodes, mine.levels) == (theirs.nodes, theirs.levels)
        for figure in ("l-nodes", "i-nodes", "r-nodes", "edges", "distinct expressions"):
            assert mine.details[figure] == theirs.details[figure], figure


def is_one(attribute: str) -> Predicate:
    return Predicate(attribute, Operator.EQ, (1,))


A, B, C, D = (is_one(name) for name in "abcd")


class TestThePapersProperties:
    def test_a_false_result_is_not_propagated(self) -> None:
        """[ATREE 5.2.1]: NOT (a OR b) is stored as its two negated predicates. Only true predicates cost work."""
        index = native()
        index.add(1, Not(Or((A, B))))
        assert index.match({"a": 1, "b": 1}).evaluated == 0
        assert index.match({"a": 0, "b": 0}).evaluated > 0
        assert list(index.match({"a": 0, "b": 0}).ids) == [1]

    def test_a_conjunction_is_looked_at_only_when_its_access_child_is_true(self) -> None:
        """[ATREE 5.2.2]: the equality with the rarest value is the access child. Other predicates are not looked up."""
        index = native()
        for id in range(50):
            index.add(id, And((Predicate("common", Operator.GT, (0,)), Predicate("rare", Operator.EQ, (id,)))))
        assert index.match({"common": 5}).evaluated == 0
        report = index.match({"common": 5, "rare": 7})
        assert list(report.ids) == [7]
        assert report.candidates == 1

    def test_repeated_expressions_add_no_nodes(self) -> None:
        once, often = native(), native()
        for id, expression in enumerate((And((A, Or((B, C)))), Or((A, D)), Xor(A, B)) * 50):
            often.add(id, expression)
            if id < 3:
                once.add(id, expression)
        assert often.describe().nodes == once.describe().nodes
        assert often.match({"a": 1, "b": 1}).matched == 50 * once.match({"a": 1, "b": 1}).matched

    def test_two_expressions_with_one_arithmetic_id_stay_two(self) -> None:
        """a OR (b AND c) and (a OR b) AND (a OR c) collide in the papers. Here every ID collides."""
        index = native(identity_bits=0)
        index.add(1, Or((A, And((B, C)))))
        index.add(2, And((Or((A, B)), Or((A, C)))))
        assert index.describe().details["distinct expressions"] == 2
        index.remove(1)
        assert list(index.match({"a": 1}).ids) == [2]


def test_a_chain_of_exclusive_ors_has_nodes_in_proportion_to_its_length() -> None:
    def chain(length: int) -> Expression:
        expression: Expression = is_one("x0")
        for number in range(1, length):
            expression = Xor(expression, is_one(f"x{number}"))
        return expression

    index = native()
    index.add(1, chain(1_100))
    assert index.describe().nodes < 10 * 1_100
    publication = {f"x{number}": int(number % 3 == 0) for number in range(1_100)}
    assert list(index.match(publication).ids) == ([1] if chain(1_100).matches(publication) else [])
    index.remove(1)
    assert index.describe().nodes == 0


@pytest.mark.parametrize("width", [2, 15, 16, 17, 40])
def test_disjunctions_match_whether_they_are_skipped_or_not(width: int) -> None:
    """Small disjunctions with one listener are skipped. Listeners are added and removed, so each has others in turn."""
    chosen = random.Random(width)

    def some_or() -> Expression:
        first = chosen.randrange(2) * width
        return Or([Predicate(f"a{first + number}", Operator.EQ, (1,)) for number in range(width)])

    def some_expression() -> Expression:
        exclusive = Xor(Predicate("x", Operator.GT, (chosen.randrange(3),)), Predicate("y", Operator.EQ, (1,)))
        parts = [some_or(), chosen.choice([exclusive, some_or(), Predicate("z", Operator.LT, (chosen.randrange(3),))])]
        return chosen.choice([And(parts), some_or(), Or([And(parts), Predicate("w", Operator.EQ, (1,))])])

    index, scan = native(), LinearScan()
    stored: list[int] = []
    for step in range(400):
        if stored and chosen.random() < 0.45:
            id = stored.pop(chosen.randrange(len(stored)))
            index.remove(id)
            scan.remove(id)
        else:
            expression = some_expression()
            index.add(step, expression)
            scan.add(step, expression)
            stored.append(step)
        names = [f"a{chosen.randrange(2 * width)}" for _ in range(3)] + ["w", "x", "y", "z"]
        publication: dict[str, Value] = {name: chosen.randrange(3) for name in names if chosen.random() < 0.7}
        assert list(index.match(publication).ids) == list(scan.match(publication).ids)
    for id in stored:
        index.remove(id)
    assert index.describe().nodes == 0


def test_many_ranges_on_one_wide_domain_are_found() -> None:
    """Each range is stored once. It is not copied to the spaces that it covers."""
    rng = random.Random(3)
    index, scan = native(), LinearScan()
    for id in range(600):
        low, high = sorted(rng.choices([-(2**40), -3.5, 0.25, 2**53 + 1, 2**62, *range(0, 10**9, 10**6)], k=2))
        operator = rng.choice([Operator.BETWEEN, Operator.NOT_BETWEEN])
        for matcher in (index, scan):
            matcher.add(id, Predicate("x", operator, (low, high)))
    assert index.describe().bytes < 600 * 600
    for value in (-(2**41), -3.5, 0, 0.25, 5_000_000, 999_999_999, 2**53, 2**53 + 1, 2**62, float("inf")):
        assert list(index.match({"x": value}).ids) == list(scan.match({"x": value}).ids)


def test_texts_are_found_by_range_start_end_and_part() -> None:
    words = ["", "a", "ab", "abc", "bc", "c", "customer-0001", "customer-0002", "customer-0017", "é", "customer\0"]
    index, scan = native(), LinearScan()
    operators = [Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS, Operator.GT, Operator.LE, Operator.EQ]
    predicates = [Predicate("s", each, (word,)) for op in operators for each in (op, op.negated) for word in words]
    predicates += [Predicate("s", Operator.BETWEEN, (low, high)) for low in words for high in words]
    for id, predicate in enumerate(predicates):
        for matcher in (index, scan):
            matcher.add(id, predicate)
    for word in [*words, "abab", "customer-0003", "customer-00015", "xyz", "b"]:
        assert list(index.match({"s": word}).ids) == list(scan.match({"s": word}).ids), word


def test_patterns_are_verified_by_re2_also_below_not_and_in_threads() -> None:
    index = native()
    index.add(1, "s MATCHES '^a+$' AND NOT t MATCHES 'x'")
    index.add(2, "s MATCHES 'b' XOR t MATCHES 'x'")
    publications: list[dict[str, Value]] = [
        {"s": "aa", "t": "y"},
        {"s": "b", "t": "x"},
        {"s": "aa", "t": "x"},
        {"s": "a"},
    ]
    reports = index.match_many(publications * 50, threads=2)  # type: ignore[call-arg]
    assert [list(report.ids) for report in reports[:4]] == [[1], [], [2], []]
    assert [report.ids for report in reports[4:8]] == [report.ids for report in reports[:4]]


def test_many_publications_are_matched_in_several_threads() -> None:
    index, churn = native(), Churn(1, LinearScan())
    scan = LinearScan()
    both = Churn(5, scan, index)
    both.run(300, largest=80)
    publications = [churn.publication() for _ in range(600)]
    expected = [list(scan.match(publication).ids) for publication in publications]
    for threads in (1, 3):
        reports = index.match_many(publications, threads=threads)  # type: ignore[call-arg]
        assert [list(report.ids) for report in reports] == expected


def test_python_threads_may_match_one_index_at_the_same_time() -> None:
    index = native()
    for id in range(40):
        index.add(id, f"a > {id} OR s MATCHES '{id % 10}'")
    wrong: list[int] = []

    def match(value: int) -> None:
        for _ in range(100):
            if list(index.match({"a": value, "s": "none"}).ids) != list(range(value)):
                wrong.append(value)

    threads = [threading.Thread(target=match, args=(value,)) for value in (3, 17, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_input_that_is_not_plain_is_checked_by_python() -> None:
    index = native()
    index.add(1, "a = 1", "b1")
    assert list(index.match_many([{"a": 1}, {"a": True}])[0].ids) == [1]
    with pytest.raises(ValueRefusedError, match="'a'"):
        index.match_many([{"a": 1}, {"a": float("nan")}])
    with pytest.raises(ValueRefusedError, match="64 bits"):
        index.add(2**63, "a = 1")
    with pytest.raises(PublicationError, match="not MessagePack"):
        index.match_packed_destinations(b"\xc1")
    with pytest.raises(TypeError, match="expressions"):
        index.add(2, 5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threads"):
        index.match_many([], threads=0)  # type: ignore[call-arg]
    assert len(index) == 1

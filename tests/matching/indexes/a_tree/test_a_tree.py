"""The A-Tree has the structure of the papers: their examples give their numbers. No node is stored twice or leaked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

import pytest

from matching import FALSE, TRUE, And, Expression, Not, Operator, Or, Predicate, Xnor, Xor
from matching.expressions.values import Value
from matching.indexes.a_tree import ATree, Identities
from matching.indexes.scan import LinearScan
from tests.harness.a_tree_structure import Options, check_structure, cost, edges, is_one, meaning, visited

A, B, C, D, E, F, G, H = (is_one(name) for name in "abcdefgh")
ABC = Or((A, B, C))
EF = Or((E, F))
GH = Or((G, H))
S1 = And((ABC, D, EF))
S2 = And((EF, GH))
S3 = Or((A, B, C, D))
S4 = And((ABC, D))
S5 = And((EF, GH))
S6 = Not(GH)


def tree_with(*expressions: Expression, **options: Unpack[Options]) -> ATree:
    index = ATree(**options)
    for number, expression in enumerate(expressions, start=1):
        index.add(number, expression)
    return index


def built_from(index: ATree, id: int) -> set[object]:
    return {meaning(child) for child in index.root(id).children}


def node_of(expression: Expression) -> object:
    return meaning(tree_with(expression).root(1))


class TestThePapersExamples:
    def test_two_expressions_share_a_subexpression(self) -> None:
        """[THESIS Figure 9.1.1]."""
        structure = tree_with(S1, S2).describe()
        assert (structure.nodes, structure.details["edges"], structure.levels) == (13, 12, 3)
        assert (structure.details["l-nodes"], structure.details["i-nodes"], structure.details["r-nodes"]) == (8, 3, 2)

    def test_a_new_expression_is_built_on_existing_nodes(self) -> None:
        """[THESIS 9.2.2]: a OR b OR c OR d costs 3 if built from a OR b OR c, and 5 if built from its predicates."""
        index = tree_with(S1, S2)
        index.add(3, S3)
        assert cost(index) == 25 + 3
        assert built_from(index, 3) == {node_of(ABC), D}
        plain = tree_with(S1, S2, S3, reorganisation=False)
        assert cost(plain) == 25 + 5

    def test_one_subexpression_can_be_used_twice_in_a_cover(self) -> None:
        """[THESIS 9.2.2]: (a AND b AND c) AND (c AND d)."""
        index = tree_with(And((A, B, C)), And((C, D)), And((A, B, C, D)))
        assert built_from(index, 3) == {node_of(And((A, B, C))), node_of(And((C, D)))}

    def test_existing_expressions_are_rebuilt_on_a_new_expression(self) -> None:
        """[THESIS 9.2.3]: (a OR b OR c) AND d becomes a part of S1."""
        index = tree_with(S1, S2)
        index.add(4, S4)
        assert built_from(index, 1) == {node_of(S4), node_of(EF)}
        assert cost(index) == 25 + 2
        left_alone = tree_with(S1, S2, S4, self_adjustment=False)
        assert built_from(left_alone, 1) == {node_of(ABC), D, node_of(EF)}
        assert cost(left_alone) == 25 + 3

    def test_matching_without_optimisations_visits_the_papers_nodes(self) -> None:
        """[THESIS 9.3.2]: a is true, e, g and h are false, everything else is undefined."""
        index = tree_with(S1, S2, S3, S4, S5, S6, zero_suppression=False, propagation_on_demand=False)
        structure = index.describe()
        assert structure.levels == 4
        assert (structure.details["l-nodes"], structure.details["i-nodes"], structure.details["r-nodes"]) == (8, 4, 4)
        assert list(index.root(2).ids) == [2, 5]
        report = index.match({"a": 1, "e": 0, "g": 0, "h": 0})
        assert list(report.ids) == [3, 6]
        expected = {A, E, G, H} | {meaning(index.root(id)) for id in (2, 3, 4, 6)}
        assert visited(index, 1) == expected | {node_of(ABC), node_of(EF), node_of(GH)}
        assert report.evaluated == 11

    def test_matching_with_optimisations_visits_the_papers_nodes(self) -> None:
        """[THESIS 9.3.4]: NOT (g OR h) adds two predicates. Only a and these two are true."""
        index = tree_with(S1, S2, S3, S4, S5, S6)
        structure = index.describe()
        assert structure.levels == 4
        assert (structure.nodes, structure.details["l-nodes"]) == (18, 10)
        report = index.match({"a": 1, "e": 0, "g": 0, "h": 0})
        assert list(report.ids) == [3, 6]
        assert visited(index, 1) == {A, G.negation, H.negation, node_of(ABC), meaning(index.root(3)), node_of(S6)}
        assert report.evaluated == 6


class TestOneNodeForEachExpression:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (And((A, Or((B, C)))), And((Or((C, B)), A))),
            (And((And((A, B)), C)), And((A, And((B, C))))),
            (Or((Or((A, B)), Or((B, C)))), Or((A, B, C))),
            (And((A, A)), A),
            (And((Or((A, B)), Or((B, A)))), Or((A, B))),
            (Or((And((Or((A, B)), Or((B, A)))), C)), Or((A, B, C))),
            (And((A, TRUE)), A),
            (Or((A, And((B, FALSE)))), A),
            (And((A, Or((B, TRUE)))), A),
            (Predicate("a", Operator.EQ, (1.0,)), A),
            (Predicate("a", Operator.EQ, (0.0,)), Predicate("a", Operator.EQ, (-0.0,))),
        ],
    )
    @pytest.mark.parametrize("zero_suppression", [True, False])
    def test_equal_expressions_are_one_node(self, one: Expression, other: Expression, zero_suppression: bool) -> None:
        index = tree_with(one, other, zero_suppression=zero_suppression)
        assert index.root(1) is index.root(2)
        index.remove(1)
        check_structure(index)
        assert list(index.root(2).ids) == [2]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (Not(And((A, B))), Or((A.negation, B.negation))),
            (Xor(A, B), Xor(B, A)),
            (Xnor(A, B), Not(Xor(A, B))),
            (Not(Not(A)), A),
        ],
    )
    def test_expressions_are_equal_when_zero_suppression_makes_them_so(
        self, one: Expression, other: Expression
    ) -> None:
        index = tree_with(one, other)
        assert index.root(1) is index.root(2)

    def test_a_boolean_is_not_a_number(self) -> None:
        index = tree_with(Predicate("a", Operator.EQ, (True,)), A)
        assert index.root(1) is not index.root(2)
        assert list(index.match({"a": True}).ids) == [1]
        assert list(index.match({"a": 1}).ids) == [2]

    @pytest.mark.parametrize("zero_suppression", [True, False])
    def test_constants_need_no_predicate(self, zero_suppression: bool) -> None:
        index = tree_with(
            TRUE,
            FALSE,
            Or((A, TRUE)),
            Not(FALSE),
            Xor(TRUE, FALSE),
            Xnor(TRUE, FALSE),
            zero_suppression=zero_suppression,
        )
        assert list(index.match({}).ids) == [1, 3, 4, 5]
        assert index.describe().nodes == 2
        for id in range(1, 7):
            index.remove(id)
        assert index.describe().nodes == 0
        assert list(index.match({}).ids) == []

    @pytest.mark.parametrize("zero_suppression", [True, False])
    @pytest.mark.parametrize("kind", [Xor, Xnor])
    def test_xor_with_a_constant_or_with_itself_keeps_undefined(
        self, kind: type[Xor] | type[Xnor], zero_suppression: bool
    ) -> None:
        expressions = (kind(A, TRUE), kind(FALSE, A), kind(A, A), Not(kind(A, A)), kind(And((A, B)), And((B, A))))
        index = tree_with(*expressions, zero_suppression=zero_suppression)
        publications: list[dict[str, Value]] = [{"a": 1}, {"a": 0}, {}, {"a": "1"}, {"a": 1, "b": 1}, {"b": 0}]
        for publication in publications:
            expected = [id for id, expression in enumerate(expressions, start=1) if expression.matches(publication)]
            assert list(index.match(publication).ids) == expected

    def test_repeated_expressions_add_no_work(self) -> None:
        publication = {"a": 1, "d": 1, "e": 1}
        once = tree_with(S1, S2, S3)
        often = tree_with(*(S1, S2, S3) * 50)
        assert often.describe().nodes == once.describe().nodes
        assert often.match(publication).evaluated == once.match(publication).evaluated
        assert often.match(publication).matched == 50 * once.match(publication).matched


class TestIdentities:
    def test_the_arithmetic_gives_two_expressions_one_id_and_they_stay_two(self) -> None:
        """a OR (b AND c) and (a OR b) AND (a OR c): a * (b + c) = a * b + a * c."""
        index = tree_with(Or((A, And((B, C)))), And((Or((A, B)), Or((A, C)))))
        assert index.root(1).identity == index.root(2).identity
        assert index.root(1) is not index.root(2)
        index.remove(1)
        check_structure(index)
        assert list(index.match({"a": 1}).ids) == [2]

    @pytest.mark.parametrize("modulus", [1, 2, 3])
    def test_collisions_merge_nothing(self, modulus: int) -> None:
        expressions = (S1, S2, S3, S4, S6, A, B, Or((A, B)), And((A, B)), Xor(A, B), Not(A))
        for zero_suppression in (True, False):
            crowded = ATree(identities=Identities(modulus), zero_suppression=zero_suppression)
            roomy = ATree(zero_suppression=zero_suppression)
            scan = LinearScan()
            for index in (crowded, roomy, scan):
                for id, expression in enumerate(expressions):
                    index.add(id, expression)
            assert crowded.describe().nodes == roomy.describe().nodes
            check_structure(crowded)
            for bits in range(256):
                publication = {name: bits >> place & 1 for place, name in enumerate("abcdefgh")}
                assert list(crowded.match(publication).ids) == list(scan.match(publication).ids)

    def test_the_structure_does_not_depend_on_the_hash_seed(self) -> None:
        printed = {_structure_under(seed) for seed in ("0", "1", "4711")}
        assert len(printed) == 1
        assert "evaluated" in printed.pop()


_SCRIPT = """
import random
from matching import And, Not, Operator, Or, Predicate, Xor
from matching.indexes.a_tree import ATree

rng = random.Random(7)
def expression(level):
    if level == 0:
        operator = rng.choice([Operator.EQ, Operator.GT, Operator.NE])
        return Predicate(f"a{rng.randrange(6)}", operator, (rng.randrange(4),))
    parts = [expression(level - 1) for _ in range(rng.randrange(2, 5))]
    return rng.choice([And, Or, lambda parts: Not(And(parts)), lambda parts: Xor(*parts[:2])])(parts)

index = ATree()
for id in range(60):
    index.add(id, expression(rng.randrange(3)))
for id in range(0, 60, 3):
    index.remove(id)
for node in index.nodes():
    print(node.identity, node.level, [node.identity for node in (*node.children, *node.listeners)])
reports = [index.match({f"a{n}": rng.randrange(4) for n in range(6)}) for _ in range(30)]
print("evaluated", [report.evaluated for report in reports], [list(report.ids) for report in reports])
"""


def _structure_under(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    root = Path(__file__).resolve().parents[4]
    run = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env=environment, cwd=root, check=True, capture_output=True, text=True
    )
    return run.stdout


class TestDeletion:
    def test_a_removed_node_leaves_its_children_to_its_parents(self) -> None:
        """[ATREE 4.2.4], here without self-adjustment, which would search for a new cover."""
        ab, abc = And((A, B)), And((A, B, C))
        index = tree_with(ab, abc, And((A, B, C, D)), self_adjustment=False)
        assert built_from(index, 3) == {node_of(abc), D}
        index.remove(2)
        assert built_from(index, 3) == {node_of(ab), C, D}
        index.remove(1)
        assert built_from(index, 3) == {A, B, C, D}
        check_structure(index)

    def test_with_self_adjustment_parents_get_the_next_best_cover(self) -> None:
        abc, bcd, ab = And((A, B, C)), And((B, C, D)), And((A, B))
        index = tree_with(ab, abc, bcd, And((A, B, C, D, E)))
        index.remove(2)
        assert built_from(index, 4) == {node_of(bcd), node_of(ab), E}
        index.remove(3)
        assert built_from(index, 4) == {node_of(ab), C, D, E}
        check_structure(index)

    def test_an_expression_remains_as_a_part_of_another(self) -> None:
        index = tree_with(ABC, S1)
        index.remove(1)
        assert node_of(ABC) in edges(index)
        index.remove(2)
        assert index.describe().nodes == 0

    def test_parts_that_fold_away_leave_nothing_behind(self) -> None:
        """Nodes below `AND FALSE`, and groups that are duplicates, are removed again during the insertion."""
        index = tree_with(S1, Or((A, And((Xor(D, EF), Or((And((G, H)), B)), FALSE)))), Or((And((EF, Or((F, E)))), D)))
        check_structure(index)
        assert index.describe().details["l-nodes"] == 6
        for id in (1, 2, 3):
            index.remove(id)
        assert not any(index.describe().details.values())

    def test_an_empty_index_is_as_small_as_a_new_one(self) -> None:
        """Memory is also freed in the predicate index: PS-Trees, ranges, patterns."""
        texts = ["a = 1", "a IN (1, 2, 3)", "a != 4", "a BETWEEN 2 AND 9", "a NOT BETWEEN 2 AND 9", "a > 5", "EXISTS a"]
        texts += ["NOT EXISTS a", "s CONTAINS 'x'", "s STARTS WITH 'abc'", "s MATCHES 'x+'", "s BETWEEN 'a' AND 'b'"]
        index = ATree()
        empty = index.describe().bytes
        for number, text in enumerate(texts):
            index.add(number, text)
            index.add(100 + number, f"{text} AND b = {number} XOR c = {number}")
        index.match({"a": 3, "s": "abcx", "b": 1})
        for id in list(index):
            index.remove(id)
        # Dictionaries that were larger before keep some capacity.
        assert index.describe().bytes < empty + 20_000
        assert not any(index.describe().details.values())


def xor_chain(length: int) -> Expression:
    chain: Expression = is_one("x0")
    for number in range(1, length):
        chain = (Xor if number % 3 else Xnor)(chain, is_one(f"x{number}"))
    return chain


def alternating_chain(length: int) -> Expression:
    chain: Expression = is_one("x0")
    for number in range(1, length):
        chain = (And if number % 2 else Or)((chain, is_one(f"x{number}")))
    return chain


def negated_chain(length: int) -> Expression:
    chain: Expression = is_one("x0")
    for number in range(1, length):
        chain = Not(And((chain, is_one(f"x{number % 7}")))) if number % 5 == 0 else Not(chain)
    return chain


def nested_conjunctions(length: int) -> Expression:
    chain: Expression = is_one("x0")
    for number in range(1, length):
        chain = And((chain, And((chain, is_one(f"x{number}")))))
    return chain


@pytest.mark.parametrize("chain", [xor_chain, alternating_chain, negated_chain, nested_conjunctions])
@pytest.mark.parametrize("zero_suppression", [True, False])
@pytest.mark.parametrize("propagation_on_demand", [True, False])
class TestDeepExpressions:
    def test_depth_is_no_limit(
        self, chain: Callable[[int], Expression], zero_suppression: bool, propagation_on_demand: bool
    ) -> None:
        length = 1100
        expression = chain(length)
        index = tree_with(
            expression,
            chain(length - 1),
            zero_suppression=zero_suppression,
            propagation_on_demand=propagation_on_demand,
        )
        for remainder in (1, 2, 3):
            publication = {f"x{number}": int(number % 4 % remainder == 0) for number in range(length)}
            expected = [1] if expression.matches(publication) else []
            expected += [2] if chain(length - 1).matches(publication) else []
            assert list(index.match(publication).ids) == expected
        assert list(index.match({}).ids) == []
        assert index.describe().nodes < 10 * length
        index.remove(1)
        index.remove(2)
        assert index.describe().nodes == 0

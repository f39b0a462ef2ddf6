"""Changes of the BE-Tree: the example of [BET 7.3] step by step, and the rules of overflow, deletion and domains."""

from __future__ import annotations

import random
import re

import pytest

import matching
from matching import And, Operator, Predicate
from matching.errors import UnknownIndexError, UnsupportedExpressionError
from matching.indexes.be_tree import BETree
from matching.indexes.be_tree.nodes import LeafNode, Subscription

EXAMPLE = {
    1: "a BETWEEN 1 AND 7 AND b = 1",
    2: "c = 1",
    3: "d = 1",
    4: "a BETWEEN 2 AND 6 AND b = 2",
    5: "d = 2",
    6: "c = 2 AND d = 3",
    7: "a BETWEEN 0 AND 7",
    8: "a BETWEEN 0 AND 1",
    9: "a BETWEEN 3 AND 5 AND b = 4",
}


def small_tree(max_capacity: int = 3) -> BETree:
    """A tree as in the example, which halves buckets."""
    return BETree(max_capacity=max_capacity, min_partition=2, directory="generic", equality_first=False)


def places(index: BETree) -> dict[str, list[list[int]]]:
    """The contents of the leaves by the attributes on their path, upper buckets first. `!` marks a split bucket."""
    found: dict[str, list[list[int]]] = {}
    for line in index.outline().splitlines():
        path, ids = line.rsplit(" [", 1)
        attributes = re.sub(r":\w+\[[^]/]*?( split)?\]", lambda match: "!" if match[1] else "", path)
        found.setdefault(attributes, []).append([int(id) for id in re.findall(r"\d+", ids)])
    return {path: [ids for ids in leaves if ids] for path, leaves in found.items()}


def fill(index: BETree, ids: range) -> None:
    for id in ids:
        index.add(id, EXAMPLE[id])
        index.check_invariants()


def test_the_example_of_the_paper() -> None:
    index = small_tree()
    fill(index, range(1, 4))
    assert places(index) == {"root": [[1, 2, 3]]}

    fill(index, range(4, 5))
    assert places(index) == {"root": [[2, 3]], "root/a": [[1, 4]]}, "the root overflows and is partitioned by a"

    fill(index, range(5, 7))
    assert places(index) == {"root": [[2]], "root/a": [[1, 4]], "root/d": [[3, 5, 6]]}, "and again, by d"

    fill(index, range(7, 9))
    assert places(index) == {
        "root": [[2]],
        "root/a!": [[1, 4, 7]],
        "root/a": [[8]],
        "root/d": [[3, 5, 6]],
    }, "the leaf below a overflows and is clustered"

    fill(index, range(9, 10))
    assert places(index) == {
        "root": [[2]],
        "root/a!": [[7]],
        "root/a": [[8]],
        "root/a!/b": [[1, 4, 9]],
        "root/d": [[3, 5, 6]],
    }, "the upper bucket below a, split already, overflows and is partitioned by b"
    assert list(index.match({"a": 4, "b": 4}).ids) == [7, 9]
    assert list(index.match({"a": 1, "c": 2, "d": 3}).ids) == [6, 7, 8]


def test_the_removed_example_leaves_nothing() -> None:
    index = small_tree()
    fill(index, range(1, 10))
    for id in (9, 1, 8):
        index.remove(id)
        index.check_invariants()
    assert places(index) == {"root": [[2]], "root/a": [[4, 7]], "root/d": [[3, 5, 6]]}, (
        "below b one was left, which is no partition; below a the halves are one bucket again"
    )
    for id in (2, 3, 4, 5, 6, 7):
        index.remove(id)
        index.check_invariants()
    structure = index.describe()
    assert (structure.nodes, structure.levels) == (0, 0)
    assert not any(structure.details.values())


def test_a_partitioned_bucket_does_not_merge_its_halves() -> None:
    """The merge rule: only an open bucket merges with its halves."""
    index = small_tree()
    fill(index, range(1, 10))
    index.remove(7)
    index.check_invariants()
    assert places(index)["root/a"] == [[8]]
    assert places(index)["root/a!/b"] == [[1, 4, 9]]


def test_a_leaf_without_common_attributes_grows_in_units_of_a_leaf() -> None:
    index = small_tree()
    for id in range(10):
        index.add(id, f"a{id} = 1")
        index.check_invariants()
    assert places(index) == {"root": [list(range(10))]}
    index.add(10, "a3 = 2")
    index.add(11, "a3 = 3")
    index.add(12, "a5 = 2")
    assert index.describe().details["in the root's leaf"] <= 13
    for id in range(13, 20):
        index.add(id, f"a{id % 10} = 7")
        index.check_invariants()
    assert index.describe().details["in the root's leaf"] <= 3


def test_equal_subscriptions_share_one_path_and_stay_apart_from_others() -> None:
    index = small_tree(max_capacity=5)
    for id in range(200):
        index.add(id, "a = 1 AND b > 2")
    index.check_invariants()
    assert index.describe().details["leaf nodes"] == 1
    assert index.match({"a": 2, "b": 3}).candidates == 0
    assert index.match({"a": 1, "b": 3}).matched == 200


def test_long_equal_conjunctions_make_deep_paths_without_recursion() -> None:
    index = BETree()
    long = And([Predicate(f"a{number}", Operator.EQ, (number,)) for number in range(600)])
    for id in range(8):
        index.add(id, long)
    assert index.describe().details["most attributes on a path"] == 600
    assert index.match({f"a{number}": number for number in range(600)}).matched == 8
    for id in range(8):
        index.remove(id)
    assert index.describe().nodes == 0


@pytest.mark.parametrize("directory", ["generic", "specialised", "hybrid"])
def test_a_growing_domain_moves_open_intervals_to_their_new_homes(directory: str) -> None:
    """`x > 60` and `x < 40` extend to the ends of the domain, which move outwards with every power of two."""
    index = BETree(max_capacity=2, min_partition=1, directory=directory)
    for id, bound in enumerate((1, 3, 60, -5, 1000, -70000, 2**40, -(2.0**70), 0.001)):
        index.add(3 * id, f"x > {bound!r}")
        index.add(3 * id + 1, f"x < {bound!r}")
        index.add(3 * id + 2, f"x BETWEEN {bound!r} AND {bound + 1!r}")
        index.check_invariants()
    scan = matching.create("scan")
    for id in index:
        scan.add(id, index.expression(id))
    for value in (-(2.0**80), -70000, -69999.5, -5, 0, 0.0005, 1, 2, 61, 999, 1001, 2**41, float("inf"), float("-inf")):
        assert list(index.match({"x": value}).ids) == list(scan.match({"x": value}).ids)


def test_open_intervals_are_clustered_within_the_domain() -> None:
    index = small_tree()
    for id in range(40):
        index.add(id, f"x < {10 + id % 20}" if id % 2 else f"x > {100 + id % 20}")
    index.add(40, "x BETWEEN 0 AND 127")
    assert index.match({"x": 120}).candidates <= 21
    assert index.match({"x": 5}).candidates <= 21


def test_small_integers_are_separated_after_few_levels() -> None:
    index = small_tree()
    for id in range(256):
        index.add(id, f"x = {id}")
    assert index.describe().levels <= 11
    assert index.match({"x": 77}).candidates <= 3


def test_conditions_that_are_no_interval_cost_nothing_when_the_attribute_is_missing() -> None:
    index = BETree()
    for id, text in enumerate(("a != 3", "a NOT IN (1, 2)", "a NOT BETWEEN 1 AND 4", "EXISTS a", "a > 7") * 8):
        index.add(id, text)
    assert index.match({"b": 3}).candidates == 0
    assert index.match({"a": 3}).matched == 16


def test_conditions_without_access_are_in_the_root() -> None:
    index = BETree()
    index.add(1, matching.TRUE)
    for id in range(2, 20):
        index.add(id, "NOT EXISTS a")
    assert index.match({"a": 1}).matched == 1
    assert index.match({"b": 1}).matched == 19
    assert index.describe().details["in the root's leaf"] == 19


def test_construction_work_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured by how often a subscription is added to a leaf, not by time."""
    calls = 0
    put = LeafNode.put

    def counting(leaf: LeafNode, subscription: Subscription) -> None:
        nonlocal calls
        calls += 1
        put(leaf, subscription)

    monkeypatch.setattr(LeafNode, "put", counting)

    def placements(count: int) -> float:
        nonlocal calls
        calls = 0
        index = BETree()
        generator = random.Random(5)
        for id in range(count):
            attributes = generator.sample(range(50), 4)
            index.add(id, And([Predicate(f"a{a}", Operator.GT, (generator.randrange(100),)) for a in attributes]))
        return calls / count

    assert placements(4000) < 1.5 * placements(1000)


def test_a_disjunction_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedExpressionError, match="be-tree holds conjunctions"):
        BETree().add(1, "a = 1 OR b = 2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"directory": "hybird"}, "did you mean 'hybrid'"),
        ({"max_capacity": 0}, "max_capacity is 0"),
        ({"alpha": 1.5}, "alpha is 1.5"),
        ({"lazy": True, "bitmap": True}, "lazily or by bitmap"),
        ({"bloom": 1}, "did you mean 'bloom_bits'"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UnknownIndexError, match=message):
        matching.create("be-tree", None, **options)

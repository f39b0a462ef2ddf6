"""PSTHash records subscriptions under combinations of spaces, as in the example of the thesis. A split copies."""

from __future__ import annotations

import pytest

from matching.expressions.values import TypeClass
from matching.indexes.pst.hash import PSTHash


def recorded(index: PSTHash) -> dict[tuple[str, ...], list[int]]:
    """The ids under each key. Spaces are named by their dimension and lower end."""
    names = {
        leaf.space: f"{tree.dimension[0]} from {lower}" for tree in index._trees for (lower, _), leaf in tree.spaces()
    }
    table = index._table.records
    return {tuple(sorted(names[space] for space in key)): list(records) for key, records in table.items()}


def test_the_index_of_thesis_8_1() -> None:
    index = PSTHash()
    index.add(1, "attr1 = 1 AND attr2 = -1 AND attr3 < 0")
    index.add(2, "attr1 = 1 AND attr2 = -1 AND attr3 > 0")
    index.add(3, "attr1 = 1 AND attr2 < -1 AND attr3 = 0")
    index.add(4, "attr1 < 1 AND attr2 = -1 AND attr3 = 0")
    assert recorded(index) == {
        ("attr1 from 1", "attr2 from -1"): [1, 2],
        ("attr1 from 1", "attr3 from 0"): [3],
        ("attr2 from -1", "attr3 from 0"): [4],
    }
    report = index.match({"attr1": 1, "attr2": -1, "attr3": 2})
    assert (list(report.ids), report.candidates) == ([2], 2)


def test_a_split_copies_the_records_and_a_merge_drops_them() -> None:
    index = PSTHash()
    index.add(1, "a BETWEEN 0 AND 10 AND b = 1")
    index.add(2, "a BETWEEN 5 AND 10 AND b = 1")
    assert recorded(index) == {
        ("a from 0", "b from 1"): [1],
        ("a from 5", "b from 1"): [1, 2],
    }
    index.remove(2)
    assert recorded(index) == {("a from 0", "b from 1"): [1]}
    tree = index._trees.get(("a", TypeClass.NUMBER))
    assert tree is not None
    assert len(tree.leaves) == 3


def test_small_and_very_wide_subscriptions_are_stored_as_in_pst_bloom() -> None:
    index = PSTHash(most_keys=4)
    index.add(1, "a = 1")
    for number in range(10):
        index.add(10 + number, f"a = {number} AND b = {number}")
    index.add(2, "a < 100 AND b < 100")
    assert index.describe().details["in PSTBloom's part"] == 2
    assert list(index.match({"a": 1}).ids) == [1]
    assert list(index.match({"a": 1, "b": 1}).ids) == [1, 2, 11]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_any_number_of_access_predicates_gives_the_same_answers(count: int) -> None:
    index = PSTHash(access_predicates=count)
    index.add(1, "a = 1 AND b IN (1, 2) AND c BETWEEN 0 AND 9 AND d != 4")
    index.add(2, "a = 1 AND b = 2 AND c > 5")
    index.add(3, "b = 2 AND c > 5")
    assert list(index.match({"a": 1, "b": 2, "c": 6, "d": 1}).ids) == [1, 2, 3]
    assert list(index.match({"a": 1, "b": 2, "c": 6, "d": 4}).ids) == [2, 3]
    assert list(index.match({"b": 2, "c": 6}).ids) == [3]


def test_fewer_than_two_access_predicates_are_refused() -> None:
    with pytest.raises(ValueError, match="pst-bloom"):
        PSTHash(access_predicates=1)

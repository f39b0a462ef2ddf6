"""PSTBloom builds the structure of the example in the thesis, adapts to publications, and prunes by signature."""

from __future__ import annotations

import itertools

import matching
from matching.expressions.values import TypeClass, successor
from matching.indexes.pst.bloom import PSTBloom


def attached(index: PSTBloom, attribute: str) -> dict[object, list[int]]:
    """The ids attached to each space of a numeric dimension, by the lower end of the space."""
    tree = index._trees.get((attribute, TypeClass.NUMBER))
    assert tree is not None
    return {
        lower: [entry.id for entry in leaf.attached.values()] for (lower, _), leaf in tree.spaces() if leaf.attached
    }


def signed(index: PSTBloom, attribute: str) -> dict[object, list[int]]:
    tree = index._trees.get((attribute, TypeClass.NUMBER))
    assert tree is not None
    mask = index._signatures[tree].mask
    found = {
        lower: [entry.id for entry in index._entries.values() if has_bit(leaf.signature, entry.number & mask)]
        for (lower, _), leaf in tree.spaces()
    }
    return {lower: ids for lower, ids in found.items() if ids}


def has_bit(signature: bytearray, position: int) -> bool:
    return bool(signature[position >> 3] >> (position & 7) & 1)


def test_the_index_of_thesis_7_1() -> None:
    index = PSTBloom()
    index.add(1, "attr1 < -5 AND attr2 BETWEEN 1 AND 5")
    index.add(2, "attr1 BETWEEN -5 AND -1 AND attr2 < 1")
    index.add(3, "attr1 BETWEEN -5 AND -1 AND attr2 > 5")
    assert attached(index, "attr2") == {1: [1]}
    assert attached(index, "attr1") == {-5: [2, 3]}
    assert signed(index, "attr1") == {float("-inf"): [1]}
    assert signed(index, "attr2") == {float("-inf"): [2], successor(5): [3]}
    assert list(index.match({"attr1": -3, "attr2": 0}).ids) == [2]
    assert list(index.match({"attr1": -6, "attr2": 5}).ids) == [1]
    assert list(index.match({"attr1": -6, "attr2": 6}).ids) == []


def test_a_signature_prunes_a_candidate_before_its_predicates_are_evaluated() -> None:
    index = matching.create("pst-bloom")
    index.add(1, "a = 1 AND b < 5")
    report = index.match({"a": 1, "b": 7})
    assert (report.matched, report.candidates, report.evaluated) == (0, 1, 0)
    report = index.match({"a": 1})
    assert (report.matched, report.candidates, report.evaluated) == (0, 1, 0)


def test_the_access_condition_follows_the_publications_seen() -> None:
    """Without publications, equality on `common` and `rare` rank alike. Publications show which is more selective."""
    index = PSTBloom()
    index.add(1, "common = 1")
    index.add(2, "rare = 1")
    for number in range(100):
        index.match({"common": 1, "rare": 1 if number == 0 else 2})
    index.add(3, "common = 1 AND rare = 1")
    assert attached(index, "rare") == {1: [2, 3]}
    assert attached(index, "common") == {1: [1]}


def test_operators_rank_as_in_thesis_3_3_while_there_are_no_events() -> None:
    ranked = ["= 1", "IN (1, 2)", "BETWEEN 1 AND 5", "BETWEEN 1 AND 10", "< 5", "NOT IN (1, 2)", "!= 1"]
    for better, worse in itertools.pairwise(ranked):
        index = PSTBloom()
        index.add(1, f"worse {worse} AND better {better}")
        tree = index._trees.get(("better", TypeClass.NUMBER))
        assert tree is not None
        assert any(leaf.attached for leaf in tree.leaves), f"{better} ranks before {worse}"


def test_signatures_stay_sharp_when_subscriptions_are_added_and_removed() -> None:
    """The next rebuild removes the bits of removed subscriptions, so candidates are still pruned."""
    index = PSTBloom()
    for round in range(20):
        for number in range(100):
            index.add(number, f"a = {number} AND b < {round}")
        for number in range(100):
            index.remove(number)
    index.add(1, "a = 1 AND b < 5")
    assert index.match({"a": 1, "b": 7}).evaluated == 0
    assert index.describe().details["signature bits"] < 1_000


def test_a_condition_that_is_true_almost_everywhere_is_evaluated_and_not_signed() -> None:
    index = PSTBloom()
    for number in range(10):
        index.add(number, f"a = {number} AND b = {number}")
    index.add(100, "a = 1 AND b != 5 AND c < 3")
    report = index.match({"a": 1, "b": 5, "c": 1})
    assert (list(report.ids), report.evaluated) == ([], 1)
    assert list(index.match({"a": 1, "b": 6, "c": 1}).ids) == [100]

"""BE-Tree adapts to its workload: the effect of each policy of [BET 5.2] on work and structure, never on time."""

from __future__ import annotations

import pytest

from experiments.workloads.be_gen import BeGen, BeGenParameters
from matching import Expression
from matching.expressions.values import Value
from matching.indexes.be_tree import BETree
from matching.indexes.be_tree.ranking import FixedWeight, OptimisticLoss, Ranking

SUBSCRIPTIONS = 1500


def workload(zipf: float, seed: int) -> tuple[list[Expression], list[dict[str, Value]]]:
    generated = BeGen(
        BeGenParameters(dimensions=60, event_size=20, zipf=zipf),
        subscriptions=SUBSCRIPTIONS,
        publications=80,
        seed=seed,
    )
    return list(generated.subscriptions()), list(generated.publications())


def candidates_each(index: BETree, publications: list[dict[str, Value]]) -> float:
    return sum(index.match(publication).candidates for publication in publications) / len(publications)


def replace_all(index: BETree, subscriptions: list[Expression], publications: list[dict[str, Value]]) -> None:
    """Adds subscriptions one by one, with a publication after every few, as in [BET 8.6.12]."""
    for id, subscription in enumerate(subscriptions):
        index.remove(id)
        index.add(id, subscription)
        if id % 5 == 0:
            index.match(publications[id // 5 % len(publications)])


def filled(subscriptions: list[Expression], **options: object) -> BETree:
    index = BETree(**options)  # type: ignore[arg-type]
    for id, subscription in enumerate(subscriptions):
        index.add(id, subscription)
    return index


def work_through_a_shift(recycling: bool) -> tuple[float, float, float, float]:
    """Candidates per publication: at first, after the shift, in an index built for it, after the shift back."""
    uniform, uniform_publications = workload(zipf=0.0, seed=1)
    skewed, skewed_publications = workload(zipf=1.0, seed=2)
    publications = [*uniform_publications, *skewed_publications]
    index = filled(uniform, recycling=recycling)
    at_first = candidates_each(index, publications)
    replace_all(index, skewed, publications)
    index.check_invariants()
    shifted = candidates_each(index, publications)
    made_for_it = candidates_each(filled(skewed, recycling=recycling), publications)
    replace_all(index, uniform, publications)
    candidates_each(index, 10 * publications)
    index.check_invariants()
    return at_first, shifted, made_for_it, candidates_each(index, publications)


def test_the_work_returns_to_its_level_after_the_workload_shifts_and_shifts_back() -> None:
    at_first, shifted, made_for_it, back = work_through_a_shift(recycling=True)
    assert shifted < 1.1 * made_for_it
    assert back < 1.15 * at_first


def test_without_recycling_the_former_workload_leaves_traces() -> None:
    at_first, _, _, back = work_through_a_shift(recycling=False)
    assert back > 1.25 * at_first


def hot_attribute(**options: object) -> BETree:
    """Every publication has `hot`, and few have any other attribute. All subscriptions have both.

    By popularity all subscriptions are below `hot`. There the other attributes are too rare for a partition.
    """
    index = BETree(equality_first=False, min_partition=4, window=40, alpha=0.9, **options)  # type: ignore[arg-type]
    for id in range(120):
        quarter = id % 4 * 32
        index.add(id, f"hot BETWEEN {quarter + 1} AND {quarter + 30} AND rare{id // 4} = 1")
    return index


def publish_hot(index: BETree, count: int) -> float:
    return candidates_each(index, [{"hot": number % 4 * 32 + number % 30 + 1} for number in range(count)])


def test_a_partition_that_does_not_pay_is_recycled() -> None:
    index, stuck = hot_attribute(), hot_attribute(recycling=False)
    assert publish_hot(index, 5) == publish_hot(stuck, 5) == 30
    publish_hot(index, 200)
    publish_hot(stuck, 200)
    assert index.work.recycled >= 1
    assert publish_hot(index, 20) <= 5, "what no partition takes, one leaf at most"
    assert publish_hot(stuck, 20) == 30
    index.check_invariants()
    assert list(index.match({"hot": 5, "rare3": 1}).ids) == [12]


def test_a_low_alpha_trusts_the_subscriptions_more_than_the_publications() -> None:
    patient = BETree(equality_first=False, min_partition=4, window=40, alpha=0.1)
    for id in range(120):
        patient.add(id, f"hot BETWEEN {id % 4 * 32 + 1} AND {id % 4 * 32 + 30} AND rare{id // 4} = 1")
    publish_hot(patient, 300)
    assert patient.work.recycled == 0


def test_a_partition_without_an_alternative_is_recycled_ever_more_rarely() -> None:
    index = BETree(window=10, recycle_below=1e9)
    for id in range(50):
        index.add(id, f"hot BETWEEN 10 AND {100 + id} AND hot != 60")
    for _ in range(3000):
        index.match({"hot": 60})
    assert 1 <= index.work.recycled <= 9


def test_a_publication_without_false_candidates_costs_no_partition() -> None:
    index = BETree(window=10)
    for id in range(50):
        index.add(id, "hot > 0")
    for _ in range(100):
        index.match({"hot": 1})
    assert index.work.recycled == 0


def place_of(index: BETree, id: int) -> str:
    """The path to the leaf of the subscription."""
    for line in index.outline().splitlines():
        path, ids = line.rsplit(" [", 1)
        if str(id) in ids.rstrip("]").split(", "):
            return path
    raise LookupError(id)


def test_reinsertion_moves_subscriptions_to_attributes_that_are_more_popular_now() -> None:
    def place_of_one_with_both(reinsertion: float) -> str:
        index = BETree(max_capacity=2, min_partition=2, equality_first=False, reinsertion=reinsertion)
        for id, text in enumerate(("x = 1", "x = 2", "x = 1 AND y = 1", *[f"y = {number}" for number in range(10)])):
            index.add(id, text)
        assert place_of(index, 2).startswith("root/x")
        index.add(20, "x = 1")
        index.add(21, "x = 1")
        index.check_invariants()
        return place_of(index, 2)

    assert place_of_one_with_both(reinsertion=0.0).startswith("root/x")
    assert place_of_one_with_both(reinsertion=1.0).startswith("root/y")


def test_random_policies_follow_their_seed() -> None:
    subscriptions, _ = workload(zipf=1.0, seed=3)

    def outline(seed: int) -> str:
        return filled(subscriptions[:400], exploration=0.5, reinsertion=0.5, seed=seed).outline()

    assert outline(1) == outline(1)
    assert outline(1) != outline(2)


def test_exploration_spreads_subscriptions_that_exploitation_puts_in_one_partition() -> None:
    def below_x(exploration: float) -> int:
        index = BETree(max_capacity=2, min_partition=1, exploration=exploration, seed=1)
        for id in range(10):
            index.add(id, f"x > {id}")
        for id in range(10, 13):
            index.add(id, f"y > {id}")
        for id in range(100, 200):
            index.add(id, f"x > {id} AND y > {id}")
        return sum(place_of(index, id).startswith("root/x") for id in range(100, 200))

    assert below_x(exploration=0.0) == 100
    assert 20 < below_x(exploration=1.0) < 80


def test_beta_falls_with_the_false_candidates_of_covered_conditions() -> None:
    false, true = BETree(tune_beta=True, recycling=False), BETree(tune_beta=True, recycling=False)
    for id in range(30):
        false.add(id, "x IN (0, 100)")
        true.add(id, "x BETWEEN 0 AND 100")
    for index in (false, true):
        assert index.beta == 0.5
        for _ in range(300):
            index.match({"x": 50})
    assert false.beta == 0.0
    assert true.beta == 0.5


def test_a_low_beta_prefers_attributes_with_equalities() -> None:
    def first_partition(beta: float) -> str:
        index = BETree(max_capacity=4, min_partition=2, equality_first=False, beta=beta)
        for id in range(5):
            index.add(id, f"often > {id}" + f" AND exact = {id}" * (id < 3))
        return place_of(index, 0)

    assert first_partition(beta=0.5).startswith("root/often")
    assert first_partition(beta=0.1).startswith("root/exact")


def test_rank_is_gain_minus_loss() -> None:
    """Equations 12 and 14."""
    ranking = Ranking(alpha=0.25, weight=FixedWeight(0.4), estimate=OptimisticLoss(), shortest_window=1)
    assert ranking.rank(subsumed=10, covered=5, loss=4.0) == pytest.approx(0.75 * (0.6 * 10 + 0.4 * 5) - 0.25 * 4)

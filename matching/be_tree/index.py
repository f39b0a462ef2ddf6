"""BETree: the index, from its options to its reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from matching.be_tree.adaptation import (
    Choice,
    Exploitation,
    Exploration,
    NoRecycling,
    NoReinsertion,
    RandomReinsertion,
    RankRecycling,
    Recycling,
    Reinsertion,
)
from matching.be_tree.bitmap import BitmapEvaluation
from matching.be_tree.bloom import BloomFilter, CandidateFilter, NoFilter
from matching.be_tree.dimensions import Dimensions
from matching.be_tree.directories import DIRECTORIES
from matching.be_tree.evaluation import Evaluation, LazyEvaluation, PlainEvaluation
from matching.be_tree.expressive import RELATIONS, ExpressionEvent, Semantics, event_sets, is_related
from matching.be_tree.inspection import outline, shape_of
from matching.be_tree.invariants import check_invariants
from matching.be_tree.keys import Access, access_to
from matching.be_tree.nodes import Clock, Subscription
from matching.be_tree.ranking import (
    AnyCondition,
    EqualityFirst,
    FixedWeight,
    HistogramLoss,
    OptimisticLoss,
    Preference,
    Ranking,
    TunedWeight,
)
from matching.be_tree.search import PointEvent, reached_leaves
from matching.be_tree.tree import Policies, Tree
from matching.conjunction import conditions_of
from matching.errors import UnknownIndexError
from matching.matcher import Found, Matcher, MatchReport
from matching.model import Expression, Operator
from matching.pst_bloom import conjunction_or_refuse
from matching.registry import nearest
from matching.values import Dimension, TypeClass, Value


@dataclass(frozen=True, slots=True)
class Work:
    """What all matches so far took."""

    publications: int = 0
    leaves: int = 0
    """Leaf nodes reached."""
    candidates: int = 0
    tests: int = 0
    """Conditions evaluated; with bitmaps, only those that are no intervals."""
    recycled: int = 0
    """Partition nodes taken apart because they did not pay."""


class BETree(Matcher):
    """A tree of two alternating cuts: by attribute, then by ranges of that attribute's values [BET].

    max_capacity     subscriptions in a leaf before it is cut
    min_partition    subscriptions that an attribute must take out of a leaf to be worth a partition node
    directory        "generic", "specialised" or "hybrid": how an attribute's values are clustered
    equality_first   use up a subscription's equality conditions before others
    selectivity      rank attributes by a histogram of their values too, not by popularity alone
    alpha, beta      weights of loss against gain, and of covered against subsumed conditions
    tune_beta        let beta follow the observed rate of false candidates
    recycling        take apart partitions whose rank falls below `recycle_below`
    reinsertion      share of an overflowing leaf that is inserted anew before it is cut
    exploration      how often a random partition node is chosen instead of the best
    lazy, bitmap     evaluate each distinct condition at most once, or beforehand
    bloom_bits       width of the attribute filter; 0 for none
    seed             of the random choices that reinsertion and exploration make
    """

    name = "be-tree"

    def __init__(
        self,
        max_capacity: int = 5,
        min_partition: int = 3,
        directory: str = "hybrid",
        equality_first: bool = True,
        selectivity: bool = False,
        alpha: float = 0.5,
        beta: float = 0.5,
        tune_beta: bool = False,
        recycling: bool = True,
        recycle_below: float = 0.0,
        reinsertion: float = 0.0,
        exploration: float = 0.0,
        lazy: bool = False,
        bitmap: bool = False,
        bloom_bits: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        _check_options(max_capacity, min_partition, directory, bloom_bits, lazy and bitmap)
        for option, share in (
            ("alpha", alpha),
            ("beta", beta),
            ("reinsertion", reinsertion),
            ("exploration", exploration),
        ):
            _check_share(option, share)
        random = Random(seed)
        ranking = Ranking(
            alpha,
            TunedWeight() if tune_beta else FixedWeight(beta),
            HistogramLoss() if selectivity else OptimisticLoss(),
        )
        preference: Preference = EqualityFirst() if equality_first else AnyCondition()
        choice: Choice = Exploration(ranking, exploration, random) if exploration else Exploitation(ranking)
        reinserting: Reinsertion = RandomReinsertion(reinsertion, random) if reinsertion else NoReinsertion()
        self._evaluation: Evaluation = LazyEvaluation() if lazy else BitmapEvaluation() if bitmap else PlainEvaluation()
        self._filter: CandidateFilter = BloomFilter(bloom_bits) if bloom_bits else NoFilter()
        self._recycling: Recycling = RankRecycling(ranking, recycle_below) if recycling else NoRecycling()
        self._weight = ranking.weight
        self._dimensions = Dimensions()
        self._clock = Clock()
        policies = Policies(
            max_capacity,
            min_partition,
            DIRECTORIES[directory],
            ranking,
            preference,
            choice,
            reinserting,
            self._evaluation,
        )
        self._tree = Tree(policies, self._clock, self._dimensions.name)
        self._subscriptions: dict[int, Subscription] = {}
        self._work = Work()

    @property
    def work(self) -> Work:
        return self._work

    def match_expression(self, event: Expression | str, semantics: Semantics) -> MatchReport:
        """Which subscriptions stand in this relation to an expression [BET 3.2]; see `matching.be_tree.expressive`."""
        if isinstance(event, str):
            from matching.language import parse

            event = parse(event)
        sets = event_sets(conjunction_or_refuse("an event of be-tree", event))
        relation = RELATIONS[semantics]
        leaves = reached_leaves(self._tree.root, ExpressionEvent(sets, self._dimensions))
        candidates = [each for leaf in leaves for each in leaf.subscriptions.values()]
        ids = sorted(each.id for each in candidates if is_related(each, self._absent_from(each), sets, relation))
        return MatchReport(ids, len(self), len(candidates), len(candidates))

    def outline(self) -> str:
        """The structure as text: equal for equal structures, whatever led to them."""
        return outline(self._tree.root, self._dimensions.name)

    def check_invariants(self) -> None:
        """Raises AssertionError if the tree is not as [BET 4.3] says it always is."""
        check_invariants(self._tree, self._subscriptions)

    def _insert(self, id: int, expression: Expression) -> None:
        clause = conjunction_or_refuse(self.name, expression)
        accesses: list[tuple[int, Access]] = []
        conditions = {}
        for condition in conditions_of(clause):
            number = self._acquire(condition.dimension)
            conditions[number] = condition
            accesses.append((number, access_to(condition)))
        absent = [
            self._acquire((predicate.attribute, TypeClass.ANY))
            for predicate in clause
            if predicate.operator is Operator.NOT_EXISTS
        ]
        # What likely fails first is verified first.
        accesses.sort(key=lambda numbered: _openness(numbered[1]))
        subscription = Subscription(id, conditions, dict(accesses), absent)
        subscription.signature = self._filter.signature(conditions)
        subscription.tests = {
            number: self._evaluation.prepare(number, conditions[number]) for number in subscription.accesses
        }
        self._subscriptions[id] = subscription
        self._clock.operations += 1
        self._tree.insert(subscription)

    def _delete(self, id: int, expression: Expression) -> None:
        subscription = self._subscriptions.pop(id)
        self._clock.operations += 1
        self._tree.delete(subscription)
        for prepared in subscription.tests.values():
            self._evaluation.release(prepared)
        for number in (*subscription.accesses, *subscription.absent):
            if self._dimensions.release(number):
                self._filter.forget(number)

    def _search(self, publication: dict[str, Value]) -> Found:
        self._clock.operations += 1
        self._clock.publications += 1
        located = self._dimensions.locate(publication)
        values = {number: value for number, (value, _) in located.items()}
        leaves = reached_leaves(self._tree.root, PointEvent(located))
        verdicts = self._evaluation.verify(self._filter.screen(leaves, values), values)
        candidates = sum(len(leaf.subscriptions) for leaf in leaves)
        self._weight.observe(leaves, values)
        poor = self._recycling.review(leaves, verdicts.discarded)
        for partition in poor:
            self._tree.recycle(partition)
        self._count(len(leaves), candidates, verdicts.tests, len(poor))
        return Found(verdicts.ids, candidates, verdicts.evaluated)

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        nodes, levels, details = shape_of(self._tree.root)
        return nodes, levels, {**details, "dimensions": len(self._dimensions)}

    def _acquire(self, dimension: Dimension) -> int:
        number, is_new = self._dimensions.acquire(dimension)
        if is_new:
            self._filter.learn(number, dimension[0])
        return number

    def _absent_from(self, subscription: Subscription) -> list[str]:
        return [self._dimensions.name(number)[0] for number in subscription.absent]

    def _count(self, leaves: int, candidates: int, tests: int, recycled: int) -> None:
        work = self._work
        self._work = Work(
            work.publications + 1,
            work.leaves + leaves,
            work.candidates + candidates,
            work.tests + tests,
            work.recycled + recycled,
        )


def _openness(access: Access) -> int:
    """0 for a single value, then by how many ends the interval lacks."""
    if access.point is not None:
        return 0
    return 1 + (access.low is None) + (access.high is None)


def _check_options(max_capacity: int, min_partition: int, directory: str, bloom_bits: int, is_both: bool) -> None:
    for option, number, least in (
        ("max_capacity", max_capacity, 1),
        ("min_partition", min_partition, 1),
        ("bloom_bits", bloom_bits, 0),
    ):
        if number < least:
            raise UnknownIndexError(f"be-tree: {option} is {number}, and must be at least {least}")
    if directory not in DIRECTORIES:
        raise UnknownIndexError(
            f"be-tree has no directory {directory!r}{nearest(directory, DIRECTORIES)}; there are {', '.join(DIRECTORIES)}"
        )
    if is_both:
        raise UnknownIndexError("be-tree evaluates lazily or by bitmap, not both; leave one option out")


def _check_share(option: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise UnknownIndexError(f"be-tree: {option} is {share}, and must be from 0 to 1")

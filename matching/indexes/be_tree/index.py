"""BETree: the index with its options and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from matching.errors import UnknownIndexError
from matching.expressions.conjunction import conditions_of, require_conjunction
from matching.expressions.model import Expression, Operator, Predicate
from matching.expressions.normal_forms import Clause
from matching.expressions.values import Dimension, Value
from matching.indexes.be_tree.adaptation import (
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
from matching.indexes.be_tree.bitmap import BitmapEvaluation
from matching.indexes.be_tree.bloom import BloomFilter, CandidateFilter, NoFilter
from matching.indexes.be_tree.dimensions import Dimensions
from matching.indexes.be_tree.directories import DIRECTORIES
from matching.indexes.be_tree.evaluation import Evaluation, LazyEvaluation, PlainEvaluation
from matching.indexes.be_tree.expressive import RELATIONS, ExpressionEvent, Semantics, event_sets, is_related
from matching.indexes.be_tree.inspection import outline, shape_of
from matching.indexes.be_tree.invariants import check_invariants
from matching.indexes.be_tree.keys import access_to
from matching.indexes.be_tree.nodes import Clock, Requirement, Subscription
from matching.indexes.be_tree.ranking import (
    AnyCondition,
    EqualityFirst,
    FixedWeight,
    HistogramLoss,
    OptimisticLoss,
    Preference,
    Ranking,
    TunedWeight,
)
from matching.indexes.be_tree.search import PointEvent, reached_leaves
from matching.indexes.be_tree.tree import Policies, Tree
from matching.matcher import Matcher, MatchReport, SearchResult
from matching.nearest import nearest


@dataclass(frozen=True, slots=True)
class Work:
    """The work of all matches so far."""

    publications: int = 0
    leaves: int = 0
    """The number of leaf nodes reached."""
    candidates: int = 0
    tests: int = 0
    """The number of conditions evaluated. With bitmaps, only conditions that are not intervals are evaluated."""
    recycled: int = 0
    """The number of partition nodes removed because they did not pay."""


class BETree(Matcher):
    """A tree that alternates two divisions: by attribute, then by ranges of that attribute's values [BET].

        max_capacity     subscriptions in a leaf before it is split
        min_partition    subscriptions that must move from a leaf to a new partition node
        directory        "generic", "specialised" or "hybrid": how an attribute's values are clustered
        equality_first   partition by a subscription's equality conditions before others
        selectivity      rank attributes also by a histogram of their values, not by popularity alone
        alpha, beta      weights of loss against gain, and of covered against subsumed conditions
        tune_beta        adjust beta to the observed rate of false candidates
        recycling        remove partitions whose rank is below `recycle_below` at the end of a window
        window           operations in a window, or a tenth of the partition's subscriptions if that is more
        reinsertion      share of an overflowing leaf that is reinserted before the leaf is split
        exploration      probability that a random partition node is chosen instead of the best
        lazy, bitmap     evaluate each distinct condition at most once, or beforehand
        bloom_bits       width of the attribute filter; 0 for none
        seed             seed of the random choices of reinsertion and exploration

    Departs from [BET 8.1]: the smallest partition is 1, not 3. With thousands of attributes, an attribute that only one
    or two subscriptions use would leave them in the root's leaf, which every publication evaluates.
    Departs from [BET 5.1]: alpha is 0.75, not 0.5. With equal weights, partitions that a former workload made popular
    are kept. The work after that workload then stays a third above the work before it.
    """

    name = "be-tree"

    def __init__(
        self,
        *,
        max_capacity: int = 5,
        min_partition: int = 1,
        directory: str = "hybrid",
        equality_first: bool = True,
        selectivity: bool = False,
        alpha: float = 0.75,
        beta: float = 0.5,
        tune_beta: bool = False,
        recycling: bool = True,
        recycle_below: float = 0.0,
        window: int = 200,
        reinsertion: float = 0.0,
        exploration: float = 0.0,
        lazy: bool = False,
        bitmap: bool = False,
        bloom_bits: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        _check_at_least(1, max_capacity=max_capacity, min_partition=min_partition, window=window)
        _check_at_least(0, bloom_bits=bloom_bits)
        _check_shares(alpha=alpha, beta=beta, reinsertion=reinsertion, exploration=exploration)
        _check_kinds(directory, is_doubly_evaluated=lazy and bitmap)
        random = Random(seed)
        ranking = Ranking(
            alpha,
            TunedWeight() if tune_beta else FixedWeight(beta),
            HistogramLoss() if selectivity else OptimisticLoss(),
            window,
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
        self._requirements: dict[Clause, Requirement] = {}
        self._work = Work()

    @property
    def work(self) -> Work:
        return self._work

    @property
    def beta(self) -> float:
        """The weight of covered conditions. It changes with publications if `tune_beta` is set."""
        return self._weight.beta

    def match_expression(self, event: Expression | str, semantics: Semantics) -> MatchReport:
        """Finds the subscriptions that have this relation to an expression [BET 3.2]; see `expressive`."""
        if isinstance(event, str):
            from matching.languages.sql import parse

            event = parse(event)
        sets = event_sets(require_conjunction("an event of be-tree", event))
        relation = RELATIONS[semantics]
        leaves = reached_leaves(self._tree.root, ExpressionEvent(sets, self._dimensions))
        candidates = [each for leaf in leaves for each in leaf.subscriptions.values()]
        ids = sorted(each.id for each in candidates if is_related(each, self._absent_from(each), sets, relation))
        return MatchReport(ids, len(self), len(candidates), len(candidates))

    def outline(self) -> str:
        """The structure as text. Equal structures have equal texts, whatever operations created them."""
        return outline(self._tree.root, self._dimensions.name)

    def check_invariants(self) -> None:
        """Raises AssertionError if the tree violates an invariant of [BET 4.3]."""
        check_invariants(self._tree, self._subscriptions)

    def _insert(self, id: int, expression: Expression) -> None:
        clause = require_conjunction(self.name, expression)
        grouped: dict[Dimension, list[Predicate]] = {}
        absent = []
        for predicate in clause:
            if predicate.operator is Operator.NOT_EXISTS:
                absent.append(self._acquire_dimension(predicate.dimension))
            else:
                grouped.setdefault(predicate.dimension, []).append(predicate)
        required = [self._acquire(tuple(predicates)) for predicates in grouped.values()]
        required.sort(key=lambda requirement: requirement.access.openness)
        requirements = {requirement.dimension: requirement for requirement in required}
        subscription = Subscription(id, requirements, absent, self._filter.signature(requirements))
        self._subscriptions[id] = subscription
        self._clock.operations += 1
        self._tree.insert(subscription)

    def _acquire(self, predicates: Clause) -> Requirement:
        """Counts one more user of these predicates, which are all on one dimension. Returns their requirement."""
        requirement = self._requirements.get(predicates)
        if requirement is None:
            (condition,) = conditions_of(predicates)
            number = self._acquire_dimension(condition.dimension)
            prepared = self._evaluation.prepare(number, condition)
            requirement = Requirement(number, condition, access_to(condition), prepared)
            self._requirements[predicates] = requirement
        requirement.users += 1
        return requirement

    def _release(self, requirement: Requirement) -> None:
        requirement.users -= 1
        if not requirement.users:
            del self._requirements[requirement.condition.predicates]
            self._evaluation.release(requirement.prepared)
            self._release_dimension(requirement.dimension)

    def _acquire_dimension(self, dimension: Dimension) -> int:
        number, is_new = self._dimensions.acquire(dimension)
        if is_new:
            self._filter.add_dimension(number, dimension[0])
        return number

    def _release_dimension(self, number: int) -> None:
        if self._dimensions.release(number):
            self._filter.remove_dimension(number)

    def _delete(self, id: int, expression: Expression) -> None:
        subscription = self._subscriptions.pop(id)
        self._clock.operations += 1
        self._tree.delete(subscription)
        for requirement in subscription.requirements.values():
            self._release(requirement)
        for number in subscription.absent:
            self._release_dimension(number)

    def _search(self, publication: dict[str, Value]) -> SearchResult:
        self._clock.operations += 1
        self._clock.publications += 1
        located = self._dimensions.locate(publication)
        values = {number: value for number, (value, _) in located.items()}
        leaves = reached_leaves(self._tree.root, PointEvent(located))
        verdicts = self._evaluation.verify(self._filter.filter_leaves(leaves, values), values)
        candidates = sum(len(leaf.subscriptions) for leaf in leaves)
        self._weight.observe(leaves, values)
        unprofitable = self._recycling.review(leaves, verdicts.discarded)
        for partition in unprofitable:
            self._tree.recycle(partition)
        self._count(len(leaves), candidates, verdicts.tests, len(unprofitable))
        return SearchResult(verdicts.ids, candidates, verdicts.evaluated)

    def _shape(self) -> tuple[int, int, Mapping[str, int]]:
        nodes, levels, details = shape_of(self._tree.root)
        return nodes, levels, {**details, "dimensions": len(self._dimensions)}

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


def _check_at_least(least: int, **options: int) -> None:
    for option, number in options.items():
        if number < least:
            raise UnknownIndexError(f"be-tree: {option} is {number}, and must be at least {least}")


def _check_shares(**options: float) -> None:
    for option, share in options.items():
        if not 0 <= share <= 1:
            raise UnknownIndexError(f"be-tree: {option} is {share}, and must be from 0 to 1")


def _check_kinds(directory: str, is_doubly_evaluated: bool) -> None:
    if directory not in DIRECTORIES:
        close = nearest(directory, DIRECTORIES)
        raise UnknownIndexError(f"be-tree has no directory {directory!r}{close}; there are {', '.join(DIRECTORIES)}")
    if is_doubly_evaluated:
        raise UnknownIndexError("be-tree evaluates lazily or by bitmap, not both; leave one option out")

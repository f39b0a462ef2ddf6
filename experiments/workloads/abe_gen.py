"""ABE-Gen: arbitrary expressions, as trees of connectives over predicates.

A tree is drawn from its root: a connective, then its children, down to predicates at the last level. Below the root, a
level's subexpressions are drawn from a pool by a Zipf distribution. So some occur in many expressions and most in few.
With exponent 0 each subexpression is drawn independently.

[ATREE 6.1, Table 3], [THESIS 10.4.1, Table 10.4.1]. The papers state neither the size of a pool nor the operators of
predicates. Here a pool has a quarter of the subexpressions that a level needs. This gives each about 4.4 uses at the
default exponent (the paper reports 4.33). Predicates are equalities or one of the other comparisons.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from experiments.errors import WorkloadError
from experiments.workloads.sampling import RankSampler, zipf
from experiments.workloads.workload import attribute, check_at_least, check_between
from matching.expressions.model import And, Expression, Not, Operator, Or, Predicate, Xnor, Xor
from matching.expressions.values import Value
from topologies.random_streams import stream

_COMPARISONS = (Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE)
_CONNECTIVES = (And, Or, Not, Xor, Xnor)


@dataclass(frozen=True, slots=True)
class AbeGenParameters:
    depth: int = 3
    """Levels of an expression, predicates included."""
    children: int = 4
    """Mean number of children of AND and OR. The number is uniform from 2 to 2 * children - 2."""
    connectives: tuple[float, ...] = (0.4, 0.4, 0.1, 0.05, 0.05)
    """Shares of AND, OR, NOT, XOR and XNOR."""
    sharing: float = 0.6
    """Exponent of the distribution of subexpressions; with 0 they are shared by chance only."""
    pool_share: float = 0.25
    """Size of a level's pool, as a share of the subexpressions that the level needs."""
    repeats: int = 0
    """The number of additional copies of each expression."""
    dimensions: int = 1000
    cardinality: int = 100
    event_size: int = 20
    equality: float = 0.2
    zipf: float = 0.0
    """Exponent of the distribution of dimensions; 0 is uniform."""

    def __post_init__(self) -> None:
        check_between("abe-gen", "depth", self.depth, 1, 12)
        check_between("abe-gen", "children", self.children, 2, 100)
        check_between("abe-gen", "sharing", self.sharing, 0, 20)
        check_between("abe-gen", "pool_share", self.pool_share, 1e-6, 1)
        check_at_least("abe-gen", "repeats", self.repeats, 0)
        check_at_least("abe-gen", "cardinality", self.cardinality, 2)
        check_between("abe-gen", "event_size", self.event_size, 1, self.dimensions)
        check_between("abe-gen", "equality", self.equality, 0, 1)
        check_between("abe-gen", "zipf", self.zipf, 0, 20)
        if len(self.connectives) != len(_CONNECTIVES) or min(self.connectives) < 0 or sum(self.connectives) <= 0:
            raise WorkloadError(
                f"abe-gen: connectives is {self.connectives}; it must be five shares, of AND, OR, NOT, XOR and XNOR"
            )

    @property
    def mean_children(self) -> float:
        conjunction, disjunction, negation, *exclusive = self.connectives
        weighted = (conjunction + disjunction) * self.children + negation + 2 * sum(exclusive)
        return weighted / sum(self.connectives)


class AbeGen:
    notice: ClassVar[str] = ""

    def __init__(self, parameters: AbeGenParameters, *, subscriptions: int, publications: int, seed: int) -> None:
        self._parameters = parameters
        self._subscriptions = subscriptions
        self._publications = publications
        self._seed = seed
        self._connectives = RankSampler([round(share * 1_000_000) for share in parameters.connectives])
        self._dimensions = zipf(parameters.dimensions, parameters.zipf)

    def subscriptions(self) -> Iterator[Expression]:
        for number in range(self._subscriptions):
            # Drawn again, not cached: a repeated expression must be equal, but not the same object.
            original = number // (self._parameters.repeats + 1)
            yield self._expression(stream(self._seed, f"abe-gen/expression {original}"), self._parameters.depth)

    def publications(self) -> Iterator[dict[str, Value]]:
        rng = stream(self._seed, "abe-gen/publications")
        for _ in range(self._publications):
            ranks = sorted(self._dimensions.draw_distinct(rng, self._parameters.event_size))
            yield {attribute(rank): rng.randrange(self._parameters.cardinality) for rank in ranks}

    @cached_property
    def _pools(self) -> dict[int, RankSampler]:
        """Samplers of the ranks of subexpressions, for each level between the predicates (level 1) and the root."""
        parameters = self._parameters
        expressions = self._subscriptions / (parameters.repeats + 1)
        pools = {}
        for level in range(parameters.depth - 1, 1, -1):
            needed = expressions * parameters.mean_children ** (parameters.depth - level)
            pools[level] = zipf(max(1, round(needed * parameters.pool_share)), parameters.sharing)
        return pools

    def _expression(self, rng: random.Random, level: int) -> Expression:
        if level == 1:
            return self._predicate(rng)
        connective = _CONNECTIVES[self._connectives.draw(rng)]
        if connective is Not:
            return Not(self._child(rng, level - 1))
        if connective is Xor or connective is Xnor:
            return connective(self._child(rng, level - 1), self._child(rng, level - 1))
        count = rng.randint(2, 2 * self._parameters.children - 2)
        children = [self._child(rng, level - 1) for _ in range(count)]
        return And(children) if connective is And else Or(children)

    def _child(self, rng: random.Random, level: int) -> Expression:
        if level == 1 or self._parameters.sharing == 0:
            return self._expression(rng, level)
        # A stream for each rank gives the pool without storing it. It gives new objects, so an index must find shared
        # subexpressions by comparison, as for different clients.
        rank = self._pools[level].draw(rng)
        return self._expression(stream(self._seed, f"abe-gen/level {level}/{rank}"), level)

    def _predicate(self, rng: random.Random) -> Predicate:
        parameters = self._parameters
        operator = Operator.EQ if rng.random() < parameters.equality else rng.choice(_COMPARISONS)
        name = attribute(self._dimensions.draw(rng))
        return Predicate(name, operator, (rng.randrange(parameters.cardinality),))

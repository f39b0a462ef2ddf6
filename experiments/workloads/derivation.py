"""Derives predicates that a pair (attribute, value) implies, by the rules of [BET Table II].

Departs from [BET Table II]: `i < v` needs v strictly above the pair's value, and `i > v` strictly below. At equality
the pair does not imply them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from matching.expressions.model import Operator, Predicate


class OperatorClass(StrEnum):
    """Levels of expressiveness [BET Table IV]."""

    MIN = "min"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


_MEDIUM = (Operator.LT, Operator.LE, Operator.GE, Operator.GT, Operator.IN, Operator.BETWEEN)

OTHER_OPERATORS: dict[OperatorClass, tuple[Operator, ...]] = {
    OperatorClass.MIN: (),
    OperatorClass.LOW: (Operator.IN,),
    OperatorClass.MEDIUM: _MEDIUM,
    OperatorClass.HIGH: (*_MEDIUM, Operator.NE, Operator.NOT_IN),
}


@dataclass(frozen=True, slots=True)
class Domain:
    """The values 0 to cardinality - 1, and the sizes of predicates on them."""

    cardinality: int
    range_share: float
    """Mean length of a BETWEEN, as a share of the domain."""
    largest_list: int
    """The largest number of values of an IN or NOT IN."""


def implied_predicate(rng: random.Random, attribute: str, value: int, operator: Operator, domain: Domain) -> Predicate:
    return Predicate(attribute, operator, _RULES[operator](rng, value, domain))


def _equal(_rng: random.Random, value: int, _domain: Domain) -> tuple[int, ...]:
    return (value,)


def _another(rng: random.Random, value: int, domain: Domain) -> tuple[int, ...]:
    drawn = rng.randrange(domain.cardinality - 1)
    return (drawn if drawn < value else drawn + 1,)


def _above(rng: random.Random, value: int, domain: Domain) -> tuple[int, ...]:
    return (rng.randrange(value, domain.cardinality) + 1,)


def _same_or_above(rng: random.Random, value: int, domain: Domain) -> tuple[int, ...]:
    return (rng.randrange(value, domain.cardinality),)


def _below(rng: random.Random, value: int, _domain: Domain) -> tuple[int, ...]:
    return (rng.randrange(value + 1) - 1,)


def _same_or_below(rng: random.Random, value: int, _domain: Domain) -> tuple[int, ...]:
    return (rng.randrange(value + 1),)


def _others(rng: random.Random, value: int, domain: Domain, count: int) -> tuple[int, ...]:
    drawn = rng.sample(range(domain.cardinality - 1), count)
    return tuple(other if other < value else other + 1 for other in drawn)


def _list_with(rng: random.Random, value: int, domain: Domain) -> tuple[int, ...]:
    largest = min(domain.largest_list, domain.cardinality)
    return (value, *_others(rng, value, domain, rng.randint(min(2, largest), largest) - 1))


def _list_without(rng: random.Random, value: int, domain: Domain) -> tuple[int, ...]:
    largest = min(domain.largest_list, domain.cardinality - 1)
    return _others(rng, value, domain, rng.randint(1, largest))


def _range_around(rng: random.Random, value: int, domain: Domain) -> tuple[int, ...]:
    """A range that contains the value. Its length is uniform around the mean, and the value's position in it uniform.

    The range is cut at the ends of the domain.
    """
    mean = max(1, round(domain.range_share * domain.cardinality))
    length = rng.randrange(1, 2 * mean)
    low = value - rng.randrange(length)
    return max(0, low), min(domain.cardinality - 1, low + length - 1)


_RULES: dict[Operator, Callable[[random.Random, int, Domain], tuple[int, ...]]] = {
    Operator.EQ: _equal,
    Operator.NE: _another,
    Operator.LT: _above,
    Operator.LE: _same_or_above,
    Operator.GT: _below,
    Operator.GE: _same_or_below,
    Operator.IN: _list_with,
    Operator.NOT_IN: _list_without,
    Operator.BETWEEN: _range_around,
}

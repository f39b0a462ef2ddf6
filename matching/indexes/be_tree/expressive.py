"""Expressive events: an expression in the role of a publication [BET 3.2].

An event has a set of possible values for each of its attributes, and no other attributes. A subscription also has a set
of values for each of its attributes. The semantics defines the relation between these sets:

    STABBING_SUBSCRIPTION   the sets have a value in common, on every attribute of the subscription
    SYMMETRIC               the same, and the event has no attribute that the subscription lacks
    CONTAINMENT             the subscription's set is within the event's, on every attribute of the subscription
    EXACT                   both name the same attributes, with the same sets

The paper has two more, stabbing event and enclosure. They are not offered, because they include subscriptions with
attributes that the event does not have, and the tree finds only some of these.

`EXISTS a` is the set of all values of all classes. Suffixes, substrings and patterns are not unions of intervals, so
they are represented by the set of all strings. For them, stabbing may return too many subscriptions and containment too
few. `NOT EXISTS a` in a subscription is true if the event does not have `a`. A subscription that no publication
satisfies is related to no event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from matching.errors import ExpressionError
from matching.expressions.conjunction import Condition, conditions_of
from matching.expressions.intervals import ValueSet, everything
from matching.expressions.model import Operator
from matching.expressions.normal_forms import Clause
from matching.expressions.values import TypeClass
from matching.indexes.be_tree.dimensions import Dimensions
from matching.indexes.be_tree.nodes import ClusterNode, PartitionNode, Subscription
from matching.indexes.be_tree.search import Event

CLASSES = (TypeClass.NUMBER, TypeClass.STRING, TypeClass.BOOLEAN)

AttributeSet: TypeAlias = tuple[ValueSet, ...]
"""The values of one attribute, one set for each class."""


class Semantics(StrEnum):
    """The relation between an event that is an expression and the subscriptions that match it [BET 3.2]."""

    STABBING_SUBSCRIPTION = "stabbing-subscription"
    SYMMETRIC = "symmetric"
    CONTAINMENT = "containment"
    EXACT = "exact"


def attribute_sets(conditions: Iterable[Condition]) -> dict[str, AttributeSet]:
    sets: dict[str, AttributeSet] = {}
    for condition in conditions:
        attribute = condition.dimension[0]
        allowed = tuple(_values_of(condition, each) for each in CLASSES)
        if attribute in sets:
            allowed = tuple(one.intersection(other) for one, other in zip(sets[attribute], allowed, strict=True))
        sets[attribute] = allowed
    return sets


def _values_of(condition: Condition, type_class: TypeClass) -> ValueSet:
    own_class = condition.dimension[1]
    if own_class not in (type_class, TypeClass.ANY):
        return ValueSet(type_class, ())
    return everything(type_class) if condition.values is None else condition.values


def _is_empty(values: AttributeSet) -> bool:
    return all(each.is_empty for each in values)


def _intersect(one: AttributeSet, other: AttributeSet) -> bool:
    return any(not mine.intersection(its).is_empty for mine, its in zip(one, other, strict=True))


def _is_within(one: AttributeSet, other: AttributeSet) -> bool:
    return all(mine.is_within(its) for mine, its in zip(one, other, strict=True))


@dataclass(frozen=True, slots=True)
class Relation:
    """The conditions of a semantics on the sets of an attribute, and on the attributes."""

    holds: Callable[[AttributeSet, AttributeSet], bool]
    """Whether the sets of a subscription and an event are related."""
    is_mutual: bool
    """Whether the subscription must have all attributes of the event."""


RELATIONS = {
    Semantics.STABBING_SUBSCRIPTION: Relation(_intersect, is_mutual=False),
    Semantics.SYMMETRIC: Relation(_intersect, is_mutual=True),
    Semantics.CONTAINMENT: Relation(_is_within, is_mutual=False),
    Semantics.EXACT: Relation(lambda one, other: one == other, is_mutual=True),
}


def is_related(
    subscription: Subscription, absent: Iterable[str], event: Mapping[str, AttributeSet], relation: Relation
) -> bool:
    sets = attribute_sets(each.condition for each in subscription.requirements.values())
    if any(attribute in event for attribute in absent) or any(_is_empty(values) for values in sets.values()):
        return False
    if relation.is_mutual and len(event) != len(sets):
        return False
    return all(attribute in event and relation.holds(values, event[attribute]) for attribute, values in sets.items())


def event_sets(clause: Clause) -> dict[str, AttributeSet]:
    for predicate in clause:
        if predicate.operator is Operator.NOT_EXISTS:
            raise ExpressionError(
                f"an event says what there is: leave {predicate.attribute} out instead of {predicate}"
            )
    return attribute_sets(conditions_of(clause))


class ExpressionEvent(Event):
    def __init__(self, sets: Mapping[str, AttributeSet], dimensions: Dimensions) -> None:
        self._values: dict[int, ValueSet | None] = {}
        """The values by dimension. None for a dimension of presence."""
        for attribute, classes in sets.items():
            for values in classes:
                number = dimensions.number((attribute, values.type_class))
                if number is not None and not values.is_empty:
                    self._values[number] = values
            number = dimensions.number((attribute, TypeClass.ANY))
            if number is not None:
                self._values[number] = None
        self.dimensions = self._values.keys()

    def collect_buckets(self, partition: PartitionNode, into: list[ClusterNode]) -> None:
        partition.directory.collect_buckets_of_set(self._values[partition.dimension], into)

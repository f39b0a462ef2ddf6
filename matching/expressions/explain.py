"""Explains why a publication matches an expression or does not.

    false  AND
      true   symbol = 'IBM'    symbol is 'IBM', equal to 'IBM'
      false  price < 100       price is 130, not below 100

No function here recurses. A node that occurs several times is explained once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matching.expressions.model import And, Expression, Not, Operator, Or, Predicate, Truth, Xnor, Xor
from matching.expressions.printing import predicate_text, to_text, value_text
from matching.expressions.values import CLASS_BY_TYPE, Publication, TypeClass, Value, check_publication

_MAX_VALUE_LENGTH = 60
_MAX_VALUES = 6
_MAX_REASONS = 3
_MAX_LABEL_WIDTH = 80
_CONNECTIVES: dict[type[Expression], str] = {And: "AND", Or: "OR", Not: "NOT", Xor: "XOR", Xnor: "XNOR"}


@dataclass(frozen=True, slots=True)
class ExplainedNode:
    """A node of the expression with its truth for the publication."""

    expression: Expression
    truth: Truth
    level: int
    """The depth of the node. The level of the whole expression is 0."""
    found: Value | None = None
    """For a predicate: the publication's value, or None if the attribute is missing."""
    reason: str | None = None
    """For a predicate: the reason for its truth, in words."""
    is_repeated: bool = False
    """Whether the same node occurred before. Its children are then left out."""

    @property
    def text(self) -> str:
        """The text of the node and everything below it."""
        return to_text(self.expression)

    @property
    def label(self) -> str:
        """The text of a predicate, or the connective of an inner node."""
        if isinstance(self.expression, Predicate):
            return predicate_text(self.expression)
        if not self.expression.children:
            return to_text(self.expression)
        return _CONNECTIVES[type(self.expression)] + (" (as above)" if self.is_repeated else "")


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an expression does or does not match a publication. Its text shows every node with its truth."""

    truth: Truth
    reason: str
    """One line with the predicates that decide."""
    nodes: tuple[ExplainedNode, ...]
    """All nodes, each before its children, from left to right."""

    @property
    def is_match(self) -> bool:
        return self.truth is True

    def __str__(self) -> str:
        labels = ["  " * node.level + f"{truth_word(node.truth):<9}  {node.label}" for node in self.nodes]
        reasons = [node.reason for node in self.nodes]
        width = max((len(label) for label, reason in zip(labels, reasons, strict=True) if reason), default=0)
        width = min(width, _MAX_LABEL_WIDTH)
        return "\n".join(
            f"{label:<{width}}  {reason}" if reason else label for label, reason in zip(labels, reasons, strict=True)
        )


def explain(expression: Expression, publication: Publication) -> Explanation:
    """Explains the truth of the expression for the publication."""
    checked = check_publication(publication)
    truths = _truths(expression, checked)
    nodes = _explain_nodes(expression, checked, truths)
    return Explanation(truths[id(expression)], _summary(expression, checked, truths), nodes)


def truth_word(truth: Truth) -> str:
    return "undefined" if truth is None else "true" if truth else "false"


def _truths(expression: Expression, publication: Mapping[str, Value]) -> dict[int, Truth]:
    truths: dict[int, Truth] = {}
    for node in expression.nodes():
        if isinstance(node, And | Or | Not | Xor | Xnor):
            truths[id(node)] = node.combine([truths[id(child)] for child in node.children])
        else:
            truths[id(node)] = node.evaluate(publication)
    return truths


def _explain_nodes(
    expression: Expression, publication: Mapping[str, Value], truths: Mapping[int, Truth]
) -> tuple[ExplainedNode, ...]:
    explained: list[ExplainedNode] = []
    seen: set[int] = set()
    pending = [(expression, 0)]
    while pending:
        node, level = pending.pop()
        truth = truths[id(node)]
        if isinstance(node, Predicate):
            reason = predicate_reason(node, publication)
            explained.append(ExplainedNode(node, truth, level, publication.get(node.attribute), reason))
            continue
        is_repeated = id(node) in seen and bool(node.children)
        explained.append(ExplainedNode(node, truth, level, is_repeated=is_repeated))
        if not is_repeated:
            seen.add(id(node))
            pending.extend((child, level + 1) for child in reversed(node.children))
    return tuple(explained)


def _summary(expression: Expression, publication: Mapping[str, Value], truths: Mapping[int, Truth]) -> str:
    truth = truths[id(expression)]
    verdict = "matches" if truth else "does not match" if truth is False else "undefined, does not match"
    deciding = _deciding_predicates(expression, truths)
    if not deciding:
        return f"{verdict}, whatever the publication says"
    facts = list(dict.fromkeys(_fact(predicate, publication) for predicate in deciding))
    shown = facts[:_MAX_REASONS]
    if len(facts) > len(shown):
        shown.append(f"{len(facts) - len(shown)} more")
    return f"{verdict}: {'; '.join(shown)}"


def _deciding_predicates(expression: Expression, truths: Mapping[int, Truth]) -> list[Predicate]:
    """The predicates that decide the result. For example, in a false AND this is the first false child only."""
    deciding: list[Predicate] = []
    seen: set[int] = set()
    pending = [expression]
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Predicate):
            deciding.append(node)
            continue
        truth = truths[id(node)]
        children = list(node.children)
        if isinstance(node, And | Or):
            # A child with the same truth as the node decides. One child is enough for a false AND or a true OR.
            children = [child for child in children if truths[id(child)] is truth]
            if truth is isinstance(node, Or):
                children = children[:1]
        elif truth is None:
            children = [child for child in children if truths[id(child)] is None]
        pending.extend(reversed(children))
    return deciding


_RELATIONS: dict[Operator, tuple[str, str]] = {
    Operator.EQ: ("equal to {}", "not equal to {}"),
    Operator.LT: ("below {}", "not below {}"),
    Operator.LE: ("at most {}", "above {}"),
    Operator.GT: ("above {}", "not above {}"),
    Operator.GE: ("at least {}", "below {}"),
    Operator.BETWEEN: ("between {} and {}", "not between {} and {}"),
    Operator.IN: ("one of {}", "none of {}"),
    Operator.STARTS_WITH: ("which starts with {}", "which does not start with {}"),
    Operator.ENDS_WITH: ("which ends with {}", "which does not end with {}"),
    Operator.CONTAINS: ("which contains {}", "which does not contain {}"),
    Operator.MATCHES: ("which matches {}", "which does not match {}"),
}
"""The words for each operator if it is true, and if it is false."""


def predicate_reason(predicate: Predicate, publication: Mapping[str, Value]) -> str:
    """The reason why the predicate is true, false or undefined for a checked publication."""
    fact = _fact(predicate, publication)
    return fact if predicate.evaluate(publication) is not None else f"{fact}: undefined"


def _fact(predicate: Predicate, publication: Mapping[str, Value]) -> str:
    name, operator = predicate.attribute, predicate.operator
    value = publication.get(name)
    if value is None:
        return f"{name} is missing"
    if predicate.type_class is TypeClass.ANY:
        return f"{name} is there: {_shortened(value)}"
    found_class = CLASS_BY_TYPE[type(value)]
    if found_class is not predicate.type_class:
        found = f"the {found_class} {_shortened(value)}"
        return f"{name} is {found}, the predicate asks a {predicate.type_class}"
    is_true = predicate.is_true_for(value)
    if operator not in _RELATIONS:
        operator, is_true = operator.negated, not is_true
    relation = _RELATIONS[operator][0 if is_true else 1]
    return f"{name} is {_shortened(value)}, {relation.format(*_operands(predicate))}"


def _operands(predicate: Predicate) -> list[str]:
    operands = [_shortened(value) for value in predicate.values[:_MAX_VALUES]]
    if predicate.operator not in (Operator.IN, Operator.NOT_IN):
        return operands
    more = len(predicate.values) - len(operands)
    return [", ".join(operands) + (f" and {more} more" if more else "")]


def _shortened(value: Value) -> str:
    text = value_text(value)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 2]}…{text[-1]}"

"""Negation, disjunctive and conjunctive normal forms.

The negation normal form has only AND, OR and predicates. NOT moves into the predicates, because each operator has a
negation. XOR and XNOR are replaced by the zero suppression laws of [ATREE 5.2.1]. Both steps keep Kleene's truth value
for every publication, including undefined. An operand of XOR is used plain and negated. Each of the two is built once
and shared. n nested XORs therefore become O(n) nodes, although the tree when written out has 2^n.

Disjunctive and conjunctive forms can be exponentially large. Their size is computed first, and no form beyond the limit
is built.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from matching.errors import ExpressionTooLargeError
from matching.expressions.model import And, Expression, Not, Or, Predicate, Xnor, Xor

Clause: TypeAlias = tuple[Predicate, ...]
"""The predicates of a conjunction or disjunction."""

DEFAULT_CLAUSES = 1024
LARGEST_COUNT = 10**30
_IN_CONJUNCTIONS = "the disjunctive normal form, in conjunctions,"


def negation_normal_form(expression: Expression) -> Expression:
    """Returns an equivalent expression that has only AND, OR and predicates, with shared nodes."""
    built: dict[tuple[int, bool], Expression] = {}
    for node, is_negated in _needed_forms(expression):
        built[id(node), is_negated] = _normal_node(node, is_negated, built)
    return built[id(expression), False]


def _needed_forms(expression: Expression) -> list[tuple[Expression, bool]]:
    """The nodes that are needed plain (False) and negated (True), children before parents."""
    ordered: list[tuple[Expression, bool]] = []
    seen: set[tuple[int, bool]] = set()
    pending = [(expression, False, False)]
    while pending:
        node, is_negated, is_expanded = pending.pop()
        if is_expanded:
            ordered.append((node, is_negated))
            continue
        if (id(node), is_negated) in seen:
            continue
        seen.add((id(node), is_negated))
        pending.append((node, is_negated, True))
        for child in node.children:
            if isinstance(node, Xor | Xnor):
                pending += [(child, False, False), (child, True, False)]
            else:
                pending.append((child, is_negated is not isinstance(node, Not), False))
    return ordered


def _normal_node(node: Expression, is_negated: bool, built: dict[tuple[int, bool], Expression]) -> Expression:
    if isinstance(node, Predicate):
        return node.negation if is_negated else node
    if isinstance(node, Not):
        return built[id(node.children[0]), not is_negated]
    if isinstance(node, Xor | Xnor):
        return _exclusive(node, isinstance(node, Xor) is not is_negated, built)
    children = [built[id(child), is_negated] for child in node.children]
    return (And if isinstance(node, And) is not is_negated else Or)(children)


def _exclusive(node: Expression, is_different: bool, built: dict[tuple[int, bool], Expression]) -> Expression:
    left, right = node.children
    return Or(
        (
            And((built[id(left), False], built[id(right), is_different])),
            And((built[id(left), True], built[id(right), not is_different])),
        )
    )


def as_conjunction(expression: Expression) -> Clause | None:
    """Returns the predicates of a conjunction, which may be nested and have negations. `TRUE` has no predicates.

    Returns None if the expression is not a conjunction.
    """
    return plain_conjunction(expression) or _conjunction_of(negation_normal_form(expression))


def plain_conjunction(expression: Expression) -> Clause | None:
    """Returns the predicates of an AND of predicates, or None."""
    if isinstance(expression, Predicate):
        return (expression,)
    if (
        isinstance(expression, And)
        and expression.depth <= 2
        and all(isinstance(child, Predicate) for child in expression.children)
    ):
        return tuple(dict.fromkeys(expression.predicates()))
    return None


def _conjunction_of(normal: Expression) -> Clause | None:
    if any(isinstance(node, Or) for node in normal.nodes()):
        return None
    return tuple(dict.fromkeys(normal.predicates()))


def few_conjunctions(expression: Expression, most: int) -> tuple[Clause, ...] | None:
    """The expression as an OR of at most so many conjunctions, or None if there are more."""
    plain = plain_conjunction(expression)
    if plain is not None:
        return (plain,)
    normal = negation_normal_form(expression)
    counts = _count_clauses(normal, Or)
    return _clauses(normal, Or, most, _IN_CONJUNCTIONS) if counts[id(normal)] <= most else None


def disjunctive_clauses(expression: Expression, limit: int = DEFAULT_CLAUSES) -> tuple[Clause, ...]:
    """The expression as an OR of conjunctions. `FALSE` has none. Raises ExpressionTooLargeError beyond the limit."""
    return _clauses(negation_normal_form(expression), Or, limit, _IN_CONJUNCTIONS)


def conjunctive_clauses(expression: Expression, limit: int = DEFAULT_CLAUSES) -> tuple[Clause, ...]:
    """The expression as an AND of disjunctions. `TRUE` has none. Raises ExpressionTooLargeError beyond the limit."""
    return _clauses(negation_normal_form(expression), And, limit, "the conjunctive normal form, in disjunctions,")


def count_disjunctive_clauses(expression: Expression) -> int:
    """The number of conjunctions of the disjunctive normal form, before duplicates are removed. Builds nothing.

    The count stops at `LARGEST_COUNT`. With shared nodes, the digits of the exact number could fill the memory.
    """
    normal = negation_normal_form(expression)
    return _count_clauses(normal, Or)[id(normal)]


def to_disjunctive_normal_form(expression: Expression, limit: int = DEFAULT_CLAUSES) -> Expression:
    return Or.of([And.of(clause) for clause in disjunctive_clauses(expression, limit)])


def to_conjunctive_normal_form(expression: Expression, limit: int = DEFAULT_CLAUSES) -> Expression:
    return And.of([Or.of(clause) for clause in conjunctive_clauses(expression, limit)])


def _count_clauses(normal: Expression, outer: type[Expression]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for node in normal.nodes():
        below = [counts[id(child)] for child in node.children]
        if isinstance(node, Predicate):
            counts[id(node)] = 1
        elif isinstance(node, outer):
            counts[id(node)] = min(sum(below), LARGEST_COUNT)
        else:
            counts[id(node)] = _product(below)
    return counts


def _product(numbers: list[int]) -> int:
    if 0 in numbers:
        return 0
    product = 1
    for number in numbers:
        product = min(product * number, LARGEST_COUNT)
    return product


def _clauses(normal: Expression, outer: type[Expression], limit: int, measure: str) -> tuple[Clause, ...]:
    """`outer` is the connective between clauses. Its children's clauses add up, those of the other multiply."""
    counts = _count_clauses(normal, outer)
    if counts[id(normal)] > limit:
        raise ExpressionTooLargeError(measure, counts[id(normal)], limit)
    built: dict[int, tuple[Clause, ...]] = {}
    for node in _nodes_with_clauses(normal, counts):
        below = [built.get(id(child), ()) for child in node.children]
        if isinstance(node, Predicate):
            built[id(node)] = ((node,),)
        elif isinstance(node, outer):
            built[id(node)] = _distinct(itertools.chain.from_iterable(below))
        else:
            built[id(node)] = _distinct(_merge_clauses(parts) for parts in itertools.product(*below))
    return built.get(id(normal), ())


def _nodes_with_clauses(normal: Expression, counts: dict[int, int]) -> Iterator[Expression]:
    """Iterates over the nodes that have clauses, children first.

    Leaves out nodes that are multiplied with zero clauses, because they may be larger than the whole result.
    """
    seen: set[int] = set()
    pending = [(normal, False)]
    while pending:
        node, is_expanded = pending.pop()
        if is_expanded:
            yield node
        elif id(node) not in seen and counts[id(node)] > 0:
            seen.add(id(node))
            pending.append((node, True))
            pending.extend((child, False) for child in reversed(node.children))


def _merge_clauses(parts: tuple[Clause, ...]) -> Clause:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(parts)))


def _distinct(clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    distinct: dict[frozenset[Predicate], Clause] = {}
    for clause in clauses:
        distinct.setdefault(frozenset(clause), clause)
    return tuple(distinct.values())

"""Chooses the normal form in which an expression is stored: the one that takes fewer entries [OPI 6.1].

A disjunctive form is stored once. A conjunctive form is stored once for each pivot, at most as often as its shortest
clause has predicates. Both sizes are counted before a form is built, because either may be exponentially large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from matching.errors import ExpressionTooLargeError, UnsupportedExpressionError
from matching.expressions.model import And, Expression, Or, Predicate
from matching.expressions.normal_forms import (
    LARGEST_COUNT,
    Clause,
    as_conjunction,
    conjunctive_clauses,
    disjunctive_clauses,
    negation_normal_form,
)
from matching.registry import Accepts


@dataclass(frozen=True, slots=True)
class DisjunctiveForm:
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class ConjunctiveForm:
    clauses: tuple[Clause, ...]


Form: TypeAlias = DisjunctiveForm | ConjunctiveForm


@dataclass(frozen=True, slots=True)
class FormSize:
    """The size of a normal form before duplicates are removed."""

    clauses: int
    predicates: int
    shortest: int
    """The number of predicates of the shortest clause, or 0 without clauses."""


def smaller_form(index: str, expression: Expression, clause_limit: int) -> Form:
    """Returns the form to store. Raises UnsupportedExpressionError if both forms have too many clauses."""
    conjunction = as_conjunction(expression)
    if conjunction is not None:
        return DisjunctiveForm((conjunction,))
    normal = negation_normal_form(expression)
    disjunctive, conjunctive = form_size(normal, Or), form_size(normal, And)
    by_size: list[Callable[[Expression, int], Form]] = [_disjunctive, _conjunctive]
    if disjunctive.predicates > conjunctive.predicates * conjunctive.shortest:
        by_size.reverse()
    for build in by_size:
        try:
            return build(normal, clause_limit)
        except ExpressionTooLargeError:
            continue
    clauses = min(disjunctive.clauses, conjunctive.clauses)
    too_large = ExpressionTooLargeError("its smaller normal form, in clauses,", clauses, clause_limit)
    raise UnsupportedExpressionError(index, Accepts.NORMAL_FORMS, f"{expression!r} is not one, and {too_large}")


def _disjunctive(normal: Expression, clause_limit: int) -> Form:
    return DisjunctiveForm(disjunctive_clauses(normal, clause_limit))


def _conjunctive(normal: Expression, clause_limit: int) -> Form:
    return ConjunctiveForm(conjunctive_clauses(normal, clause_limit))


def form_size(normal: Expression, outer: type[Expression]) -> FormSize:
    """Counts the form of an expression that has only AND, OR and predicates.

    `outer` is the connective between clauses: OR for the disjunctive form.
    """
    sizes: dict[int, FormSize] = {}
    for node in normal.nodes():
        below = [sizes[id(child)] for child in node.children]
        if isinstance(node, Predicate):
            sizes[id(node)] = FormSize(1, 1, 1)
        elif isinstance(node, outer):
            sizes[id(node)] = _add_sizes(below)
        else:
            sizes[id(node)] = _multiply_sizes(below)
    return sizes[id(normal)]


def _add_sizes(parts: list[FormSize]) -> FormSize:
    return _bounded(
        sum(part.clauses for part in parts),
        sum(part.predicates for part in parts),
        min((part.shortest for part in parts if part.clauses), default=0),
    )


def _multiply_sizes(parts: list[FormSize]) -> FormSize:
    """The size of the product: each of its clauses joins one clause of every part."""
    if not all(part.clauses for part in parts):
        return FormSize(0, 0, 0)
    clauses = math.prod(part.clauses for part in parts)
    predicates = sum(part.predicates * (clauses // part.clauses) for part in parts)
    return _bounded(clauses, predicates, sum(part.shortest for part in parts))


def _bounded(clauses: int, predicates: int, shortest: int) -> FormSize:
    """Limits the counts. The conjunctive form of nested XORs squares at each level, so digits could fill the memory."""
    return FormSize(min(clauses, LARGEST_COUNT), min(predicates, LARGEST_COUNT), min(shortest, LARGEST_COUNT))

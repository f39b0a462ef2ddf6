"""Builds expressions in Python: `(attr("price") > 80) & (attr("symbol") == "IBM")`.

Combine expressions with `&`, `|`, `^` and `~`. In Python these bind more strongly than comparisons, so comparisons need
parentheses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from matching.expressions.like import like_operator
from matching.expressions.model import Operator, Predicate
from matching.expressions.values import Value, check_attribute


def attr(name: str) -> Attribute:
    """Returns an attribute for comparisons: `attr("price").between(80, 120)`."""
    return Attribute(check_attribute(name))


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """An attribute name. Each method and each comparison returns a predicate."""

    name: str

    __hash__ = None  # type: ignore[assignment]  # == returns a predicate, so a dict lookup cannot work

    def __eq__(self, value: Value) -> Predicate:  # type: ignore[override]
        return self._predicate(Operator.EQ, value)

    def __ne__(self, value: Value) -> Predicate:  # type: ignore[override]
        return self._predicate(Operator.NE, value)

    def __lt__(self, value: Value) -> Predicate:
        return self._predicate(Operator.LT, value)

    def __le__(self, value: Value) -> Predicate:
        return self._predicate(Operator.LE, value)

    def __gt__(self, value: Value) -> Predicate:
        return self._predicate(Operator.GT, value)

    def __ge__(self, value: Value) -> Predicate:
        return self._predicate(Operator.GE, value)

    def __bool__(self) -> bool:
        raise TypeError(f"attribute {self.name!r} is no condition yet; compare it, or use .exists()")

    def between(self, lowest: Value, highest: Value) -> Predicate:
        """Both ends are included."""
        return self._predicate(Operator.BETWEEN, lowest, highest)

    def not_between(self, lowest: Value, highest: Value) -> Predicate:
        """True if the value is below `lowest` or above `highest`."""
        return self._predicate(Operator.NOT_BETWEEN, lowest, highest)

    def is_in(self, *values: Value | Iterable[Value]) -> Predicate:
        """Accepts values as separate arguments, or one list of values."""
        return self._predicate(Operator.IN, *_listed(values))

    def not_in(self, *values: Value | Iterable[Value]) -> Predicate:
        """True if the value is none of these."""
        return self._predicate(Operator.NOT_IN, *_listed(values))

    def starts_with(self, prefix: str) -> Predicate:
        """True if the string starts with `prefix`."""
        return self._predicate(Operator.STARTS_WITH, prefix)

    def not_starts_with(self, prefix: str) -> Predicate:
        """True if the string does not start with `prefix`."""
        return self._predicate(Operator.NOT_STARTS_WITH, prefix)

    def ends_with(self, suffix: str) -> Predicate:
        """True if the string ends with `suffix`."""
        return self._predicate(Operator.ENDS_WITH, suffix)

    def not_ends_with(self, suffix: str) -> Predicate:
        """True if the string does not end with `suffix`."""
        return self._predicate(Operator.NOT_ENDS_WITH, suffix)

    def contains(self, part: str) -> Predicate:
        """True if the string contains `part`."""
        return self._predicate(Operator.CONTAINS, part)

    def not_contains(self, part: str) -> Predicate:
        """True if the string does not contain `part`."""
        return self._predicate(Operator.NOT_CONTAINS, part)

    def matches(self, pattern: str) -> Predicate:
        """A regular expression in RE2 syntax. It may match anywhere in the string."""
        return self._predicate(Operator.MATCHES, pattern)

    def not_matches(self, pattern: str) -> Predicate:
        """True if the regular expression matches nowhere in the string."""
        return self._predicate(Operator.NOT_MATCHES, pattern)

    def like(self, pattern: str, escape: str | None = None) -> Predicate:
        """`%` matches any text, and `_` matches any one character."""
        return self._predicate(*like_operator(pattern, escape))

    def not_like(self, pattern: str, escape: str | None = None) -> Predicate:
        """True if `like` with the same pattern is false."""
        operator, operand = like_operator(pattern, escape)
        return self._predicate(operator.negated, operand)

    def exists(self) -> Predicate:
        """True if the publication has the attribute, otherwise false."""
        return self._predicate(Operator.EXISTS)

    def not_exists(self) -> Predicate:
        """True if the publication lacks the attribute, otherwise false."""
        return self._predicate(Operator.NOT_EXISTS)

    def _predicate(self, operator: Operator, *values: Value) -> Predicate:
        return Predicate(self.name, operator, values)


def _listed(values: tuple[Value | Iterable[Value], ...]) -> tuple[Value, ...]:
    listed: list[Value] = []
    for value in values:
        if isinstance(value, Iterable) and not isinstance(value, str):
            listed.extend(value)
        else:
            listed.append(value)
    return tuple(listed)

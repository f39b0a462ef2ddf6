"""Predicates and expressions: immutable values with Kleene's three-valued truth.

A predicate is undefined if the publication lacks its attribute, or has a value of another class for it [THESIS 3.2].
`AND`, `OR`, `NOT`, `XOR` and `XNOR` combine truth values as in [ATREE Table 2]. Only a true expression matches.
Undefined is represented by None.

Expressions may share nodes. Normal forms do this, so that a chain of n XORs has O(n) nodes. Expressions may be
thousands of levels deep. No function here recurses over the tree, and every traversal visits a shared node once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeAlias

from matching.errors import ExpressionError
from matching.expressions.values import (
    CLASS_BY_TYPE,
    Dimension,
    Publication,
    TypeClass,
    Value,
    check_attribute,
    check_value,
)

Truth: TypeAlias = bool | None
"""The result of an evaluation. None means undefined."""


class Operator(StrEnum):
    """The operators of predicates. The negation of each is an operator, so NOT can be moved into the predicates."""

    EQ = "="
    NE = "!="
    LT = "<"
    GE = ">="
    GT = ">"
    LE = "<="
    BETWEEN = "BETWEEN"
    NOT_BETWEEN = "NOT BETWEEN"
    IN = "IN"
    NOT_IN = "NOT IN"
    STARTS_WITH = "STARTS WITH"
    NOT_STARTS_WITH = "NOT STARTS WITH"
    ENDS_WITH = "ENDS WITH"
    NOT_ENDS_WITH = "NOT ENDS WITH"
    CONTAINS = "CONTAINS"
    NOT_CONTAINS = "NOT CONTAINS"
    MATCHES = "MATCHES"
    NOT_MATCHES = "NOT MATCHES"
    EXISTS = "EXISTS"
    NOT_EXISTS = "NOT EXISTS"

    @property
    def negated(self) -> Operator:
        """The operator that is true where this one is false. For an undefined predicate both are undefined."""
        return _NEGATIONS[self]


_PAIRS = list(Operator)
_NEGATIONS = dict(zip(_PAIRS[0::2], _PAIRS[1::2], strict=True))
_NEGATIONS |= {negation: operator for operator, negation in _NEGATIONS.items()}

ORDER_OPERATORS = frozenset(
    (Operator.LT, Operator.LE, Operator.GT, Operator.GE, Operator.BETWEEN, Operator.NOT_BETWEEN)
)
SET_OPERATORS = frozenset((Operator.IN, Operator.NOT_IN))
RANGE_OPERATORS = frozenset((Operator.BETWEEN, Operator.NOT_BETWEEN))
PRESENCE_OPERATORS = frozenset((Operator.EXISTS, Operator.NOT_EXISTS))
PATTERN_OPERATORS = frozenset((Operator.MATCHES, Operator.NOT_MATCHES))
STRING_OPERATORS = PATTERN_OPERATORS | {
    Operator.STARTS_WITH,
    Operator.NOT_STARTS_WITH,
    Operator.ENDS_WITH,
    Operator.NOT_ENDS_WITH,
    Operator.CONTAINS,
    Operator.NOT_CONTAINS,
}

_TESTS: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQ: lambda value, operand: value == operand,
    Operator.NE: lambda value, operand: value != operand,
    Operator.LT: lambda value, operand: value < operand,
    Operator.LE: lambda value, operand: value <= operand,
    Operator.GT: lambda value, operand: value > operand,
    Operator.GE: lambda value, operand: value >= operand,
    Operator.BETWEEN: lambda value, operand: operand[0] <= value <= operand[1],
    Operator.NOT_BETWEEN: lambda value, operand: not operand[0] <= value <= operand[1],
    Operator.IN: lambda value, operand: value in operand,
    Operator.NOT_IN: lambda value, operand: value not in operand,
    Operator.STARTS_WITH: lambda value, operand: value.startswith(operand),
    Operator.NOT_STARTS_WITH: lambda value, operand: not value.startswith(operand),
    Operator.ENDS_WITH: lambda value, operand: value.endswith(operand),
    Operator.NOT_ENDS_WITH: lambda value, operand: not value.endswith(operand),
    Operator.CONTAINS: lambda value, operand: operand in value,
    Operator.NOT_CONTAINS: lambda value, operand: operand not in value,
    Operator.MATCHES: lambda value, operand: operand.search(value) is not None,
    Operator.NOT_MATCHES: lambda value, operand: operand.search(value) is None,
    # `evaluate` decides presence without a test. A caller of these tests has a value.
    Operator.EXISTS: lambda _value, _operand: True,
    Operator.NOT_EXISTS: lambda _value, _operand: False,
}


class Expression:
    """The content of a subscription or an advertisement. Compares by structure. `str()` returns its text form."""

    __slots__ = ("__weakref__",)

    children: tuple[Expression, ...]
    depth: int
    """The number of levels of the tree: 1 for a predicate."""
    size: int
    """The number of predicates of the tree when it is written out. A shared node counts at each occurrence."""
    structural_hash: int

    def evaluate(self, publication: Publication) -> Truth:
        """Returns True, False or None (undefined). The publication must be valid: see `check_publication`."""
        raise TypeError(f"{type(self).__name__} cannot be evaluated")

    def matches(self, publication: Publication) -> bool:
        """Whether the expression is true for the publication."""
        return self.evaluate(publication) is True

    def nodes(self) -> Iterator[Expression]:
        """Iterates over all distinct nodes, children before parents, in the order of first occurrence."""
        seen: set[int] = set()
        pending: list[tuple[Expression, bool]] = [(self, False)]
        while pending:
            node, is_expanded = pending.pop()
            if is_expanded:
                yield node
            elif id(node) not in seen:
                seen.add(id(node))
                pending.append((node, True))
                pending.extend((child, False) for child in reversed(node.children))

    def predicates(self) -> Iterator[Predicate]:
        """Iterates over all distinct predicate nodes."""
        return (node for node in self.nodes() if isinstance(node, Predicate))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and _same_structure(self, other)

    def __hash__(self) -> int:
        return self.structural_hash

    def __and__(self, other: Expression) -> Expression:
        return And((*_operands(self, And), *_operands(other, And)))

    def __or__(self, other: Expression) -> Expression:
        return Or((*_operands(self, Or), *_operands(other, Or)))

    def __xor__(self, other: Expression) -> Expression:
        return Xor(self, other)

    def __invert__(self) -> Expression:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth without a publication; combine with & | ^ ~, not with and, or, not")

    def __copy__(self) -> Expression:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Expression:
        return self

    def __str__(self) -> str:
        from matching.expressions.printing import to_text

        return to_text(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size} predicates>" if self.size > 100 else f"<{self}>"


def _operands(expression: Expression, kind: type[Expression]) -> tuple[Expression, ...]:
    return expression.children if type(expression) is kind and expression.children else (expression,)


def _same_structure(first: Expression, second: Expression) -> bool:
    seen: set[tuple[int, int]] = set()
    pending = [(first, second)]
    while pending:
        one, other = pending.pop()
        if one is other or (id(one), id(other)) in seen:
            continue
        if type(one) is not type(other) or one.structural_hash != other.structural_hash:
            return False
        if isinstance(one, Predicate) and isinstance(other, Predicate) and one.key != other.key:
            return False
        if len(one.children) != len(other.children):
            return False
        seen.add((id(one), id(other)))
        pending.extend(zip(one.children, other.children, strict=True))
    return True


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Predicate(Expression):
    """One condition on one attribute: `Predicate("price", Operator.BETWEEN, (80, 120))`.

    The values of IN are sorted and have no duplicates, so that equal conditions are equal predicates.
    """

    attribute: str
    operator: Operator
    values: tuple[Value, ...] = ()
    type_class: TypeClass = field(init=False)
    operand: Any = field(init=False)
    """The argument of the operator's test: a value, a pair, a frozenset or a compiled pattern."""
    structural_hash: int = field(init=False)
    _test: Callable[[Any, Any], bool] = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        # Many predicates share few attribute names. One string for each name saves memory and processor cache.
        put(self, "attribute", sys.intern(check_attribute(self.attribute)))
        put(self, "operator", Operator(self.operator))
        put(self, "values", _check_values(self.attribute, self.operator, self.values))
        put(self, "type_class", CLASS_BY_TYPE[type(self.values[0])] if self.values else TypeClass.ANY)
        put(self, "operand", _operand(self.operator, self.values))
        put(self, "_test", _TESTS[self.operator])
        put(self, "structural_hash", hash(self.key))

    @property
    def children(self) -> tuple[Expression, ...]:  # type: ignore[override]
        return ()

    @property
    def depth(self) -> int:  # type: ignore[override]
        return 1

    @property
    def size(self) -> int:  # type: ignore[override]
        return 1

    @property
    def key(self) -> tuple[object, ...]:
        """Equal only for equal predicates. The class is part of the key, because True == 1 in Python."""
        return (self.attribute, self.operator, self.type_class, self.values)

    @property
    def dimension(self) -> Dimension:
        """The attribute and the class of the values that the predicate compares."""
        return (self.attribute, self.type_class)

    @property
    def negation(self) -> Predicate:
        """The predicate that is true where this one is false, and undefined where this one is undefined."""
        return Predicate(self.attribute, self.operator.negated, self.values)

    def evaluate(self, publication: Publication) -> Truth:
        value = publication.get(self.attribute)
        if self.type_class is TypeClass.ANY:
            return (value is not None) is (self.operator is Operator.EXISTS)
        if CLASS_BY_TYPE.get(type(value)) is not self.type_class:
            return None
        return self._test(value, self.operand)

    def is_true_for(self, value: Value) -> bool:
        """Whether the predicate is true for a value of its own class."""
        return self._test(value, self.operand)


def _check_values(attribute: str, operator: Operator, values: Sequence[object]) -> tuple[Value, ...]:
    where = f"{attribute} {operator}"
    checked = tuple(check_value(value, where) for value in values)
    _check_count(where, operator, len(checked))
    classes = {CLASS_BY_TYPE[type(value)] for value in checked}
    if len(classes) > 1:
        raise ExpressionError(f"{where}: values of several classes ({', '.join(sorted(classes))}); write one list each")
    if any(isinstance(value, float) and value in (float("inf"), float("-inf")) for value in checked):
        raise ExpressionError(f"{where}: an infinite number cannot be compared with; use EXISTS or a large number")
    if operator in ORDER_OPERATORS and TypeClass.BOOLEAN in classes:
        raise ExpressionError(f"{where}: booleans have no order; use = or !=")
    if operator in STRING_OPERATORS and TypeClass.STRING not in classes:
        raise ExpressionError(f"{where}: needs a string, not {checked[0]!r}")
    if operator in SET_OPERATORS:
        return tuple(sorted(dict.fromkeys(checked)))
    return checked


def _check_count(where: str, operator: Operator, count: int) -> None:
    if operator in SET_OPERATORS:
        if count == 0:
            raise ExpressionError(f"{where}: the list is empty; give at least one value")
        return
    wanted = 0 if operator in PRESENCE_OPERATORS else 2 if operator in RANGE_OPERATORS else 1
    if count != wanted:
        raise ExpressionError(f"{where}: takes {wanted} value{'s' * (wanted != 1)}, got {count}")


def _operand(operator: Operator, values: tuple[Value, ...]) -> object:
    if operator in SET_OPERATORS:
        return frozenset(values)
    if operator in PATTERN_OPERATORS:
        return compile_pattern(str(values[0]))
    if operator in RANGE_OPERATORS:
        return values
    return values[0] if values else None


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Any:
    """Compiles the pattern with RE2, which matches any pattern in time linear in the text."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else "refused"
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ExpressionError(f"regular expression {pattern[:80]!r} is not valid: {reason}") from None


class _Connective(Expression):
    """An inner node. `evaluate` visits every distinct node once, children first."""

    __slots__ = ("_order", "_text", "children", "depth", "size", "structural_hash")

    _order: tuple[Expression, ...] | None
    _text: str | None

    def __init__(self, children: Sequence[Expression]) -> None:
        for child in children:
            if not isinstance(child, Expression):
                raise TypeError(f"{type(self).__name__} combines expressions, not {child!r}")
        put = object.__setattr__
        put(self, "children", tuple(children))
        put(self, "depth", 1 + max((child.depth for child in children), default=0))
        put(self, "size", sum(child.size for child in children))
        put(self, "structural_hash", hash((type(self).__name__, *(child.structural_hash for child in children))))
        put(self, "_order", None)
        put(self, "_text", None)

    def __str__(self) -> str:
        # A broker needs the text of a subscription several times, and that of a large one takes milliseconds.
        if self._text is None:
            object.__setattr__(self, "_text", super().__str__())
        assert self._text is not None
        return self._text

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; {name} cannot be deleted")

    def combine(self, truths: Sequence[Truth]) -> Truth:
        """Returns the truth of the node for these truths of its children."""
        raise TypeError(f"{type(self).__name__} combines nothing")

    def evaluate(self, publication: Publication) -> Truth:
        if self._order is None:
            object.__setattr__(self, "_order", tuple(self.nodes()))
        truths: dict[int, Truth] = {}
        for node in self._order or ():
            if isinstance(node, _Connective):
                truths[id(node)] = node.combine([truths[id(child)] for child in node.children])
            else:
                truths[id(node)] = node.evaluate(publication)
        return truths[id(self)]


class _Variadic(_Connective):
    __slots__ = ()

    def __init__(self, children: Sequence[Expression]) -> None:
        super().__init__(children)
        if len(self.children) == 1:
            raise ExpressionError(
                f"{type(self).__name__} of one expression is that expression; use {type(self).__name__}.of"
            )

    @classmethod
    def of(cls, children: Sequence[Expression]) -> Expression:
        """Like the constructor, but returns a single child itself."""
        return children[0] if len(children) == 1 else cls(children)


class And(_Variadic):
    """True if all children are true, false if any child is false. Without children it is `TRUE`."""

    __slots__ = ()

    def combine(self, truths: Sequence[Truth]) -> Truth:
        return False if False in truths else None if None in truths else True

    def matches(self, publication: Publication) -> bool:
        """Stops at the first child that is not true, which makes the linear scan much faster."""
        if self.depth > 2:
            return super().matches(publication)
        for child in self.children:
            if child.evaluate(publication) is not True:
                return False
        return True


class Or(_Variadic):
    """True if any child is true, false if all children are false. Without children it is `FALSE`."""

    __slots__ = ()

    def combine(self, truths: Sequence[Truth]) -> Truth:
        return True if True in truths else None if None in truths else False


class Not(_Connective):
    """Negation."""

    __slots__ = ()

    def __init__(self, child: Expression) -> None:
        super().__init__((child,))

    def combine(self, truths: Sequence[Truth]) -> Truth:
        return None if truths[0] is None else not truths[0]


class Xor(_Connective):
    """Exclusive disjunction of two expressions."""

    __slots__ = ()

    def __init__(self, left: Expression, right: Expression) -> None:
        super().__init__((left, right))

    def combine(self, truths: Sequence[Truth]) -> Truth:
        return None if None in truths else truths[0] is not truths[1]


class Xnor(_Connective):
    """Equality of the truth of two expressions."""

    __slots__ = ()

    def __init__(self, left: Expression, right: Expression) -> None:
        super().__init__((left, right))

    def combine(self, truths: Sequence[Truth]) -> Truth:
        return None if None in truths else truths[0] is truths[1]


TRUE = And(())
"""The expression that every publication satisfies."""
FALSE = Or(())
"""The expression that no publication satisfies."""

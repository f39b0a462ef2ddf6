"""Values, their classes, and the order of the values of a class.

A value is a number (int or float, compared by exact value), a string or a boolean. A dimension is an attribute name
together with a class. A predicate on the number `a` is undefined for a publication whose `a` is a string.

The order of every class is discrete: each value has a successor, and no value is between the two. So `x > v` and
`x >= successor(v)` are the same predicate. Every set of values that predicates can describe is a union of half-open
intervals. The order of numbers contains the 64-bit integers and the doubles together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

from matching.errors import PublicationError, ValueRefusedError

Value: TypeAlias = int | float | str | bool
"""The value of an attribute. Integers have 64 bits. NaN is not a value."""
Publication: TypeAlias = Mapping[str, Value]
"""The attributes of a publication, by name."""

SMALLEST_INT = -(2**63)
LARGEST_INT = 2**63 - 1


class TypeClass(StrEnum):
    """The class of a value. Values of different classes are never compared."""

    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    ANY = "any"
    """Not a class of values. It is the dimension of `EXISTS`, which only tests presence."""


Dimension: TypeAlias = tuple[str, TypeClass]
"""An attribute name together with a class of values."""

CLASS_BY_TYPE: dict[type, TypeClass] = {
    int: TypeClass.NUMBER,
    float: TypeClass.NUMBER,
    str: TypeClass.STRING,
    bool: TypeClass.BOOLEAN,
}


def check_value(value: object, where: str) -> Value:
    """Returns the value as an exact int, float, str or bool. `where` is the place in the error message."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not SMALLEST_INT <= value <= LARGEST_INT:
            raise ValueRefusedError(f"{where}: integer {_shortened(value)} does not fit in 64 bits")
        return int(value)
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueRefusedError(f"{where}: NaN is not a value, because it compares with nothing")
        return float(value)
    if isinstance(value, str):
        _check_text(value, where)
        return _exact_text(value)
    raise ValueRefusedError(f"{where}: {type(value).__name__} is not a value; use a number, a string or a boolean")


def _shortened(value: int) -> str:
    return str(value) if value.bit_length() < 256 else f"of {value.bit_length()} bits"


def _exact_text(text: str) -> str:
    """A plain str with the same characters. `str()` of a member of an enumeration would be its name."""
    return str.__str__(text)


def _check_text(text: str, where: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueRefusedError(f"{where}: {text!r} has a lone surrogate at {error.start}") from None


def check_attribute(name: object) -> str:
    """Returns the attribute name as an exact str. Raises if it is empty or not a valid string."""
    if not isinstance(name, str) or not name:
        raise ValueRefusedError(f"attribute name {name!r} is not a non-empty string")
    _check_text(name, "attribute name")
    return _exact_text(name)


def check_publication(publication: Mapping[str, object]) -> dict[str, Value]:
    """Returns a copy with exact Python types. Raises an error that names the invalid attribute."""
    if not isinstance(publication, Mapping):
        raise PublicationError(f"a publication maps names to values, not a {type(publication).__name__}")
    checked: dict[str, Value] = {}
    for name, value in publication.items():
        if type(name) is not str or not name or not name.isascii():
            name = check_attribute(name)
        if type(value) is str and value.isascii():
            checked[name] = value
        else:
            checked[name] = check_value(value, f"attribute {name!r}")
    return checked


def smallest(type_class: TypeClass) -> Value:
    """The smallest value of the class."""
    return _SMALLEST[type_class]


_SMALLEST: dict[TypeClass, Value] = {
    TypeClass.NUMBER: -math.inf,
    TypeClass.STRING: "",
    TypeClass.BOOLEAN: False,
}


def successor(value: Value) -> Value | None:
    """The next larger value of the same class, or None for the largest."""
    if isinstance(value, bool):
        return None if value else True
    if isinstance(value, str):
        return value + "\0"
    return _next_number(value)


def _next_number(value: int | float) -> int | float | None:
    following: list[int | float] = []
    as_float = float(value)
    next_float = as_float if as_float > value else math.nextafter(as_float, math.inf)
    if next_float > value:
        following.append(next_float)
    if math.isfinite(value):
        next_int = math.floor(value) + 1
        if SMALLEST_INT <= next_int <= LARGEST_INT:
            following.append(next_int)
    return min(following, default=None)


def after_prefix(prefix: str) -> str | None:
    """The smallest string after all strings that start with the prefix.

    None if every string after the prefix starts with it.
    """
    while prefix:
        code = ord(prefix[-1])
        if code < 0x10FFFF:
            # The code points from D800 to DFFF are not characters. `check_value` refuses strings with them.
            following = 0xE000 if code == 0xD7FF else code + 1
            return prefix[:-1] + chr(following)
        prefix = prefix[:-1]
    return None

"""Shapes of decoded headers: arrays with a fixed length and fixed types.

A lookup in a prepared set of types decides the usual case. Only after a failure the code determines which field is
wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from types import NoneType
from typing import Any, TypeAlias

from broker.wire.limits import LARGEST_NUMBER, Limits, WireError, limit_exceeded
from routing.messages import EntryId, PublicationId

Packable: TypeAlias = tuple[object, ...]

OPTIONAL_INTEGER = (int, NoneType)
OPTIONAL_ARRAY = (tuple, NoneType)

_NAMES = {
    NoneType: "nil",
    bool: "a boolean",
    bytes: "bytes",
    dict: "a map",
    float: "a float",
    int: "an integer",
    str: "a text",
    tuple: "an array",
}
_ONLY_TEXTS = frozenset({str})


class Shape:
    """An array with one element for each field, of the field's type or one of its types.

    Integers are counts, numbers and times, from 0 to `LARGEST_NUMBER`. Floats are never NaN.
    """

    def __init__(self, name: str, /, **fields: type | tuple[type, ...]) -> None:
        self._name = name
        self._fields = {field: types if isinstance(types, tuple) else (types,) for field, types in fields.items()}
        self._accepted = frozenset(product(*self._fields.values()))
        self._integers = tuple(index for index, types in enumerate(self._fields.values()) if int in types)
        self._floats = tuple(index for index, types in enumerate(self._fields.values()) if float in types)

    def check(self, value: object, kind: str) -> tuple[Any, ...]:
        """Returns the value if it has this shape, otherwise raises `WireError`. `kind` names the frame in errors."""
        if type(value) is not tuple or tuple(map(type, value)) not in self._accepted:
            raise WireError(f"{kind}: {self._misfit(value)}")
        for index in self._integers:
            number = value[index]
            if number is not None and not 0 <= number <= LARGEST_NUMBER:
                raise WireError(f"{kind}: {self._place(index)} is {number}; it must be from 0 to {LARGEST_NUMBER}")
        for index in self._floats:
            if value[index] != value[index]:
                raise WireError(f"{kind}: {self._place(index)} is not a number")
        return value

    def _place(self, index: int) -> str:
        return f"{list(self._fields)[index]} of {self._name}"

    def _misfit(self, value: object) -> str:
        if type(value) is not tuple:
            return f"{self._name} is {_name_of(type(value))}, not an array"
        if len(value) != len(self._fields):
            return f"{self._name} has {len(value)} fields, not {len(self._fields)}"
        index, types = next(
            (index, types) for index, types in enumerate(self._fields.values()) if type(value[index]) not in types
        )
        wanted = " or ".join(_name_of(each) for each in types)
        return f"{self._place(index)} is {_name_of(type(value[index]))}, not {wanted}"


def _name_of(type_: type) -> str:
    return _NAMES.get(type_, "a MessagePack extension")


def check_length(values: tuple[Any, ...], kind: str, what: str, limit: str, largest: int) -> None:
    if len(values) > largest:
        raise limit_exceeded(kind, f"{what} has {len(values)} elements", limit, largest)


def check_distinct(values: Sequence[str], kind: str, what: str) -> None:
    if len(set(values)) != len(values):
        twice, _ = Counter(values).most_common(1)[0]
        raise WireError(f"{kind}: {what} names {twice[:80]!r} twice")


def check_destinations(values: tuple[Any, ...], kind: str, what: str, limits: Limits) -> tuple[str, ...]:
    names = check_texts(values, kind, what, "destinations", limits.destinations)
    if len(names) > 1:
        check_distinct(names, kind, what)
    return names


def check_texts(values: tuple[Any, ...], kind: str, what: str, limit: str, largest: int) -> tuple[str, ...]:
    check_length(values, kind, what, limit, largest)
    if not _ONLY_TEXTS.issuperset(map(type, values)):
        other = next(each for each in values if type(each) is not str)
        raise WireError(f"{kind}: {what} holds {_name_of(type(other))}, not only texts")
    return values


_PUBLICATION_ID = Shape("a publication's id", broker=str, incarnation=int, counter=int)
_ENTRY_ID = Shape("an entry's id", broker=str, incarnation=int, number=int)


def read_publication_id(value: object, kind: str) -> PublicationId:
    return PublicationId._make(_PUBLICATION_ID.check(value, kind))


def read_entry_id(value: object, kind: str) -> EntryId:
    return EntryId._make(_ENTRY_ID.check(value, kind))


def read_optional_entry_id(value: object, kind: str) -> EntryId | None:
    return None if value is None else read_entry_id(value, kind)

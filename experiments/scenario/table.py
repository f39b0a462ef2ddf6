"""Reads tables of a scenario file by the types and limits of the dataclasses that describe them.

A table knows its file and key, so an error names the file (or `--set`, if the value was typed there) and the whole key:
`line.toml: workload.rate is -3; it must be above 0`.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from experiments.errors import ScenarioError
from experiments.scenario.limits import Limit
from topologies.errors import nearest

Read = TypeVar("Read")
_TYPE_TEXTS: dict[Any, str] = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a scenario's values."""

    file: str
    overridden: tuple[str, ...] = ()
    """Keys whose values were typed on the command line."""

    def refusal(self, key: str, problem: str) -> ScenarioError:
        is_typed = any(f"{key}.".startswith(f"{typed}.") or typed.startswith(f"{key}.") for typed in self.overridden)
        return ScenarioError(f"{'--set' if is_typed else self.file}: {key} {problem}")


class Table:
    """A table of a scenario file with its key and origin."""

    def __init__(self, values: Mapping[str, object], path: str, origin: Origin) -> None:
        self.values = values
        self._path = path
        self._origin = origin

    def refusal(self, name: str, problem: str) -> ScenarioError:
        """The error to raise about a key of this table. An empty name means the table itself."""
        return self._origin.refusal(self._key(name), problem)

    def with_values(self, values: Mapping[str, object]) -> Table:
        """A table with the same key and origin and other values."""
        return Table(values, self._path, self._origin)

    def check_keys(self, known: Iterable[str]) -> None:
        names = tuple(known)
        for name in self.values:
            if name not in names:
                raise self.refusal(name, f"is unknown; {nearest(name, names)}")

    def read(self, dataclass_type: type[Read]) -> Read:
        """The whole table as an instance of the dataclass. Refuses keys that the dataclass does not have."""
        self.check_keys(field_names(dataclass_type))
        return dataclass_type(**self.fields(dataclass_type, field_names(dataclass_type)))

    def fields(self, dataclass_type: type, names: Iterable[str]) -> dict[str, Any]:
        """The values of these fields that the table has. Refuses a table that lacks a field without a default."""
        hints = typing.get_type_hints(dataclass_type, include_extras=True)
        needed = {field.name for field in dataclasses.fields(dataclass_type) if not _has_default(field)}
        found: dict[str, Any] = {}
        for name in names:
            if name in self.values:
                found[name] = self.value(name, hints[name])
            elif name in needed:
                raise self.refusal(name, f"is missing; it must be {_type_text(hints[name])}")
        return found

    def value(self, name: str, hint: Any) -> Any:
        """The value converted to the type. Raises an error that says which values are allowed."""
        value = self.values[name]
        dataclass_type = next((option for option in _options(hint) if dataclasses.is_dataclass(option)), None)
        if isinstance(dataclass_type, type):
            return self.table(name).read(dataclass_type)
        try:
            return _convert(hint, value)
        except _InvalidValueError as error:
            raise self.refusal(name, f"is {_value_text(value)}; {error}") from None

    def table(self, name: str) -> Table:
        """The table of this name; an empty one if it is missing."""
        values = self.values.get(name, {})
        if not isinstance(values, Mapping):
            raise self.refusal(name, f"is {_value_text(values)}; it must be a table")
        return Table(values, self._key(name), self._origin)

    def tables(self, name: str) -> list[Table]:
        """The tables of a list, numbered from 1 in errors."""
        listed = self.values.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
            raise self.refusal(name, f"must be a list of tables; write [[{name}]] above each")
        return [Table(each, f"{self._key(name)}.{number}", self._origin) for number, each in enumerate(listed, start=1)]

    def _key(self, name: str) -> str:
        return ".".join(part for part in (self._path, name) if part)


def field_names(dataclass_type: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(dataclass_type))


class _InvalidValueError(Exception):
    """A value that its type or its limits do not allow. The message says what is allowed."""


class _OutOfLimitsError(_InvalidValueError):
    """A value of the right type outside its limits. The message needs no other types of a union."""


def _convert(hint: Any, value: object) -> Any:
    kind = typing.get_origin(hint)
    if kind is Annotated:
        return _convert_limited(hint, value)
    if kind is Literal:
        return _convert_choice(typing.get_args(hint), value)
    if kind in (typing.Union, types.UnionType):
        return _convert_union(hint, value)
    if kind is tuple:
        return _convert_list(hint, value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(_convert_choice(tuple(hint), value))
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if type(value) is hint and hint is not float:
        return value
    raise _InvalidValueError(f"it must be {_type_text(hint)}")


def _convert_limited(hint: Any, value: object) -> Any:
    inner, *extras = typing.get_args(hint)
    result = _convert(inner, value)
    for limit in extras:
        if isinstance(limit, Limit) and not limit.holds(result):
            raise _OutOfLimitsError(f"it must be {limit.in_words()}")
    return result


def _convert_choice(options: tuple[str, ...], value: object) -> str:
    for option in options:
        if value == option:
            return option
    raise _InvalidValueError(nearest(value, options) if isinstance(value, str) else f"it must be {_any_of(options)}")


def _convert_union(hint: Any, value: object) -> Any:
    options = _options(hint)
    for option in options:
        try:
            return _convert(option, value)
        except _OutOfLimitsError:
            raise
        except _InvalidValueError:
            if len(options) == 1:
                raise
    raise _InvalidValueError(f"it must be {_type_text(hint)}")


def _convert_list(hint: Any, value: object) -> tuple[Any, ...]:
    items = typing.get_args(hint)
    is_open = items[-1] is Ellipsis
    if is_open and items[0] is str and isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple) or not (is_open or len(value) == len(items)):
        raise _InvalidValueError(f"it must be {_type_text(hint)}")
    wanted = [items[0]] * len(value) if is_open else items
    try:
        return tuple(_convert(item, each) for item, each in zip(wanted, value, strict=True))
    except _InvalidValueError:
        raise _InvalidValueError(f"it must be {_type_text(hint)}") from None


def _options(hint: Any) -> tuple[Any, ...]:
    """The types of a union without None, which means a missing value."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(option for option in typing.get_args(hint) if option is not types.NoneType)
    return (hint,)


def _type_text(hint: Any) -> str:
    kind = typing.get_origin(hint)
    if kind is Annotated:
        return _type_text(typing.get_args(hint)[0])
    if kind is Literal:
        return _any_of(typing.get_args(hint))
    if kind in (typing.Union, types.UnionType):
        return " or ".join(_type_text(option) for option in _options(hint))
    if kind is tuple:
        items = typing.get_args(hint)
        if items[-1] is Ellipsis:
            return f"a list, each {_type_text(items[0])}"
        return f"a list of {len(items)}, each {_type_text(items[0])}"
    return _TYPE_TEXTS.get(hint, "a table")


def _any_of(options: Iterable[str]) -> str:
    return " or ".join(repr(str(option)) for option in options)


def _value_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING

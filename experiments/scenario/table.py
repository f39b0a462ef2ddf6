"""Tables of a scenario file, read by the types and limits of the classes that they describe.

A table knows where it stands, so an error names the file (or `--set`, if the value was typed there) and the whole key:
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
_IN_WORDS: dict[Any, str] = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where values come from."""

    file: str
    overridden: tuple[str, ...] = ()
    """Keys whose values were typed on the command line."""

    def refusal(self, key: str, problem: str) -> ScenarioError:
        is_typed = any(f"{key}.".startswith(f"{typed}.") or typed.startswith(f"{key}.") for typed in self.overridden)
        return ScenarioError(f"{'--set' if is_typed else self.file}: {key} {problem}")


class Table:
    def __init__(self, values: Mapping[str, object], path: str, origin: Origin) -> None:
        self.values = values
        self._path = path
        self._origin = origin

    def refusal(self, name: str, problem: str) -> ScenarioError:
        """The error to raise about a key of this table; about the table itself when the name is empty."""
        return self._origin.refusal(self._key(name), problem)

    def with_values(self, values: Mapping[str, object]) -> Table:
        """The same place with other values."""
        return Table(values, self._path, self._origin)

    def check_keys(self, known: Iterable[str]) -> None:
        names = tuple(known)
        for name in self.values:
            if name not in names:
                raise self.refusal(name, f"is unknown; {nearest(name, names)}")

    def read(self, described: type[Read]) -> Read:
        """The whole table as an instance of the dataclass; keys that it does not have are refused."""
        self.check_keys(names_of(described))
        return described(**self.fields(described, names_of(described)))

    def fields(self, described: type, names: Iterable[str]) -> dict[str, Any]:
        """The values of these fields; what is left out and has a default is left out here too."""
        hints = typing.get_type_hints(described, include_extras=True)
        needed = {field.name for field in dataclasses.fields(described) if not _has_default(field)}
        found: dict[str, Any] = {}
        for name in names:
            if name in self.values:
                found[name] = self.value(name, hints[name])
            elif name in needed:
                raise self.refusal(name, f"is missing; it must be {_in_words(hints[name])}")
        return found

    def value(self, name: str, hint: Any) -> Any:
        """The value as the type asks for, or an error that says what it must be."""
        value = self.values[name]
        described = next((option for option in _options(hint) if dataclasses.is_dataclass(option)), None)
        if isinstance(described, type):
            return self.table(name).read(described)
        try:
            return _converted(hint, value)
        except _UnfitError as error:
            raise self.refusal(name, f"is {_shown(value)}; {error}") from None

    def table(self, name: str) -> Table:
        """The table under this name; an empty one if it is left out."""
        values = self.values.get(name, {})
        if not isinstance(values, Mapping):
            raise self.refusal(name, f"is {_shown(values)}; it must be a table")
        return Table(values, self._key(name), self._origin)

    def tables(self, name: str) -> list[Table]:
        """The tables of a list, numbered from 1 in errors."""
        listed = self.values.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(each, Mapping) for each in listed):
            raise self.refusal(name, f"must be a list of tables; write [[{name}]] above each")
        return [Table(each, f"{self._key(name)}.{number}", self._origin) for number, each in enumerate(listed, start=1)]

    def _key(self, name: str) -> str:
        return ".".join(part for part in (self._path, name) if part)


def names_of(described: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(described))


class _UnfitError(Exception):
    """A value that its type or its limits do not allow; says what is allowed."""


class _OutOfLimitsError(_UnfitError):
    """Of the right type, so the other types of a union need no mention."""


def _converted(hint: Any, value: object) -> Any:
    kind = typing.get_origin(hint)
    if kind is Annotated:
        return _limited(hint, value)
    if kind is Literal:
        return _chosen(typing.get_args(hint), value)
    if kind in (typing.Union, types.UnionType):
        return _first_fit(hint, value)
    if kind is tuple:
        return _listed(hint, value)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return hint(_chosen(tuple(hint), value))
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if type(value) is hint and hint is not float:
        return value
    raise _UnfitError(f"it must be {_in_words(hint)}")


def _limited(hint: Any, value: object) -> Any:
    inner, *extras = typing.get_args(hint)
    result = _converted(inner, value)
    for limit in extras:
        if isinstance(limit, Limit) and not limit.holds(result):
            raise _OutOfLimitsError(f"it must be {limit.in_words()}")
    return result


def _chosen(options: tuple[str, ...], value: object) -> str:
    for option in options:
        if value == option:
            return option
    raise _UnfitError(nearest(value, options) if isinstance(value, str) else f"it must be {_any_of(options)}")


def _first_fit(hint: Any, value: object) -> Any:
    options = _options(hint)
    for option in options:
        try:
            return _converted(option, value)
        except _OutOfLimitsError:
            raise
        except _UnfitError:
            if len(options) == 1:
                raise
    raise _UnfitError(f"it must be {_in_words(hint)}")


def _listed(hint: Any, value: object) -> tuple[Any, ...]:
    items = typing.get_args(hint)
    is_open = items[-1] is Ellipsis
    if is_open and items[0] is str and isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple) or not (is_open or len(value) == len(items)):
        raise _UnfitError(f"it must be {_in_words(hint)}")
    wanted = [items[0]] * len(value) if is_open else items
    try:
        return tuple(_converted(item, each) for item, each in zip(wanted, value, strict=True))
    except _UnfitError:
        raise _UnfitError(f"it must be {_in_words(hint)}") from None


def _options(hint: Any) -> tuple[Any, ...]:
    """What a value can be; left out is no value."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(option for option in typing.get_args(hint) if option is not types.NoneType)
    return (hint,)


def _in_words(hint: Any) -> str:
    kind = typing.get_origin(hint)
    if kind is Annotated:
        return _in_words(typing.get_args(hint)[0])
    if kind is Literal:
        return _any_of(typing.get_args(hint))
    if kind in (typing.Union, types.UnionType):
        return " or ".join(_in_words(option) for option in _options(hint))
    if kind is tuple:
        items = typing.get_args(hint)
        if items[-1] is Ellipsis:
            return f"a list, each {_in_words(items[0])}"
        return f"a list of {len(items)}, each {_in_words(items[0])}"
    return _IN_WORDS.get(hint, "a table")


def _any_of(options: Iterable[str]) -> str:
    return " or ".join(repr(str(option)) for option in options)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING

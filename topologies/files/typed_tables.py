"""Reads TOML tables into typed structs. Errors name the file, the key, the value and what is allowed.

    line.toml: workload.rate is -3; it must be above 0
    line.toml: workload.rat is unknown; did you mean 'rate'?
    overlay.toml: broker.2.clusters (b2) is 'west'; it must be a list of names, for example ["west"]

The struct of a table derives from `Table` and declares the type and the limits of each key. msgspec checks them.
`TableReader` turns the errors of msgspec into such messages, from the value and the declared type at the place of the
error. Keys of a list of tables are numbered from 1, and have the id or the name of their table in parentheses.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Meta
from msgspec import inspect as types

from topologies.errors import nearest

INT_MAX = (1 << 63) - 1
"""The largest whole number that every TOML parser reads."""
FLOAT_MAX = sys.float_info.max
DEPTH_MAX = 50
_LONGEST_SHOWN = 200

Whole: TypeAlias = Annotated[int, Meta(ge=0, le=INT_MAX)]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=INT_MAX)]
Finite: TypeAlias = Annotated[float, Meta(ge=-FLOAT_MAX, le=FLOAT_MAX)]
Number: TypeAlias = Annotated[float, Meta(ge=0, le=FLOAT_MAX)]
Positive: TypeAlias = Annotated[float, Meta(gt=0, le=FLOAT_MAX)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]

T = TypeVar("T")
Error: TypeAlias = Callable[[str], Exception]
Parser: TypeAlias = Callable[[str], Any]
"""Makes a value of a project's own type from a text. Raises ValueError if the text is invalid."""

_UNKNOWN = "Object contains unknown field"
_PATH = re.compile(r" - at `\$([\w.\[\]]*)`$")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of the structs for tables. Unknown keys are refused."""


def about(meaning: str) -> Meta:
    """Annotates a key with its meaning."""
    return Meta(description=meaning)


def expecting(text: str) -> Meta:
    """Annotates a key with the words for its allowed values, in place of the words for its type and limits."""
    return Meta(extra={"expected": text})


def fields_of(table_type: type) -> tuple[types.Field, ...]:
    """Returns the fields of a struct or dataclass for a table."""
    return _fields(types.type_info(table_type))


def description_of(field: types.Field) -> str:
    """Returns the meaning of a key. Empty if its type declares none."""
    declared = field.type.extra_json_schema if isinstance(field.type, types.Metadata) else None
    return str((declared or {}).get("description", ""))


def key_names(table_type: type[Any]) -> tuple[str, ...]:
    """Returns the keys of a struct or dataclass for a table."""
    if dataclasses.is_dataclass(table_type):
        return tuple(each.name for each in dataclasses.fields(table_type))
    return tuple(table_type.__struct_fields__)


def read_text(path: Path, what: str, error: Error) -> str:
    """Reads a file. `what` says in errors what the file is."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise error(f"cannot read {what} {path}: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise error(f"{what} {path} is not UTF-8 text: {problem.reason}") from problem
    except ValueError as problem:
        raise error(f"cannot read {what} {str(path)!r}: {problem}") from problem


def parse_toml(text: str, source: str, error: Error) -> dict[str, Any]:
    """Parses TOML. `source` names its origin in errors."""
    try:
        document = tomllib.loads(text)
    except ValueError as problem:
        # Python refuses decimal numbers of more than 4,300 digits with a plain ValueError.
        raise error(f"{source} is not TOML: {problem}") from problem
    except RecursionError:
        raise error(f"{source} is nested more than {DEPTH_MAX} levels deep") from None
    for key, excess in _excesses(document, ()):
        raise error(f"{source}: {'.'.join(key)[:_LONGEST_SHOWN]} {excess}")
    return document


def _excesses(value: object, key: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields the keys of values that are nested too deep, or are whole numbers that TOML does not guarantee."""
    if len(key) > DEPTH_MAX:
        yield key, f"is nested more than {DEPTH_MAX} levels deep"
    elif isinstance(value, int) and not -INT_MAX - 1 <= value <= INT_MAX:
        yield key, f"is a whole number of more than 64 bits; it must be from {-INT_MAX - 1} to {INT_MAX}"
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _excesses(inner, (*key, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value, start=1):
            yield from _excesses(inner, (*key, str(number)))


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads the tables of one source. Errors are of the type `error` and begin with the source."""

    source: str
    error: Error
    parsers: Mapping[type, Parser] = dataclasses.field(default_factory=dict)
    """Parsers of the project's own types."""
    typed_keys: tuple[str, ...] = ()
    """Keys whose values were typed on the command line. Errors about them begin with `--set`."""

    def read(self, table_type: type[T], table: object, key: str = "", *, others: Iterable[str] = ()) -> T:
        """Reads the table. `key` is its own key. `others` are keys of the table that another reader reads."""
        left_out = tuple(others)
        if left_out and isinstance(table, Mapping):
            table = {name: value for name, value in table.items() if name not in left_out}
        return self._convert(table_type, table, key, left_out, None)

    def read_texts(self, table_type: type[T], table: Mapping[str, object]) -> T:
        """Reads a table whose values may be texts. `10x100` and `0.6,0.2` are lists, and so is a single value."""
        declared = {each.encode_name: each.type for each in fields_of(table_type)}
        prepared: dict[str, object] = {}
        for name, value in table.items():
            self.check_unicode(name, value)
            info = declared.get(name, types.AnyType())
            prepared[name] = value.strip() if isinstance(value, str) else value
            if isinstance(value, str) and value.strip().casefold() == "null":
                # msgspec reads it as None, which would stand for the default.
                raise self.refusal(name, f"is {value!r}; it must be {_words(info)}")
            if isinstance(type_options(info)[0], types.VarTupleType) and not isinstance(value, list | tuple):
                prepared[name] = re.split(r"\s*[x,]\s*", value.strip()) if isinstance(value, str) else [value]
        return self._convert(table_type, prepared, "", (), table)

    def check_unicode(self, key: str, value: object) -> None:
        """Raises if a key or value of the command line has bytes that are not UTF-8. msgspec cannot report those."""
        try:
            f"{key}{value}".encode()
        except UnicodeEncodeError:
            raise self.refusal(f"{key!r}"[1:-1], f"is {value!r}; it must be Unicode text") from None

    def refusal(self, key: str, problem: str) -> Exception:
        """Returns the error to raise about a key. `problem` follows the key in the message."""
        return self._error(key, f" {problem}")

    def _error(self, key: str, text: str) -> Exception:
        is_typed = any(f"{key}.".startswith(f"{typed}.") or typed.startswith(f"{key}.") for typed in self.typed_keys)
        return self.error(f"{'--set' if is_typed else self.source}: {key}{text}")

    def _convert(
        self, table_type: type[T], table: object, key: str, others: tuple[str, ...], texts: Mapping[str, object] | None
    ) -> T:
        try:
            return msgspec.convert(table, table_type, strict=texts is None, dec_hook=self._parse)
        except msgspec.ValidationError as error:
            place = _find(str(error), table, types.type_info(table_type))
            if error.__cause__ is not None and _fields(place.info):
                # The dataclass itself refused its values.
                raise error.__cause__ from None
            if texts is not None and len(place.keys) > 1:
                is_whole = isinstance(type_options(place.info)[0], types.IntType)
                numbers = "whole numbers with x between, such as 10x100"
                allowed = numbers if is_whole else "numbers with commas between, such as 0.6,0.2"
                name = place.keys[0]
                raise self.refusal(name, f"is {shown_value(texts[name])}; it must be {allowed}") from None
            raise self._explain(error, place, key, others) from error.__cause__

    def _parse(self, wanted: type, value: object) -> object:
        if not isinstance(value, str):
            raise ValueError("not a text")
        return self.parsers[wanted](value)

    def _explain(self, error: Exception, place: _Place, key: str, others: tuple[str, ...]) -> Exception:
        said = _PATH.sub("", str(error))
        keys = [key, *place.keys] if key else [*place.keys]
        problem = f" is {shown_value(place.value)}; {_expectation(place)}"
        if said.startswith(_UNKNOWN) and (unknown := _unknown_keys(place)):
            keys.append(unknown[0])
            problem = f" is unknown; {nearest(unknown[0], [*others, *_names(place.info)])}"
        elif isinstance(place.value, Mapping) and said.startswith("Object missing required field"):
            missing = next(each for each in _fields(place.info) if each.required and each.name not in place.value)
            keys.append(missing.name)
            meaning = description_of(missing)
            problem = f" is missing; it must be {_words(missing.type, missing.name)}{meaning and f': {meaning}'}"
        elif error.__cause__ is not None and isinstance(place.value, str):
            problem = f": {said}"
        return self._error(".".join(keys), f"{place.label}{problem}")


class _Place(NamedTuple):
    """The place of an error: its keys, its value and its declared type."""

    keys: tuple[str, ...]
    value: object
    info: types.Type
    label: str = ""
    """The id or name of the table in a list of tables, such as ` (b1)`."""


def _find(message: str, value: object, info: types.Type) -> _Place:
    """Returns the place that a message of msgspec names. Its path contains names of fields and indexes only."""
    place = _Place((), value, info)
    path = _PATH.search(message)
    for name, index in _STEP.findall(path[1] if path else ""):
        if message.startswith(_UNKNOWN) and _unknown_keys(place):
            # The unknown key itself may look like a path.
            break
        field = next((each for each in _fields(place.info) if each.encode_name == name), None)
        if field is not None and isinstance(place.value, Mapping) and name in place.value:
            place = _Place((*place.keys, name), place.value[name], field.type, place.label)
        elif index and isinstance(place.value, list | tuple):
            inner = place.value[int(index)]
            label = _label(inner) if isinstance(inner, Mapping) else place.label
            place = _Place((*place.keys, str(int(index) + 1)), inner, _item_type(place.info, int(index)), label)
        else:
            break
    return place


def _unknown_keys(place: _Place) -> list[str]:
    known = _names(place.info)
    return [name for name in place.value if name not in known] if isinstance(place.value, Mapping) else []


def _names(info: types.Type) -> list[str]:
    return [each.encode_name for each in _fields(info)]


def _item_type(info: types.Type, index: int) -> types.Type:
    (info, *_) = type_options(info)
    if isinstance(info, types.TupleType):
        return info.item_types[index]
    return info.item_type if isinstance(info, types.VarTupleType) else types.AnyType()


def _label(table: Mapping[Any, Any]) -> str:
    name = next((table[key] for key in ("id", "name", "between") if key in table), None)
    if isinstance(name, list) and all(isinstance(end, str) for end in name):
        name = "-".join(name)
    return f" ({name[:_LONGEST_SHOWN]})" if isinstance(name, str) and name else ""


def _fields(info: types.Type) -> tuple[types.Field, ...]:
    for option in type_options(info):
        if isinstance(option, types.StructType | types.DataclassType):
            return option.fields
    return ()


def type_options(info: types.Type) -> tuple[types.Type, ...]:
    """Returns the types of a union without None, which stands for a missing key."""
    if isinstance(info, types.Metadata):
        return type_options(info.type)
    if isinstance(info, types.UnionType):
        members = [option for member in info.types for option in type_options(member)]
        return tuple(member for member in members if not isinstance(member, types.NoneType))
    return (info,)


def _expectation(place: _Place) -> str:
    """Says which values the place allows, or which of them is nearest to its value."""
    value, options = place.value, type_options(place.info)
    if _expected(place.info) is None and isinstance(value, str):
        if all(isinstance(option, types.LiteralType | types.EnumType) for option in options):
            return nearest(value, [str(choice) for option in options for choice in _choices(option)])
    elif _expected(place.info) is None and not isinstance(value, bool) and isinstance(value, int | float):
        for option in options:
            is_whole = isinstance(option, types.IntType) and isinstance(value, int)
            if (is_whole or isinstance(option, types.FloatType)) and (limits := _limits(option, value)):
                return f"it must be {limits}"
    return f"it must be {_words(place.info, place.keys[-1] if place.keys else '')}"


def _expected(info: types.Type) -> str | None:
    return info.extra["expected"] if isinstance(info, types.Metadata) and info.extra else None


def _choices(info: types.Type) -> Iterable[object]:
    if isinstance(info, types.EnumType):
        return (each.value for each in info.cls)
    return info.values if isinstance(info, types.LiteralType) else ()


def _words(info: types.Type, key: str = "") -> str:
    """Returns the type and its limits in words. `key` is the name of a list of tables."""
    if (expected := _expected(info)) is not None:
        return expected
    texts = [_option_words(option, key) for option in type_options(info)]
    return (", or " if any("," in text for text in texts) else " or ").join(texts)


def _option_words(info: types.Type, key: str) -> str:
    match info:
        case types.IntType() | types.FloatType():
            name = "a whole number" if isinstance(info, types.IntType) else "a number"
            return ", ".join(part for part in (name, _limits(info, 0)) if part)
        case types.BoolType():
            return "true or false"
        case types.LiteralType() | types.EnumType():
            return " or ".join(repr(choice) for choice in _choices(info))
        case types.VarTupleType(item_type=item):
            return f"a list of tables; write [[{key}]] above each" if _fields(item) else f"a list, each {_words(item)}"
        case types.TupleType(item_types=items):
            return f"a list of {len(items)}, each {_words(items[0])}"
        case types.StructType() | types.DataclassType() | types.DictType():
            return "a table"
    return "text in quotes"


def _limits(info: types.Type, value: float) -> str:
    """Returns the limits of a number in words. Those of 64 bits are left out, unless the value exceeds them."""
    if not isinstance(info, types.IntType | types.FloatType) or value in (math.inf, -math.inf) or value != value:
        return ""
    parts = {"above": info.gt, "at least": info.ge, "at most": info.le}
    return " and ".join(
        f"{words} {limit:g}" if isinstance(limit, float) else f"{words} {limit}"
        for words, limit in parts.items()
        if limit is not None and (abs(limit) < INT_MAX or abs(value) > INT_MAX)
    )


def shown_value(value: object) -> str:
    """Returns a value as errors show it: as in TOML where Python differs, and shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"

"""Reads TOML tables into typed structs. Errors name the file, the key, the value and what is allowed.

    line.toml: workload.rate is -3; it must be above 0
    line.toml: workload.rat is unknown; did you mean 'rate'?
    overlay.toml: broker.2.listen (b2): '7001' is not an address; write host:port, for example 127.0.0.1:7001

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
from typing import Annotated, Any, TypeAlias, TypeVar

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

_PATH = re.compile(r" - at `\$([\w.\[\]]*)`$")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of the structs for tables. Unknown keys are refused."""


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
        document = None
    if document is None or _is_deeper(document, DEPTH_MAX):
        raise error(f"{source} has lists or tables nested more than {DEPTH_MAX} levels deep") from None
    return document


def _is_deeper(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(_is_deeper(each, levels - 1) for each in inner)


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
        return self._convert(table_type, table, key, others=left_out)

    def read_texts(self, table_type: type[T], table: Mapping[str, object]) -> T:
        """Reads a table whose values may be texts. `10x100` and `0.6,0.2` are lists, and so is a single value."""
        types_by_name = {each.encode_name: each.type for each in fields_of(table_type)}
        prepared: dict[str, object] = {}
        for name, value in table.items():
            text = value.strip() if isinstance(value, str) else value
            info = types_by_name.get(name, types.AnyType())
            if isinstance(text, str) and text.casefold() == "null":
                # msgspec reads it as None, which would stand for the default.
                raise self.refusal(name, f"is {text!r}; it must be {_words(info)}")
            prepared[name] = _split(text) if isinstance(type_options(info)[0], types.VarTupleType) else text
        return self._convert(table_type, prepared, "", texts=table)

    def refusal(self, key: str, problem: str) -> Exception:
        """Returns the error to raise about a key. `problem` follows the key in the message."""
        return self._error(key, f" {problem}")

    def _error(self, key: str, text: str) -> Exception:
        is_typed = any(f"{key}.".startswith(f"{typed}.") or typed.startswith(f"{key}.") for typed in self.typed_keys)
        return self.error(f"{'--set' if is_typed else self.source}: {key}{text}")

    def _convert(
        self,
        table_type: type[T],
        table: object,
        key: str,
        *,
        others: tuple[str, ...] = (),
        texts: Mapping[str, object] | None = None,
    ) -> T:
        try:
            return msgspec.convert(table, table_type, strict=texts is None, dec_hook=self._parse)
        except msgspec.ValidationError as error:
            place = _Place.of_error(str(error), table, types.type_info(table_type))
            if error.__cause__ is not None and isinstance(place.value, Mapping):
                # The dataclass itself refused its values.
                raise error.__cause__ from None
            if texts is not None and len(place.keys) > 1:
                allowed = "whole numbers with x between, such as 10x100"
                if isinstance(place.info, types.FloatType):
                    allowed = "numbers with commas between, such as 0.6,0.2"
                name = place.keys[0]
                raise self.refusal(name, f"is {shown_value(texts[name])}; it must be {allowed}") from None
            raise self._explain(error, place, key, others) from error.__cause__
        except UnicodeEncodeError as error:
            # A text from the command line may have bytes that are not UTF-8.
            raise self.refusal(key, f"has {shown_value(error.object)}, which is not Unicode text") from None

    def _parse(self, wanted: type, value: object) -> object:
        if not isinstance(value, str):
            raise ValueError("not a text")
        return self.parsers[wanted](value)

    def _explain(self, error: Exception, place: _Place, key: str, others: tuple[str, ...]) -> Exception:
        key = ".".join(part for part in (key, *place.keys) if part)
        said = _PATH.sub("", str(error))
        if said.startswith("Object contains unknown field") and isinstance(place.value, Mapping):
            known = {*place.field_names, *others}
            name = next((str(name) for name in place.value if name not in known), "a key")
            return self._error(f"{key}.{name}" if key else name, f"{place.label} is unknown; {nearest(name, known)}")
        if said.startswith("Object missing required field") and isinstance(place.value, Mapping):
            missing = next(each for each in _fields(place.info) if each.required and each.name not in place.value)
            meaning = description_of(missing) and f": {description_of(missing)}"
            text = f"{place.label} is missing; it must be {_words(missing.type, missing.name)}{meaning}"
            return self._error(f"{key}.{missing.name}" if key else missing.name, text)
        if error.__cause__ is not None and isinstance(place.value, str):
            return self._error(key, f"{place.label}: {said}")
        return self._error(key, f"{place.label} is {shown_value(place.value)}; {place.expectation}")


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of an error: its keys, its value and its declared type."""

    keys: tuple[str, ...]
    value: object
    info: types.Type
    label: str = ""
    """The id or name of the table in a list of tables, such as ` (b1)`."""

    @classmethod
    def of_error(cls, message: str, table: object, info: types.Type) -> _Place:
        found = _PATH.search(message)
        place = cls((), table, info)
        for name, index in _STEP.findall(found[1] if found else ""):
            inner = place._at_index(int(index)) if index else place._at_name(name)
            if inner is None:
                break
            place = inner
        return place

    def _at_name(self, name: str) -> _Place | None:
        for each in _fields(self.info):
            if each.encode_name == name and isinstance(self.value, Mapping) and name in self.value:
                return _Place((*self.keys, name), self.value[name], each.type, self.label)
        return None

    def _at_index(self, index: int) -> _Place | None:
        if not isinstance(self.value, list | tuple):
            return None
        value = self.value[index]
        label = _label(value) if isinstance(value, Mapping) else self.label
        (info, *_) = type_options(self.info)
        if isinstance(info, types.TupleType):
            info = info.item_types[index]
        elif isinstance(info, types.VarTupleType):
            info = info.item_type
        return _Place((*self.keys, str(index + 1)), value, info, label)

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(each.encode_name for each in _fields(self.info))

    @property
    def expectation(self) -> str:
        """Says which values the place allows."""
        options = type_options(self.info)
        if _expected(self.info) is not None:
            return f"it must be {_expected(self.info)}"
        if isinstance(self.value, str) and (known := tuple(_texts(options))):
            return nearest(self.value, known)
        if isinstance(self.value, int | float) and math.isfinite(self.value):
            for info in options:
                wanted = types.IntType if isinstance(self.value, int) else types.FloatType
                if isinstance(info, wanted | types.FloatType) and not isinstance(self.value, bool):
                    return f"it must be {_limits(info, self.value) or _words(info)}"
        return f"it must be {_words(self.info, self.keys[-1] if self.keys else '')}"


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


def _texts(options: tuple[types.Type, ...]) -> Iterator[str]:
    """Yields the allowed texts, if each of the types is a list of texts."""
    if all(isinstance(option, types.LiteralType | types.EnumType) for option in options):
        yield from (each for option in options for each in _choices(option) if isinstance(each, str))


def _choices(info: types.Type) -> tuple[object, ...]:
    if isinstance(info, types.EnumType):
        return tuple(each.value for each in info.cls)
    return info.values if isinstance(info, types.LiteralType) else ()


def _expected(info: types.Type) -> str | None:
    if isinstance(info, types.Metadata) and info.extra:
        return str(info.extra["expected"])
    return None


def _words(info: types.Type, key: str = "") -> str:
    """Returns the type and its limits in words. `key` is the name of a list of tables."""
    if (expected := _expected(info)) is not None:
        return expected
    options = type_options(info)
    if len(options) > 1:
        texts = [_words(option, key) for option in options]
        return (", or " if any("," in text for text in texts) else " or ").join(texts)
    (info,) = options
    match info:
        case types.IntType() | types.FloatType():
            name = "a whole number" if isinstance(info, types.IntType) else "a number"
            limits = _limits(info)
            return f"{name}, {limits}" if limits else name
        case types.BoolType():
            return "true or false"
        case types.LiteralType() | types.EnumType():
            return " or ".join(repr(choice) for choice in _choices(info))
        case types.VarTupleType(item_type=item) if _fields(item):
            return f"a list of tables; write [[{key}]] above each"
        case types.VarTupleType(item_type=item):
            return f"a list, each {_words(item)}"
        case types.TupleType(item_types=items):
            return f"a list of {len(items)}, each {_words(items[0])}"
        case types.StructType() | types.DataclassType() | types.DictType():
            return "a table"
    return "text in quotes"


def _limits(info: types.IntType | types.FloatType, value: float = 0) -> str:
    """Returns the limits in words. The limits of 64 bits are left out, unless they are what the value exceeds."""
    parts = {"above": info.gt, "at least": info.ge, "at most": info.le}
    return " and ".join(
        f"{words} {limit:g}" if isinstance(limit, float) else f"{words} {limit}"
        for words, limit in parts.items()
        if limit is not None and (abs(limit) < INT_MAX or abs(value) > INT_MAX)
    )


def _label(table: Mapping[Any, Any]) -> str:
    name = next((table[key] for key in ("id", "name", "between") if key in table), None)
    if isinstance(name, list) and all(isinstance(end, str) for end in name):
        name = "-".join(name)
    return f" ({name[:_LONGEST_SHOWN]})" if isinstance(name, str) and name else ""


def _split(value: object) -> object:
    if isinstance(value, str):
        return re.split(r"\s*[x,]\s*", value)
    return value if isinstance(value, list | tuple) else [value]


def shown_value(value: object) -> str:
    """Returns a value as the text of an error shows it: as in TOML where Python differs, and shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = repr(value)
    except ValueError:
        # Python writes no decimal number of more than 4,300 digits.
        return "a number that is too large to show" if isinstance(value, int) else "a value that is too large to show"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"

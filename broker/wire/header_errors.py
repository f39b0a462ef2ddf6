"""Explains why the fields of a header cannot be decoded: which field, which value, and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import inspect as types

_elements = msgspec.msgpack.Decoder(list[msgspec.Raw])

_LONGEST_EXPLAINED = 1 << 16
"""The longest header in which the refused value is looked up for the error message. The lookup takes about a hundred
times as much memory as the header."""
LONGEST_SHOWN = 80

_NAMES = {
    "None": "nil",
    "array": "an array",
    "bool": "a boolean",
    "bytes": "bytes",
    "ext": "a MessagePack extension",
    "float": "a float",
    "int": "an integer",
    "null": "nil",
    "object": "a map",
    "str": "a text",
}
_OTHER_TYPE = re.compile(r"Expected `(.+)`, got `(.+)`$")
_OUT_OF_RANGE = re.compile(r"Expected `\w+` ([<>]=) (-?\d+)$")
_LENGTH = re.compile(r"Expected `\w+` of length ([<>]=) (\d+)$")
_FIELD_COUNT = re.compile(r"Expected `array` of (at least |at most )?length (\d+), got (\d+)$")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)$")
_OPCODE = re.compile(r"invalid opcode .* \(byte (\d+)\)$")


def explain(error: Exception, packed: bytes, kind: type[Any]) -> str:
    """Returns the error in the words of the frame's fields, with the refused value."""
    message, _, path = str(error).partition(" - at `$")
    indexes = [int(index) for index in re.findall(r"\[(\d+)\]", path)]
    place, info = _find(indexes, packed, types.type_info(kind))
    place = place or "the header"
    if isinstance(error, UnicodeDecodeError):
        return f"the header cannot be read: {error}"
    if message == "Input data was truncated":
        return f"the header ends within its fields, after {len(packed)} bytes"
    if found := _TRAILING.search(message):
        return f"{len(packed) - int(found[1])} bytes follow the fields in the header"
    if found := _OPCODE.search(message):
        return f"byte {packed[int(found[1])]:#04x} starts nothing that a header may hold"
    if found := _OTHER_TYPE.match(message):
        wanted = " or ".join(_NAMES.get(name, name) for name in found[1].split(" | "))
        return f"{place} is {_NAMES.get(found[2], found[2])}, not {wanted}"
    if found := _FIELD_COUNT.match(message):
        return f"{place} has {found[3]} fields, not {found[1] or ''}{found[2]}"
    value = _value_at(indexes, packed)
    if found := _OUT_OF_RANGE.match(message):
        return f"{place} is {value}; it must be {found[1]} {found[2]}"
    if (found := _LENGTH.match(message)) and isinstance(value, str | bytes):
        return f"{place} has the length {len(value)}; it must be {found[1]} {found[2]}"
    if message.startswith("Invalid"):
        return f"{place} is {str(value)[:LONGEST_SHOWN]!r}, not {_known_values(info)}"
    return f"{place}: {message}"


def _value_at(indexes: list[int], packed: bytes) -> object:
    """Returns the value at this path of array elements."""
    if len(packed) > _LONGEST_EXPLAINED:
        return "too large to show"
    try:
        for index in indexes:
            packed = bytes(_elements.decode(packed)[index])
        return msgspec.msgpack.decode(packed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "unreadable"


def _find(indexes: list[int], packed: bytes, info: types.Type) -> tuple[str, types.Type]:
    """Returns the path with the names of fields, such as `turns[2].epoch`, and the type there."""
    place = ""
    for depth, index in enumerate(indexes):
        if isinstance(info, types.UnionType):
            tagged = any(isinstance(each, types.StructType) for each in info.types)
            if tagged and not index:
                return f"{place}.kind", info
            info = _member(info, _value_at([*indexes[:depth], 0], packed))
        if isinstance(info, types.VarTupleType):
            place, info = f"{place}[{index}]", info.item_type
            continue
        fields: Sequence[types.Field] = ()
        if isinstance(info, types.StructType):
            index -= info.tag is not None
            fields = info.fields
        elif isinstance(info, types.NamedTupleType):
            fields = info.fields
        if not 0 <= index < len(fields):
            return f"{place}[{indexes[depth]}]", types.AnyType()
        place, info = f"{place}.{fields[index].name}" if place else fields[index].name, fields[index].type
    return place, info


def _known_values(info: types.Type) -> str:
    """Returns the values of an enumeration, or the kinds of records in a union."""
    if isinstance(info, types.EnumType):
        return " or ".join(str(each.value) for each in info.cls)
    members = info.types if isinstance(info, types.UnionType) else ()
    return " or ".join(str(each.tag) for each in members if isinstance(each, types.StructType))


def _member(union: types.UnionType, tag: object) -> types.Type:
    """Returns the type in the union that has this tag, or the only type besides nil."""
    members = [each for each in union.types if not isinstance(each, types.NoneType)]
    return next((each for each in members if isinstance(each, types.StructType) and each.tag == tag), members[0])

"""Decodes the fields of a header into typed values.

A `HeaderReader` belongs to one kind of frame. msgspec checks the types and the ranges while it decodes, and builds
nothing that claims more memory than the bytes justify. The limits of lists and texts are checked afterwards, and only
if the header is long enough to exceed one.

For any bytes, `read` raises `WireError` and nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

import msgspec
from msgspec import inspect as types

from broker.wire.limits import Limits, WireError, limit_exceeded

T = TypeVar("T")

_encoder = msgspec.msgpack.Encoder()
_elements = msgspec.msgpack.Decoder(list[msgspec.Raw])

_LIMIT_OF_FIELD = {
    "changes": "changes",
    "destinations": "destinations",
    "local": "destinations",
    "transit": "destinations",
    "turns": "destinations",
}
"""The limit of a list by the name of its field. All other lists have the limit `items`."""

_LONGEST_EXPLAINED = 1 << 16
"""The longest header in which the refused value is looked up for the error message. The lookup takes about a hundred
times as much memory as the header."""
_LONGEST_SHOWN = 80

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


def pack(fields: object, kind: str) -> bytes:
    """Returns the MessagePack bytes of a header's fields. `kind` names the frame in errors."""
    try:
        return _encoder.encode(fields)
    except (ValueError, OverflowError) as error:
        # The text has a lone surrogate, or an integer has more than 64 bits.
        raise WireError(f"{kind}: cannot be written: {error}") from None


class HeaderReader(Generic[T]):
    def __init__(self, kind: str, type: type[T]) -> None:
        """`kind` names the frame in errors."""
        self.kind = kind
        self._type = type
        self._decoder = msgspec.msgpack.Decoder(type)

    def read(self, packed: bytes, limits: Limits) -> T:
        try:
            fields = self._decoder.decode(packed)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise WireError(f"{self.kind}: {_explain(error, packed, types.type_info(self._type))}") from None
        if len(packed) > limits.smallest:
            _check_limits(fields, "", self.kind, limits)
        return fields


def check_distinct(names: Sequence[str], kind: str, what: str) -> None:
    if len(names) > 1 and len(set(names)) != len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise WireError(f"{kind}: {what} names {twice[:_LONGEST_SHOWN]!r} twice")


def _check_limits(value: object, place: str, kind: str, limits: Limits) -> None:
    """Raises `WireError` for the first list or text in `value` that exceeds its limit. `place` names the value."""
    if isinstance(value, str):
        size = len(value.encode())
        if size > limits.text_bytes:
            raise limit_exceeded(kind, f"{place} has {size} bytes", "text_bytes", limits.text_bytes)
        return
    for name, element in _fields_of(value):
        inner = f"{place}.{name}" if place else name
        if type(element) is tuple:
            limit = _LIMIT_OF_FIELD.get(name, "items")
            if len(element) > getattr(limits, limit):
                raise limit_exceeded(kind, f"{inner} has {len(element)} elements", limit, getattr(limits, limit))
            for index, each in enumerate(element):
                _check_limits(each, f"{inner}[{index}]", kind, limits)
        else:
            _check_limits(element, inner, kind, limits)


def _fields_of(value: object) -> Iterable[tuple[str, object]]:
    if isinstance(value, msgspec.Struct):
        return ((name, getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None) or map(str, range(len(value)))
        return zip(names, value, strict=True)
    return ()


def _explain(error: Exception, packed: bytes, info: types.Type) -> str:
    """Returns the error in the words of the frame's fields, with the refused value."""
    said, _, path = str(error).partition(" - at `$")
    indexes = [int(index) for index in re.findall(r"\[(\d+)\]", path)]
    place, info = _find(indexes, packed, info)
    place = place or "the header"
    if isinstance(error, UnicodeDecodeError):
        return f"the header cannot be read: {error}"
    if said == "Input data was truncated":
        return f"the header ends within its fields, after {len(packed)} bytes"
    if found := _TRAILING.search(said):
        return f"{len(packed) - int(found[1])} bytes follow the fields in the header"
    if found := _OPCODE.search(said):
        return f"byte {packed[int(found[1])]:#04x} starts nothing that a header may hold"
    if found := _OTHER_TYPE.match(said):
        wanted = " or ".join(_NAMES.get(name, name) for name in found[1].split(" | "))
        return f"{place} is {_NAMES.get(found[2], found[2])}, not {wanted}"
    if found := _FIELD_COUNT.match(said):
        return f"{place} has {found[3]} fields, not {found[1] or ''}{found[2]}"
    value = _value_at(indexes, packed)
    if found := _OUT_OF_RANGE.match(said):
        return f"{place} is {value}; it must be {found[1]} {found[2]}"
    if (found := _LENGTH.match(said)) and isinstance(value, str | bytes):
        return f"{place} has the length {len(value)}; it must be {found[1]} {found[2]}"
    if said.startswith("Invalid"):
        return f"{place} is {str(value)[:_LONGEST_SHOWN]!r}, not {_known_values(info)}"
    return f"{place}: {said}"


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

"""Records of the store as bytes: MessagePack of plain values, by kind of record.

Reading trusts the owner of the file, but checks every record. A record that does not fit its kind raises an error with
the record's key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgpack

from broker.core.effects import Deliver
from broker.wire.broker_codec import decode as decode_message
from broker.wire.broker_codec import encode as encode_message
from broker.wire.limits import Limits, WireError
from routing.messages import EntryId, PublicationId, Publish
from routing.router import ForwardingLeg

Key = tuple[str, ...]

_UNREADABLE = (ValueError, TypeError, msgpack.exceptions.UnpackException)
"""What MessagePack raises for bytes that it cannot read, and a record's reader for values of another form."""


class RecordError(Exception):
    """A record cannot be written, or a stored record cannot be read. The message names the record."""

    exit_code = 1


def pack_key(key: Key) -> bytes:
    packed: bytes = msgpack.packb(key)
    return packed


def unpack_key(packed: bytes) -> Key:
    try:
        key = msgpack.unpackb(packed, use_list=False)
    except _UNREADABLE as error:
        raise RecordError(f"the key {packed[:40]!r} is damaged: {error}") from error
    if not isinstance(key, tuple) or not key or not all(isinstance(part, str) for part in key):
        raise RecordError(f"the key {packed[:40]!r} is damaged: it is no list of texts")
    return key


def pack_record(key: Key, record: Any) -> bytes:
    write, _ = _KINDS.get(key[0], _PLAIN)
    try:
        packed: bytes = msgpack.packb(write(record))
    except (ValueError, TypeError, OverflowError, WireError) as error:
        raise RecordError(f"the record {'/'.join(key)} cannot be written: {error}") from error
    return packed


def unpack_record(key: Key, packed: bytes) -> object:
    _, read = _KINDS.get(key[0], _PLAIN)
    try:
        return read(msgpack.unpackb(packed, use_list=False))
    except (*_UNREADABLE, WireError) as error:
        raise RecordError(f"the record {'/'.join(key)} is damaged: {error}") from error


def _identity(value: Any) -> Any:
    return value


def _write_arrival(deliveries: tuple[Deliver, ...]) -> object:
    """Writes the fields that all deliveries of an arrival share once."""
    if not deliveries:
        return None
    first = deliveries[0]
    shared = (first.publication, first.attributes, first.payload, first.hops, first.expires)
    return (*shared, tuple((each.client, each.subscriptions, each.number) for each in deliveries))


def _read_arrival(value: Any) -> tuple[Deliver, ...]:
    if value is None:
        return ()
    id, attributes, payload, hops, expires, clients = value
    publication = PublicationId._make(id)
    return tuple(
        Deliver(client, publication, subscriptions, attributes, payload, hops, number, expires)
        for client, subscriptions, number in clients
    )


def _write_publication(record: tuple[Publish, str, tuple[ForwardingLeg, ...]]) -> object:
    message, client, legs = record
    legs_as_tuples = tuple((each.domain, each.local, each.transit, each.crossed, each.tree) for each in legs)
    return encode_message(message), client, legs_as_tuples


def _read_publication(value: Any) -> tuple[Publish, str, tuple[ForwardingLeg, ...]]:
    # Earlier versions also stored the names of clients.
    frame, client, legs_as_tuples, *_ = value
    message, _ = decode_message(frame, Limits(frame_bytes=len(frame)))
    if not isinstance(message, Publish):
        raise TypeError(f"a {type(message).__name__}, not a publication")
    legs = tuple(
        ForwardingLeg(domain, local, transit, crossed, EntryId._make(tree) if tree is not None else None)
        for domain, local, transit, crossed, tree in legs_as_tuples
    )
    return message, client, legs


_PLAIN: tuple[Callable[[Any], Any], Callable[[Any], Any]] = (_identity, _identity)
_KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "arrival": (_write_arrival, _read_arrival),
    "publication": (_write_publication, _read_publication),
}

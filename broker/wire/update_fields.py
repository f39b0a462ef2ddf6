"""Converts updates to arrays of plain values and back. Each change is an array that starts with its kind's number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.wire.limits import Limits, WireError
from broker.wire.shapes import (
    OPTIONAL_ARRAY,
    Packable,
    Shape,
    check_distinct,
    check_length,
    check_texts,
    read_entry_id,
    read_optional_entry_id,
)
from routing.messages import Advertise, Change, Subscribe, Turn, Unadvertise, Unsubscribe, Update

_ADVERTISE = Shape("an advertisement", change=int, entry=tuple, expression=str, crossed=tuple, is_stale=bool)
_UNADVERTISE = Shape("the end of an advertisement", change=int, entry=tuple)
_SUBSCRIBE = Shape(
    "a subscription",
    change=int,
    entry=tuple,
    expression=str,
    crossed=tuple,
    tree=OPTIONAL_ARRAY,
    is_stale=bool,
    since=int,
)
_UNSUBSCRIBE = Shape("the end of a subscription", change=int, entry=tuple, tree=OPTIONAL_ARRAY)


def _write_advertise(change: Advertise) -> Packable:
    return (change.entry, change.expression, change.crossed, change.is_stale)


def _read_advertise(value: Packable, limits: Limits) -> Advertise:
    _, entry, expression, crossed, is_stale = _ADVERTISE.check(value, "Update")
    crossed = check_texts(crossed, "Update", "crossed", "items", limits.items)
    return Advertise(read_entry_id(entry, "Update"), expression, crossed, is_stale)


def _write_unadvertise(change: Unadvertise) -> Packable:
    return (change.entry,)


def _read_unadvertise(value: Packable, _limits: Limits) -> Unadvertise:
    _, entry = _UNADVERTISE.check(value, "Update")
    return Unadvertise(read_entry_id(entry, "Update"))


def _write_subscribe(change: Subscribe) -> Packable:
    return (change.entry, change.expression, change.crossed, change.tree, change.is_stale, change.since)


def _read_subscribe(value: Packable, limits: Limits) -> Subscribe:
    _, entry, expression, crossed, tree, is_stale, since = _SUBSCRIBE.check(value, "Update")
    crossed = check_texts(crossed, "Update", "crossed", "items", limits.items)
    return Subscribe(
        read_entry_id(entry, "Update"), expression, crossed, read_optional_entry_id(tree, "Update"), is_stale, since
    )


def _write_unsubscribe(change: Unsubscribe) -> Packable:
    return (change.entry, change.tree)


def _read_unsubscribe(value: Packable, _limits: Limits) -> Unsubscribe:
    _, entry, tree = _UNSUBSCRIBE.check(value, "Update")
    return Unsubscribe(read_entry_id(entry, "Update"), read_optional_entry_id(tree, "Update"))


_CHANGES: dict[int, tuple[type[Change], Callable[[Any], Packable], Callable[[Packable, Limits], Change]]] = {
    1: (Advertise, _write_advertise, _read_advertise),
    2: (Unadvertise, _write_unadvertise, _read_unadvertise),
    3: (Subscribe, _write_subscribe, _read_subscribe),
    4: (Unsubscribe, _write_unsubscribe, _read_unsubscribe),
}
_CHANGE_WRITERS = {change: (number, write) for number, (change, write, _) in _CHANGES.items()}


def _write_change(change: Change) -> Packable:
    number, write = _CHANGE_WRITERS[type(change)]
    return (number, *write(change))


def _read_change(value: object, limits: Limits) -> Change:
    if type(value) is not tuple or not value or type(value[0]) is not int:
        raise WireError("Update: a change is not an array that starts with the number of its kind")
    if value[0] not in _CHANGES:
        raise WireError(f"Update: no change has the number {value[0]}; they go from 1 to {len(_CHANGES)}")
    _, _, read = _CHANGES[value[0]]
    return read(value, limits)


_UPDATE = Shape(
    "the header",
    source=str,
    incarnation=int,
    domain=str,
    turns=tuple,
    changes=tuple,
    hop_limit=int,
    is_unfinished=bool,
)
_TURN = Shape("a turn", destination=str, epoch=int, sequence=int)


def write_update(message: Update) -> Packable:
    changes = tuple(map(_write_change, message.changes))
    return (
        message.source,
        message.incarnation,
        message.domain,
        message.turns,
        changes,
        message.hop_limit,
        message.is_unfinished,
    )


def read_update(fields: object, limits: Limits) -> Update:
    source, incarnation, domain, turns, changes, hop_limit, is_unfinished = _UPDATE.check(fields, "Update")
    check_length(turns, "Update", "turns", "destinations", limits.destinations)
    check_length(changes, "Update", "changes", "changes", limits.changes)
    checked_turns = tuple(Turn._make(_TURN.check(turn, "Update")) for turn in turns)
    check_distinct([turn.destination for turn in checked_turns], "Update", "turns")
    checked_changes = tuple(_read_change(change, limits) for change in changes)
    return Update(source, incarnation, domain, checked_turns, checked_changes, hop_limit, is_unfinished)

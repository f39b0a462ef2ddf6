"""Converts client frames to arrays of plain values and back: a pair of functions for each kind of frame.

Publications and deliveries are the exceptions: `broker.wire.client_codec` reads and writes them at fixed offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.wire.client_frames import (
    Acknowledge,
    Advertise,
    ClientFrame,
    DeliveryMode,
    Goodbye,
    Hello,
    Ping,
    Pong,
    PublicationRefused,
    PublicationsAccepted,
    RequestAccepted,
    RequestRefused,
    Subscribe,
    TraceAnswer,
    TraceQuery,
    TraceStep,
    Unadvertise,
    Unsubscribe,
    Welcome,
)
from broker.wire.limits import LARGEST_NUMBER, LONGEST_NAME, Limits, WireError, limit_exceeded
from broker.wire.shapes import Packable, Shape, check_length, check_texts, read_publication_id

FIRST_KIND = 64

_HELLO = Shape(
    "the header",
    client=str,
    session=str,
    token=str,
    mode=str,
    is_durable=bool,
    window=int,
    capabilities=tuple,
)


def _write_hello(frame: Hello) -> Packable:
    return (
        frame.client,
        frame.session,
        frame.token,
        frame.mode.value,
        frame.is_durable,
        frame.window,
        frame.capabilities,
    )


def _read_hello(fields: object, limits: Limits) -> Hello:
    client, session, token, mode, is_durable, window, capabilities = _HELLO.check(fields, "Hello")
    if mode not in tuple(DeliveryMode):
        modes = " or ".join(DeliveryMode)
        raise WireError(f"Hello: mode is {mode[:80]!r}, not {modes}")
    if window < 1:
        raise WireError("Hello: window is 0; at least one delivery must be on its way")
    return Hello(
        _name(client, "Hello", "client"),
        _name(session, "Hello", "session"),
        token,
        DeliveryMode(mode),
        is_durable,
        window,
        check_texts(capabilities, "Hello", "capabilities", "items", limits.items),
    )


_WELCOME = Shape(
    "the header",
    broker=str,
    incarnation=int,
    is_resumed=bool,
    taken=int,
    frame_bytes=int,
    text_bytes=int,
    publish_window=int,
    idle_ms=int,
    window=int,
    capabilities=tuple,
    missing=tuple,
)


def _write_welcome(frame: Welcome) -> Packable:
    return (
        frame.broker,
        frame.incarnation,
        frame.is_resumed,
        frame.taken,
        frame.frame_bytes,
        frame.text_bytes,
        frame.publish_window,
        frame.idle_ms,
        frame.window,
        frame.capabilities,
        frame.missing,
    )


def _read_welcome(fields: object, limits: Limits) -> Welcome:
    frame = Welcome(*_WELCOME.check(fields, "Welcome"))
    if frame.publish_window < 1:
        raise WireError("Welcome: publish_window is 0; nothing could ever be published")
    if frame.window < 1:
        raise WireError("Welcome: window is 0; nothing could ever be delivered")
    check_texts(frame.capabilities, "Welcome", "capabilities", "items", limits.items)
    check_length(frame.missing, "Welcome", "missing", "items", limits.items)
    if not _ONLY_INTEGERS.issuperset(map(type, frame.missing)):
        raise WireError("Welcome: missing holds something that is no reference")
    return frame


_ENTER = Shape("the header", request=int, name=str, expression=str)
_WITHDRAW = Shape("the header", request=int, name=str)
_REQUEST_ACCEPTED = Shape("the header", request=int)
_REQUEST_REFUSED = Shape("the header", request=int, reason=str, text=str)


def _write_enter(frame: Advertise | Subscribe) -> Packable:
    return (frame.request, frame.name, frame.expression)


def _read_advertise(fields: object, _limits: Limits) -> Advertise:
    request, name, expression = _ENTER.check(fields, "Advertise")
    return Advertise(request, _name(name, "Advertise", "name"), expression)


def _read_subscribe(fields: object, _limits: Limits) -> Subscribe:
    request, name, expression = _ENTER.check(fields, "Subscribe")
    return Subscribe(request, _name(name, "Subscribe", "name"), expression)


def _write_withdraw(frame: Unadvertise | Unsubscribe) -> Packable:
    return (frame.request, frame.name)


def _read_unadvertise(fields: object, _limits: Limits) -> Unadvertise:
    request, name = _WITHDRAW.check(fields, "Unadvertise")
    return Unadvertise(request, _name(name, "Unadvertise", "name"))


def _read_unsubscribe(fields: object, _limits: Limits) -> Unsubscribe:
    request, name = _WITHDRAW.check(fields, "Unsubscribe")
    return Unsubscribe(request, _name(name, "Unsubscribe", "name"))


def _write_request_accepted(frame: RequestAccepted) -> Packable:
    return (frame.request,)


def _read_request_accepted(fields: object, _limits: Limits) -> RequestAccepted:
    (request,) = _REQUEST_ACCEPTED.check(fields, "RequestAccepted")
    return RequestAccepted(request)


def _write_request_refused(frame: RequestRefused) -> Packable:
    return (frame.request, frame.reason, frame.text)


def _read_request_refused(fields: object, _limits: Limits) -> RequestRefused:
    return RequestRefused(*_REQUEST_REFUSED.check(fields, "RequestRefused"))


_PUBLICATIONS_ACCEPTED = Shape("the header", answers=tuple)
_ONLY_INTEGERS = frozenset({int})


def _write_publications_accepted(frame: PublicationsAccepted) -> Packable:
    return (frame.answers,)


def _read_publications_accepted(fields: object, limits: Limits) -> PublicationsAccepted:
    kind = "PublicationsAccepted"
    (answers,) = _PUBLICATIONS_ACCEPTED.check(fields, kind)
    check_length(answers, kind, "answers", "items", limits.items)
    if not _ONLY_INTEGERS.issuperset(map(type, answers)) or len(answers) % 2:
        raise WireError(f"{kind}: answers are not pairs of numbers")
    if answers and not 0 <= min(answers) <= max(answers) <= LARGEST_NUMBER:
        raise WireError(f"{kind}: an answer holds a number that is not from 0 to {LARGEST_NUMBER}")
    return PublicationsAccepted(answers)


_PUBLICATION_REFUSED = Shape("the header", reference=int, reason=str, text=str)


def _write_publication_refused(frame: PublicationRefused) -> Packable:
    return (frame.reference, frame.reason, frame.text)


def _read_publication_refused(fields: object, _limits: Limits) -> PublicationRefused:
    return PublicationRefused(*_PUBLICATION_REFUSED.check(fields, "PublicationRefused"))


_NUMBER = Shape("the header", number=int)


def _write_number(frame: Acknowledge | Ping | Pong) -> Packable:
    return (frame.number,)


def _read_acknowledge(fields: object, _limits: Limits) -> Acknowledge:
    (number,) = _NUMBER.check(fields, "Acknowledge")
    return Acknowledge(number)


def _read_ping(fields: object, _limits: Limits) -> Ping:
    (number,) = _NUMBER.check(fields, "Ping")
    return Ping(number)


def _read_pong(fields: object, _limits: Limits) -> Pong:
    (number,) = _NUMBER.check(fields, "Pong")
    return Pong(number)


_GOODBYE = Shape("the header", reason=str, text=str, is_kept=bool)


def _write_goodbye(frame: Goodbye) -> Packable:
    return (frame.reason, frame.text, frame.is_kept)


def _read_goodbye(fields: object, _limits: Limits) -> Goodbye:
    return Goodbye(*_GOODBYE.check(fields, "Goodbye"))


_TRACE_QUERY = Shape("the header", request=int, publication=tuple)
_TRACE_ANSWER = Shape("the header", request=int, broker=str, steps=tuple)
_TRACE_STEP = Shape("a step", at_ns=int, what=str, text=str, peer=str, address=str)


def _write_trace_query(frame: TraceQuery) -> Packable:
    return (frame.request, frame.publication)


def _read_trace_query(fields: object, _limits: Limits) -> TraceQuery:
    request, publication = _TRACE_QUERY.check(fields, "TraceQuery")
    return TraceQuery(request, read_publication_id(publication, "TraceQuery"))


def _write_trace_answer(frame: TraceAnswer) -> Packable:
    return (frame.request, frame.broker, frame.steps)


def _read_trace_answer(fields: object, limits: Limits) -> TraceAnswer:
    request, broker, steps = _TRACE_ANSWER.check(fields, "TraceAnswer")
    check_length(steps, "TraceAnswer", "steps", "items", limits.items)
    return TraceAnswer(
        request, broker, tuple(TraceStep._make(_TRACE_STEP.check(step, "TraceAnswer")) for step in steps)
    )


def _name(text: str, kind: str, what: str) -> str:
    size = len(text.encode())
    if not size:
        raise WireError(f"{kind}: {what} is empty")
    if size > LONGEST_NAME:
        raise limit_exceeded(kind, f"{what} has {size} bytes", "of a name", LONGEST_NAME)
    return text


PUBLISH = FIRST_KIND
DELIVERY = FIRST_KIND + 1

_FRAMES: tuple[tuple[type[ClientFrame], Callable[[Any], Packable], Callable[[object, Limits], ClientFrame]], ...] = (
    (Hello, _write_hello, _read_hello),
    (Welcome, _write_welcome, _read_welcome),
    (Advertise, _write_enter, _read_advertise),
    (Unadvertise, _write_withdraw, _read_unadvertise),
    (Subscribe, _write_enter, _read_subscribe),
    (Unsubscribe, _write_withdraw, _read_unsubscribe),
    (RequestAccepted, _write_request_accepted, _read_request_accepted),
    (RequestRefused, _write_request_refused, _read_request_refused),
    (PublicationsAccepted, _write_publications_accepted, _read_publications_accepted),
    (PublicationRefused, _write_publication_refused, _read_publication_refused),
    (Acknowledge, _write_number, _read_acknowledge),
    (Ping, _write_number, _read_ping),
    (Pong, _write_number, _read_pong),
    (Goodbye, _write_goodbye, _read_goodbye),
    (TraceQuery, _write_trace_query, _read_trace_query),
    (TraceAnswer, _write_trace_answer, _read_trace_answer),
)

CONTROL = dict(enumerate(_FRAMES, start=FIRST_KIND + 2))
"""All kinds of frames except publications and deliveries."""

NAMES = {
    PUBLISH: "PublishRequest",
    DELIVERY: "Delivery",
    **{kind: frame.__name__ for kind, (frame, _, _) in CONTROL.items()},
}
WRITERS = {frame: (kind, write) for kind, (frame, write, _) in CONTROL.items()}

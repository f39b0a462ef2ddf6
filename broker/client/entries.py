"""What a client has entered at its broker, and the requests that are not answered yet.

Entering something under a name that the broker knows replaces it, so everything may be sent again after a reconnect:
all of it to a broker that knows nothing of the session, otherwise only what had no answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from broker.client.connection import Connection
from broker.client.errors import ClientError, ClosedError, RefusedError, refused
from broker.client_frames import (
    Advertise,
    ClientFrame,
    Reason,
    RequestAccepted,
    RequestRefused,
    Subscribe,
    TraceAnswer,
    TraceQuery,
    Unadvertise,
    Unsubscribe,
    Welcome,
)
from broker.client_wire import encode
from routing.messages import PublicationId

log = logging.getLogger("mercast.client")

Kind: TypeAlias = type[Advertise] | type[Subscribe]
Request: TypeAlias = Advertise | Unadvertise | Subscribe | Unsubscribe | TraceQuery
Answer: TypeAlias = RequestAccepted | TraceAnswer


@dataclass(frozen=True, slots=True)
class _Unanswered:
    frame: Request
    answer: asyncio.Future[Answer]


class Entries:
    def __init__(self, loop: asyncio.AbstractEventLoop, on_lost: Callable[[str, RefusedError], None]) -> None:
        """`on_lost` is told when a broker refuses, after a reconnect, a subscription that stood before."""
        self._loop = loop
        self._request = 0
        self._entered: dict[tuple[Kind, str], str] = {}
        self._unanswered: dict[int, _Unanswered] = {}
        self._again: dict[int, str] = {}
        """Requests that re-enter something, which nobody waits for."""
        self._left_at: dict[str, dict[tuple[Kind, str], str]] = {}
        """What stood at each broker when the connection to it broke: the client may be elsewhere before it returns."""
        self._connection: Connection | None = None
        self._end: ClientError | None = None
        self._on_lost = on_lost

    async def enter(self, kind: Kind, expressions: Mapping[str, str]) -> None:
        """All of them or none: what was entered before one was refused is withdrawn."""
        try:
            await self._ask([kind(self._next(), *entry) for entry in expressions.items()])
        except BaseException:
            self.abandon(kind, expressions)
            raise

    async def withdraw(self, kind: Kind, names: Iterable[str]) -> None:
        await self._ask([self._withdrawal(kind, name) for name in names])

    def abandon(self, kind: Kind, names: Iterable[str]) -> None:
        """Withdraws without waiting for the answers."""
        for name in names:
            self._send(self._withdrawal(kind, name))

    async def trace(self, publication: PublicationId) -> TraceAnswer:
        (answer,) = await self._ask([TraceQuery(self._next(), publication)])
        assert isinstance(answer, TraceAnswer)
        return answer

    def _withdrawal(self, kind: Kind, name: str) -> Unadvertise | Unsubscribe:
        self._entered.pop((kind, name), None)
        return Unadvertise(self._next(), name) if kind is Advertise else Unsubscribe(self._next(), name)

    def _next(self) -> int:
        self._request += 1
        return self._request

    async def _ask(self, frames: Sequence[Request]) -> list[Answer]:
        """Sends all of them before it waits for the answers."""
        if self._end is not None:
            raise self._end
        for frame in frames:
            self._unanswered[frame.request] = _Unanswered(frame, self._loop.create_future())
            self._send(frame)
        try:
            return [await self._unanswered[frame.request].answer for frame in frames]
        finally:
            for frame in frames:
                answer = self._unanswered.pop(frame.request).answer
                if answer.done() and not answer.cancelled():
                    # An error behind the first is not the loop's to report.
                    answer.exception()

    def answered(self, answer: Answer) -> None:
        request = self._unanswered.get(answer.request)
        if request is None:
            self._again.pop(answer.request, None)
            return
        frame = request.frame
        if isinstance(frame, Advertise | Subscribe):
            self._entered[type(frame), frame.name] = frame.expression
        if not request.answer.done():
            request.answer.set_result(answer)

    def refused(self, refusal: RequestRefused) -> None:
        request = self._unanswered.get(refusal.request)
        if request is None:
            name = self._again.pop(refusal.request, None)
            if name is not None:
                error = refused(f"subscription or advertisement {name!r}", refusal.reason, refusal.text)
                log.error("after a reconnect, %s", error)
                self._on_lost(name, error)
            return
        if request.answer.done():
            return
        if isinstance(request.frame, Unadvertise | Unsubscribe) and refusal.reason == Reason.UNKNOWN:
            # Sent a second time after a reconnect, or to a broker that never knew it: it is gone either way.
            request.answer.set_result(RequestAccepted(refusal.request))
        else:
            what = f"{type(request.frame).__name__.lower()} {getattr(request.frame, 'name', '')!r}"
            request.answer.set_exception(refused(what, refusal.reason, refusal.text))

    def connected(self, connection: Connection, welcome: Welcome) -> None:
        self._connection = connection
        there = self._left_at.pop(welcome.broker, {}) if welcome.is_resumed else {}
        for key, expression in self._entered.items():
            if there.get(key) != expression:
                kind, name = key
                self._again[self._next()] = name
                self._send(kind(self._request, name, expression))
        self._withdraw_what_else_is(there)
        for request in self._unanswered.values():
            self._send(request.frame)

    def _withdraw_what_else_is(self, there: Mapping[tuple[Kind, str], str]) -> None:
        """At a broker to which the client returns, what it withdrew while it was elsewhere."""
        for kind, name in there:
            if (kind, name) not in self._entered:
                self._send(self._withdrawal(kind, name))

    def disconnected(self, broker: str) -> None:
        self._connection = None
        self._again.clear()
        self._left_at[broker] = dict(self._entered)

    def end(self, error: ClientError | None) -> None:
        self._connection = None
        self._end = error or ClosedError("the client is closed")
        for request in self._unanswered.values():
            if not request.answer.done():
                request.answer.set_exception(self._end)
                request.answer.exception()

    def _send(self, frame: ClientFrame) -> None:
        if self._connection is not None:
            self._connection.send(encode(frame))

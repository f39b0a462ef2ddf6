"""What a client has entered at its broker, and the requests that are not answered yet.

Entering something under a name that the broker knows replaces it, so everything may be sent again after a reconnect:
all of it to a broker that knows nothing of the session, otherwise only what had no answer.

When a broker ends a connection over something that was sent, nothing tells which request it was. So on the next
connection they go one by one, each when the one before is answered, and nothing else goes along: the request over which
the connection ends again is the one, and is not sent any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from broker.client.connection import Connection
from broker.client.errors import ClientError, ClosedError, RefusedError, refused
from broker.client.validation import TEXT_BYTES, check_expression, check_name, check_publication_id, shortened
from broker.wire.client_codec import encode
from broker.wire.client_frames import (
    Advertise,
    Goodbye,
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
from routing.messages import PublicationId

log = logging.getLogger("mercast.client")

Kind: TypeAlias = type[Advertise] | type[Subscribe]
Request: TypeAlias = Advertise | Unadvertise | Subscribe | Unsubscribe | TraceQuery
Answer: TypeAlias = RequestAccepted | TraceAnswer

_WHAT: dict[Kind, str] = {Advertise: "advertisement", Subscribe: "subscription"}


@dataclass(frozen=True, slots=True)
class _Unanswered:
    frame: Request
    answer: asyncio.Future[Answer]


class Requests:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_lost: Callable[[str, RefusedError], None],
        on_calm: Callable[[], None],
    ) -> None:
        """`on_lost` is told when a broker refuses, after a reconnect, a subscription that stood before; `on_calm` when
        requests need not go one by one any more."""
        self._loop = loop
        self._request = 0
        self._entered: dict[tuple[Kind, str], str] = {}
        self._unanswered: dict[int, _Unanswered] = {}
        self._again: dict[int, tuple[Kind, str]] = {}
        """Requests that re-enter something, which nobody waits for."""
        self._left_at: dict[str, dict[tuple[Kind, str], str]] = {}
        """What stood at each broker when the connection to it broke: the client may be elsewhere before it returns."""
        self._text_bytes = TEXT_BYTES
        self._is_careful = False
        self._turns: deque[Request] = deque()
        """Requests that wait until the one before is answered."""
        self._on_trial: Request | None = None
        self._connection: Connection | None = None
        self._end: ClientError | None = None
        self._on_lost = on_lost
        self._on_calm = on_calm

    @property
    def is_careful(self) -> bool:
        """Do requests go one by one, so that nothing else may be sent?"""
        return self._is_careful

    async def enter(self, kind: Kind, expressions: Mapping[str, str]) -> None:
        """All of them or none: what was entered before one was refused is withdrawn."""
        frames = [kind(self._next(), *entry) for entry in expressions.items()]
        try:
            for frame in frames:
                self._check(frame)
            await self._ask(frames)
        except BaseException:
            self.abandon(kind, expressions)
            raise

    async def withdraw(self, kind: Kind, names: Collection[str]) -> None:
        for name in names:
            check_name(name, _WHAT[kind], self._text_bytes)
        await self._ask([self._withdrawal(kind, name) for name in names])

    def abandon(self, kind: Kind, names: Iterable[str]) -> None:
        """Withdraws without waiting for the answers."""
        for name in names:
            frame = self._withdrawal(kind, name)
            # Nothing stands under a name that the broker does not take.
            with suppress(RefusedError):
                self._check(frame)
                self._send(frame)

    async def trace(self, publication: PublicationId) -> TraceAnswer:
        query = TraceQuery(self._next(), publication)
        self._check(query)
        (answer,) = await self._ask([query])
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
        self._take_answer(answer)
        self._next_turn(answer.request)

    def _take_answer(self, answer: Answer) -> None:
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
        self._take_refusal(refusal)
        self._next_turn(refusal.request)

    def _take_refusal(self, refusal: RequestRefused) -> None:
        request = self._unanswered.get(refusal.request)
        if request is None:
            _, name = self._again.pop(refusal.request, (None, ""))
            if name:
                self._lose(name, refused(f"subscription or advertisement {name!r}", refusal.reason, refusal.text))
            return
        if request.answer.done():
            return
        if isinstance(request.frame, Unadvertise | Unsubscribe) and refusal.reason == Reason.UNKNOWN:
            # Sent a second time after a reconnect, or to a broker that never knew it: it is gone either way.
            request.answer.set_result(RequestAccepted(refusal.request))
        else:
            request.answer.set_exception(refused(_described(request.frame), refusal.reason, refusal.text))

    def connected(self, connection: Connection, welcome: Welcome) -> None:
        self._connection = connection
        self._text_bytes = welcome.text_bytes
        there = self._left_at.pop(welcome.broker, {}) if welcome.is_resumed else {}
        for key, expression in list(self._entered.items()):
            if there.get(key) != expression:
                self._enter_again(*key, expression)
        self._withdraw_what_else_is(there)
        for request in self._unanswered.values():
            self._send_again(request)
        if self._on_trial is None:
            self._is_careful = False

    def _enter_again(self, kind: Kind, name: str, expression: str) -> None:
        frame = kind(self._next(), name, expression)
        try:
            self._check(frame)
        except RefusedError as error:
            # It stood at a broker that takes longer texts.
            del self._entered[kind, name]
            self._lose(name, error)
        else:
            self._again[frame.request] = (kind, name)
            self._send(frame)

    def _send_again(self, request: _Unanswered) -> None:
        if request.answer.done():
            return
        try:
            self._check(request.frame)
        except RefusedError as error:
            request.answer.set_exception(error)
        else:
            self._send(request.frame)

    def _check(self, frame: Request) -> None:
        """Does the broker take it? After a reconnect that may not be the one that it was meant for."""
        if isinstance(frame, TraceQuery):
            check_publication_id(frame.publication, self._text_bytes)
            return
        what = _WHAT[Advertise if isinstance(frame, Advertise | Unadvertise) else Subscribe]
        check_name(frame.name, what, self._text_bytes)
        if isinstance(frame, Advertise | Subscribe):
            check_expression(frame.name, frame.expression, what, self._text_bytes)

    def _lose(self, name: str, error: RefusedError) -> None:
        log.error("after a reconnect, %s", error)
        self._on_lost(name, error)

    def _withdraw_what_else_is(self, there: Mapping[tuple[Kind, str], str]) -> None:
        """At a broker to which the client returns, what it withdrew while it was elsewhere."""
        for kind, name in there:
            if (kind, name) not in self._entered:
                self._send(self._withdrawal(kind, name))

    def disconnected(self, broker: str, blame: Goodbye | None) -> bool:
        """`blame`: the broker ended the connection over something that was sent. Is it known over what?"""
        self._connection = None
        # What was entered anew and not answered may stand there or not: no expression is the empty one.
        self._left_at[broker] = self._entered | dict.fromkeys(self._again.values(), "")
        guilty, self._on_trial = self._on_trial, None
        self._turns.clear()
        if blame is not None:
            self._is_careful = True
            if guilty is not None:
                self._give_up(guilty, refused(_described(guilty), blame.reason, blame.text))
        self._again.clear()
        return blame is not None and guilty is not None

    def _give_up(self, frame: Request, error: RefusedError) -> None:
        """It is not sent again."""
        request = self._unanswered.get(frame.request)
        if request is not None:
            if not request.answer.done():
                request.answer.set_exception(error)
        elif frame.request in self._again and isinstance(frame, Advertise | Subscribe):
            self._entered.pop((type(frame), frame.name), None)
            self._lose(frame.name, error)

    def end(self, error: ClientError | None) -> None:
        self._connection = None
        self._end = error or ClosedError("the client is closed")
        for request in self._unanswered.values():
            if not request.answer.done():
                request.answer.set_exception(self._end)
                request.answer.exception()

    def _send(self, frame: Request) -> None:
        if self._connection is None:
            return
        if self._on_trial is not None:
            self._turns.append(frame)
            return
        if self._is_careful:
            self._on_trial = frame
        self._connection.send(encode(frame))

    def _next_turn(self, answered: int) -> None:
        if self._on_trial is None or self._on_trial.request != answered:
            return
        self._on_trial = None
        if self._turns:
            self._send(self._turns.popleft())
        else:
            self._is_careful = False
            self._on_calm()


def _described(frame: Request) -> str:
    what = frame.publication if isinstance(frame, TraceQuery) else shortened(frame.name)
    return f"{type(frame).__name__.lower()} {what}"

"""A client's entries at its broker, and its unanswered requests.

An entry replaces the broker's entry of the same name, so requests can be repeated after a reconnect. A broker that does
not know the session receives all entries, another broker only the requests without an answer.

The client remembers for each broker which entries the broker may have. An entry may be there if its withdrawal was not
answered, or if its caller gave up before the answer. When the client returns, it withdraws those that it does not want.

A broker that ends a connection over a malformed frame does not say which request it was. So the client probes on the
next connection: it sends one request at a time, and each waits for the answer to the previous one. Nothing else is
sent meanwhile. If the connection ends again, the request without an answer is the cause, and is not sent again.
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
from broker.client.errors import ClientError, ClosedError, RefusedError, refused_error
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

_KIND_NAMES: dict[Kind, str] = {Advertise: "advertisement", Subscribe: "subscription"}


@dataclass(frozen=True, slots=True)
class _Unanswered:
    frame: Request
    answer: asyncio.Future[Answer]


class Requests:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_lost: Callable[[str, RefusedError], None],
        on_probe_done: Callable[[], None],
    ) -> None:
        """`on_lost` is called if a broker refuses an earlier subscription after a reconnect. `on_probe_done` is called
        when probing ends."""
        self._loop = loop
        self._last_number = 0
        self._entered: dict[tuple[Kind, str], str] = {}
        self._unanswered: dict[int, _Unanswered] = {}
        self._reentered: dict[int, tuple[Kind, str]] = {}
        """Requests that enter an earlier entry again. No caller waits for their answers."""
        self._withdrawing: dict[int, tuple[Kind, str]] = {}
        """Withdrawals that the present broker has not answered. Callers may have given up."""
        self._entered_at: dict[str, dict[tuple[Kind, str], str]] = {}
        """The entries that each broker may have had when its connection broke. The client may use other brokers before
        it returns. An empty expression stands for an unknown one."""
        self._text_bytes = TEXT_BYTES
        self._is_probing = False
        self._queued: deque[Request] = deque()
        """While probing: requests that wait for the answer to the previous one."""
        self._probe: Request | None = None
        self._connection: Connection | None = None
        self._end: ClientError | None = None
        self._on_lost = on_lost
        self._on_probe_done = on_probe_done

    @property
    def is_probing(self) -> bool:
        """Whether requests are sent one by one, so that nothing else may be sent."""
        return self._is_probing

    async def enter(self, kind: Kind, expressions: Mapping[str, str]) -> None:
        """Enters all expressions or none. If one is refused, the others are withdrawn."""
        frames = [kind(self._next_number(), *entry) for entry in expressions.items()]
        try:
            for frame in frames:
                self._check(frame)
            await self._send_and_wait(frames)
        except BaseException:
            self.abandon(kind, expressions)
            raise

    async def withdraw(self, kind: Kind, names: Collection[str]) -> None:
        for name in names:
            check_name(name, _KIND_NAMES[kind], self._text_bytes)
        await self._send_and_wait([self._remove_entry(kind, name) for name in names])

    def abandon(self, kind: Kind, names: Iterable[str]) -> None:
        """Withdraws without waiting for the answers."""
        for name in names:
            frame = self._remove_entry(kind, name)
            # The broker has no entry under a name that it does not accept.
            with suppress(RefusedError):
                self._check(frame)
                self._send(frame)

    async def trace(self, publication: PublicationId) -> TraceAnswer:
        query = TraceQuery(self._next_number(), publication)
        self._check(query)
        (answer,) = await self._send_and_wait([query])
        assert isinstance(answer, TraceAnswer)
        return answer

    def _remove_entry(self, kind: Kind, name: str) -> Unadvertise | Unsubscribe:
        """Removes an entry. Returns the request that withdraws it at the broker."""
        self._entered.pop((kind, name), None)
        return Unadvertise(self._next_number(), name) if kind is Advertise else Unsubscribe(self._next_number(), name)

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    async def _send_and_wait(self, frames: Sequence[Request]) -> list[Answer]:
        """Sends all requests, then waits for their answers."""
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
                    # The first error is raised. Retrieve the others, or the loop logs them.
                    answer.exception()

    def answered(self, answer: Answer) -> None:
        self._withdrawing.pop(answer.request, None)
        self._handle_answer(answer)
        self._continue_probing(answer.request)

    def _handle_answer(self, answer: Answer) -> None:
        request = self._unanswered.get(answer.request)
        if request is None:
            self._reentered.pop(answer.request, None)
            return
        frame = request.frame
        if isinstance(frame, Advertise | Subscribe):
            self._entered[type(frame), frame.name] = frame.expression
        if not request.answer.done():
            request.answer.set_result(answer)

    def refused(self, refusal: RequestRefused) -> None:
        self._withdrawing.pop(refusal.request, None)
        self._handle_refusal(refusal)
        self._continue_probing(refusal.request)

    def _handle_refusal(self, refusal: RequestRefused) -> None:
        request = self._unanswered.get(refusal.request)
        if request is None:
            _, name = self._reentered.pop(refusal.request, (None, ""))
            if name:
                self._report_lost(
                    name, refused_error(f"subscription or advertisement {name!r}", refusal.reason, refusal.text)
                )
            return
        if request.answer.done():
            return
        if isinstance(request.frame, Unadvertise | Unsubscribe) and refusal.reason == Reason.UNKNOWN:
            # Sent twice because of a reconnect, or to a broker that never had the entry: the entry is removed.
            request.answer.set_result(RequestAccepted(refusal.request))
        else:
            request.answer.set_exception(refused_error(_described(request.frame), refusal.reason, refusal.text))

    def connected(self, connection: Connection, welcome: Welcome) -> None:
        self._connection = connection
        self._text_bytes = welcome.text_bytes
        there = self._entered_at.pop(welcome.broker, {})
        for key, expression in list(self._entered.items()):
            if not welcome.is_resumed or there.get(key) != expression:
                self._reenter(*key, expression)
        # After a revocation a broker denies that the session is resumed, and still has entries.
        self._withdraw_others(there)
        for request in self._unanswered.values():
            self._resend(request)
        if self._probe is None:
            self._is_probing = False

    def _reenter(self, kind: Kind, name: str, expression: str) -> None:
        frame = kind(self._next_number(), name, expression)
        try:
            self._check(frame)
        except RefusedError as error:
            # The previous broker accepted longer texts.
            del self._entered[kind, name]
            self._report_lost(name, error)
        else:
            self._reentered[frame.request] = (kind, name)
            self._send(frame)

    def _resend(self, request: _Unanswered) -> None:
        if request.answer.done():
            return
        try:
            self._check(request.frame)
        except RefusedError as error:
            request.answer.set_exception(error)
        else:
            self._send(request.frame)

    def _check(self, frame: Request) -> None:
        """Checks a request against the current broker's limits, which may differ from those of the previous broker."""
        if isinstance(frame, TraceQuery):
            check_publication_id(frame.publication, self._text_bytes)
            return
        what = _KIND_NAMES[_kind_of(frame)]
        check_name(frame.name, what, self._text_bytes)
        if isinstance(frame, Advertise | Subscribe):
            check_expression(frame.name, frame.expression, what, self._text_bytes)

    def _report_lost(self, name: str, error: RefusedError) -> None:
        log.error("after a reconnect, %s", error)
        self._on_lost(name, error)

    def _withdraw_others(self, there: Mapping[tuple[Kind, str], str]) -> None:
        """Withdraws entries that the broker may have and the client does not want. Leaves out those of unanswered
        requests, which are sent again."""
        unanswered = {_entry_of(each.frame) for each in self._unanswered.values() if not each.answer.done()}
        for key in there:
            if key not in self._entered and key not in unanswered:
                self._send(self._remove_entry(*key))

    def disconnected(self, broker: str, malformed: Goodbye | None) -> bool:
        """Handles the loss of the connection. `malformed` is the goodbye of a broker that could not read a frame.

        Returns whether the request that caused such a goodbye is known.
        """
        self._connection = None
        suspect, self._probe = self._probe, None
        self._queued.clear()
        if malformed is not None:
            self._is_probing = True
            if suspect is not None:
                self._fail_request(suspect, refused_error(_described(suspect), malformed.reason, malformed.text))
        self._entered_at[broker] = self._possible_entries()
        self._reentered.clear()
        self._withdrawing.clear()
        return malformed is not None and suspect is not None

    def _possible_entries(self) -> dict[tuple[Kind, str], str]:
        """The entries that the present broker may have. Those of unanswered requests have an empty expression, which
        equals no real one."""
        possible = dict.fromkeys(self._withdrawing.values(), "")
        for request in self._unanswered.values():
            entry = _entry_of(request.frame)
            if entry is not None and not request.answer.done():
                possible[entry] = ""
        return possible | self._entered | dict.fromkeys(self._reentered.values(), "")

    def _fail_request(self, frame: Request, error: RefusedError) -> None:
        """Fails a request, which is not sent again."""
        self._withdrawing.pop(frame.request, None)
        request = self._unanswered.get(frame.request)
        if request is not None:
            if not request.answer.done():
                request.answer.set_exception(error)
        elif frame.request in self._reentered and isinstance(frame, Advertise | Subscribe):
            self._entered.pop((type(frame), frame.name), None)
            self._report_lost(frame.name, error)

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
        if isinstance(frame, Unadvertise | Unsubscribe):
            self._withdrawing[frame.request] = _kind_of(frame), frame.name
        if self._probe is not None:
            self._queued.append(frame)
            return
        if self._is_probing:
            self._probe = frame
        self._connection.send(encode(frame))

    def _continue_probing(self, answered: int) -> None:
        if self._probe is None or self._probe.request != answered:
            return
        self._probe = None
        if self._queued:
            self._send(self._queued.popleft())
        else:
            self._is_probing = False
            self._on_probe_done()


def _kind_of(frame: Advertise | Unadvertise | Subscribe | Unsubscribe) -> Kind:
    return Advertise if isinstance(frame, Advertise | Unadvertise) else Subscribe


def _entry_of(frame: Request) -> tuple[Kind, str] | None:
    """The entry that the request enters or withdraws, if it does either."""
    return None if isinstance(frame, TraceQuery) else (_kind_of(frame), frame.name)


def _described(frame: Request) -> str:
    what = frame.publication if isinstance(frame, TraceQuery) else shortened(frame.name)
    return f"{type(frame).__name__.lower()} {what}"

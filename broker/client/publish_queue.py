"""Publications in flight to the broker: numbered, bounded, and resent after a reconnect until they are answered."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Protocol

from broker.client.connection import Connection
from broker.client.errors import ClientError, ClosedError, InvalidError, TooLargeError, refused_error
from broker.wire.client_codec import encode_publish, has_id
from broker.wire.client_frames import ONCE, Ping, PublicationRefused, Reason, Welcome
from routing.messages import PublicationId


class Answer(Protocol):
    """Receives the result of a publication. A future, or a lighter object that is called at once."""

    def done(self) -> bool: ...

    def set_result(self, result: PublicationId | None, /) -> None: ...

    def set_exception(self, exception: BaseException, /) -> None: ...


class PublishQueue:
    def __init__(self, loop: asyncio.AbstractEventLoop, *, is_answered: bool) -> None:
        self.refusals: Counter[str] = Counter()
        """The broker's refusals, by reason."""
        self._loop = loop
        self._is_answered = is_answered
        self._reference = 0
        self._confirmed = 0
        """In at-most-once mode: the broker has read all publications up to this reference."""
        self._unanswered: dict[int, tuple[bytes, Answer]] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._connection: Connection | None = None
        self._broker, self._incarnation = "", 0
        self._window = 0
        self._ping_every = 1
        self._largest_frame = 0
        self._reads_ids = True
        """Whether the broker reads ids of publications. An older one would end the connection over an id."""
        self._end: ClientError | None = None

    @property
    def unanswered(self) -> int:
        return len(self._unanswered)

    def has_room(self) -> bool:
        connection = self._connection
        return connection is not None and self._room() > 0 and connection.has_room()

    def _room(self) -> int:
        return self._window - (len(self._unanswered) if self._is_answered else self._reference - self._confirmed)

    async def wait_for_room(self) -> None:
        """Waits until the window has room. Callers are served in order, so publications keep their order."""
        if self._end is not None:
            raise self._end
        if not self._waiters and self.has_room():
            return
        turn: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(turn)
        while True:
            try:
                await turn
            except asyncio.CancelledError:
                self.wake()
                raise
            if self.has_room():
                return
            turn = self._loop.create_future()
            self._waiters.appendleft(turn)

    def put(
        self, attributes: bytes, payload: bytes, lifetime_ms: int, is_traced: bool, id: str = ""
    ) -> asyncio.Future[PublicationId | None]:
        """Sends a publication. Returns a future of its id; the id is None if the broker did not send it."""
        answer: asyncio.Future[PublicationId | None] = self._loop.create_future()
        self.put_for(answer, attributes, payload, lifetime_ms, is_traced, id)
        return answer

    def put_for(
        self, answer: Answer, attributes: bytes, payload: bytes, lifetime_ms: int, is_traced: bool, id: str = ""
    ) -> None:
        if self._end is not None:
            raise self._end
        frame = encode_publish(self._reference + 1, attributes, payload, lifetime_ms, is_traced, id)
        if self._largest_frame and len(frame) > self._largest_frame:
            raise self._too_large(frame)
        if id and not self._reads_ids:
            raise self._unreadable_id()
        self._reference += 1
        if self._is_answered:
            self._unanswered[self._reference] = (frame, answer)
        else:
            answer.set_result(None)
        if self._connection is not None:
            self._connection.send(frame)
            if not self._is_answered and self._reference % self._ping_every == 0:
                # The broker does not answer publications in this mode, and the network buffers thousands: the broker
                # would fall behind by seconds. Its pong shows that it has read all earlier publications.
                self._connection.send_frame(Ping(self._reference))

    def pong_received(self, number: int) -> None:
        if number > self._confirmed:
            self._confirmed = number
            self.wake()

    def accepted(self, answers: tuple[int, ...]) -> None:
        numbers = iter(answers)
        unanswered = self._unanswered
        for reference, counter in zip(numbers, numbers, strict=True):
            waiting = unanswered.pop(reference, None)
            if waiting is not None and not waiting[1].done():
                waiting[1].set_result(PublicationId(self._broker, self._incarnation, counter))
        if self._waiters:
            self.wake()

    def refused(self, refusal: PublicationRefused) -> None:
        self.refusals[refusal.reason] += 1
        waiting = self._unanswered.pop(refusal.reference, None)
        if waiting is not None and not waiting[1].done():
            waiting[1].set_exception(refused_error("the publication", refusal.reason, refusal.text))
        self.wake()

    def connected(self, connection: Connection, welcome: Welcome) -> None:
        self._connection = connection
        self._broker, self._incarnation = welcome.broker, welcome.incarnation
        self._window, self._largest_frame = welcome.publish_window, welcome.frame_bytes
        self._reads_ids = ONCE in welcome.capabilities
        self._ping_every = max(1, self._window // 4)
        self._confirmed = self._reference
        missing = frozenset(welcome.missing)
        for reference in list(self._unanswered):
            frame, answer = self._unanswered[reference]
            if reference <= welcome.accepted_through and reference not in missing:
                # The broker accepted it on the connection that broke. Its id is not known here.
                del self._unanswered[reference]
                if not answer.done():
                    answer.set_result(None)
            elif has_id(frame) and not self._reads_ids:
                del self._unanswered[reference]
                if not answer.done():
                    answer.set_exception(self._unreadable_id())
            elif len(frame) > self._largest_frame:
                # The previous broker accepted larger frames. This one would end the connection over it.
                del self._unanswered[reference]
                if not answer.done():
                    answer.set_exception(self._too_large(frame))
            else:
                connection.send(frame)
        self.wake()

    def _too_large(self, frame: bytes) -> TooLargeError:
        text = f"{len(frame)} bytes are more than the {self._largest_frame} that the broker takes in a frame"
        return TooLargeError("the publication", Reason.TOO_LARGE, text)

    def _unreadable_id(self) -> InvalidError:
        text = f"broker {self._broker} is of a version that knows no ids of publications; publish without an id"
        return InvalidError("the publication", Reason.INVALID, text)

    def disconnected(self) -> None:
        self._connection = None

    def wake(self) -> None:
        """Wakes as many waiting callers as the window has room for."""
        room = self._room()
        while self._waiters and room > 0 and self._connection is not None and self._connection.has_room():
            turn = self._waiters.popleft()
            if not turn.done():
                turn.set_result(None)
                room -= 1

    async def drain(self) -> None:
        """Waits until all publications are answered."""
        while self._unanswered or self._waiters:
            answers = [answer for _, answer in self._unanswered.values() if isinstance(answer, asyncio.Future)]
            if answers:
                await asyncio.wait(answers)
            else:
                await asyncio.sleep(0.01)

    def end(self, error: ClientError | None) -> None:
        """Fails all publications without an answer, and all callers that wait for room."""
        self._connection = None
        self._end = error or ClosedError("the client is closed")
        for _, answer in self._unanswered.values():
            if not answer.done():
                answer.set_exception(self._end)
                if isinstance(answer, asyncio.Future):
                    # Retrieve the error, or the loop logs it if the application does not await the answer.
                    answer.exception()
        self._unanswered.clear()
        for turn in self._waiters:
            if not turn.done():
                turn.set_exception(self._end)
        self._waiters.clear()

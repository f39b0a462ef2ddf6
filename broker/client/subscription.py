"""Subscriptions as streams: an async context manager that is an async iterator over publications."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

from broker.client.acknowledgements import Acknowledgements
from broker.client.deadline import Deadline
from broker.client.errors import ClientError, ClosedError
from broker.wire.client_frames import Delivery
from matching.expressions.values import Value
from matching.matcher import unpack_attributes


class Publication:
    """A publication as a subscriber gets it."""

    __slots__ = ("_acknowledgements", "_attributes", "_number", "_packed", "hops", "id", "payload", "subscriptions")

    def __init__(self, delivery: Delivery, acknowledgements: Acknowledgements | None) -> None:
        self._number, self.subscriptions, self.hops, self.id, self._packed, self.payload = delivery
        self._acknowledgements = acknowledgements
        self._attributes: dict[str, Value] | None = None

    @property
    def attributes(self) -> Mapping[str, Value]:
        """Decoded when first asked for: who only counts or stores publications need not pay for it."""
        if self._attributes is None:
            self._attributes = unpack_attributes(self._packed)
        return self._attributes

    @property
    def packed_attributes(self) -> bytes:
        """One MessagePack map, as the broker sent it."""
        return self._packed

    def __getitem__(self, name: str) -> Value:
        return self.attributes[name]

    def __repr__(self) -> str:
        return f"<Publication {self.id} {dict(self.attributes)!r}, {len(self.payload)} bytes>"

    def finish(self) -> None:
        """The application is done with it, so it can be acknowledged."""
        if self._acknowledgements is not None:
            self._acknowledgements.done(self._number)
            self._acknowledgements = None

    def came_again(self, number: int, acknowledgements: Acknowledgements) -> None:
        """The broker sent it once more on a new connection, while it still waits here."""
        self._number, self._acknowledgements = number, acknowledgements

    @property
    def is_unfinished(self) -> bool:
        return self._acknowledgements is not None


class Subscriber(Protocol):
    """What a subscription needs of its client."""

    async def enter(self, subscription: Subscription) -> None: ...

    async def leave(self, subscription: Subscription, *, is_kept: bool) -> None: ...

    def has_room_again(self, subscription: Subscription) -> None: ...

    async def widen(self, subscription: Subscription, name: str, expression: str) -> None: ...

    async def narrow(self, subscription: Subscription, name: str) -> None: ...


class Subscription:
    """Publications that match one or more expressions, each of them once.

    Asking for the next publication says that the application is done with the one before: only then is that one
    acknowledged. A subscription whose publications are not taken holds no more than a window of them.
    """

    def __init__(self, client: Subscriber, expressions: Mapping[str, str], limit: int, *, is_kept: bool) -> None:
        self.expressions = dict(expressions)
        """By name."""
        self._client = client
        self._is_kept = is_kept
        self._limit = limit
        self._queue: deque[Publication] = deque()
        self._handed_out: list[Publication] = []
        self._waiter: asyncio.Future[None] | None = None
        self._is_entered = False
        self._is_over = False
        self._error: ClientError | None = None

    async def __aenter__(self) -> Self:
        await self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None or not self._is_kept:
            self._finish()
        self.end(None)
        await self._client.leave(self, is_kept=self._is_kept)

    async def unsubscribe(self) -> None:
        """Ends it, also where it would have stayed for a durable client."""
        self._finish()
        self.end(None)
        await self._client.leave(self, is_kept=False)

    async def add(self, name: str, expression: str) -> None:
        """One more expression for this stream, or another one under a name that it has. Refused: it has neither."""
        await self._enter()
        await self._client.widen(self, name, expression)

    async def withdraw(self, name: str) -> None:
        """The stream goes on without this expression."""
        await self._client.narrow(self, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Publication:
        if self._handed_out:
            self._finish()
        if not self._queue and not await self._is_more():
            raise StopAsyncIteration
        publication = self._queue.popleft()
        self._handed_out.append(publication)
        if len(self._queue) == self._limit // 2:
            self._client.has_room_again(self)
        return publication

    async def take(self) -> list[Publication]:
        """All that there is, and at least one: quicker than one by one. Empty when the subscription is over."""
        if self._handed_out:
            self._finish()
        if not self._queue and not await self._is_more():
            return []
        taken, self._handed_out = list(self._queue), list(self._queue)
        self._queue.clear()
        self._client.has_room_again(self)
        return taken

    async def next(self, timeout_s: float | None = None) -> Publication:
        """The next publication; `TimeoutExpiredError` when none came."""
        async with Deadline("a publication", timeout_s):
            try:
                return await self.__anext__()
            except StopAsyncIteration:
                raise ClosedError("the subscription is over") from None

    def __len__(self) -> int:
        """Publications that wait to be taken."""
        return len(self._queue)

    def put(self, publication: Publication) -> bool:
        """Is there room for more?"""
        self._queue.append(publication)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        return len(self._queue) < self._limit

    def unfinished(self) -> list[Publication]:
        """What was delivered and is not acknowledged."""
        return [each for each in (*self._handed_out, *self._queue) if each.is_unfinished]

    def discard(self) -> None:
        """Nobody is going to take what waits."""
        for publication in self._queue:
            publication.finish()
        self._queue.clear()

    def end(self, error: ClientError | None) -> None:
        """No more will come; what waits can still be taken."""
        self._is_over = True
        self._error = self._error or error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _finish(self) -> None:
        for publication in self._handed_out:
            publication.finish()
        self._handed_out.clear()

    async def _enter(self) -> None:
        if not self._is_entered:
            self._is_entered = True
            await self._client.enter(self)

    async def _is_more(self) -> bool:
        await self._enter()
        while not self._queue:
            if self._error is not None:
                raise self._error
            if self._is_over:
                return False
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return True

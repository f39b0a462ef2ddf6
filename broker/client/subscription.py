"""Subscriptions as streams: an async context manager that is an async iterator over publications."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

from broker.client.acknowledgements import Acknowledgements
from broker.client.connection import Deadline
from broker.client.errors import ClientError, ClosedError
from broker.wire.client_frames import Delivery
from matching.expressions.values import Value
from matching.matcher import unpack_attributes


class Publication:
    """A publication as a subscriber receives it."""

    __slots__ = ("_acknowledgements", "_attributes", "_number", "_packed", "hops", "id", "payload", "subscriptions")

    def __init__(self, delivery: Delivery, acknowledgements: Acknowledgements | None) -> None:
        self._number, self.subscriptions, self.hops, self.id, self._packed, self.payload = delivery
        self._acknowledgements = acknowledgements
        self._attributes: dict[str, Value] | None = None

    @property
    def attributes(self) -> Mapping[str, Value]:
        """Decoded at the first access: an application that only counts or stores publications avoids the cost."""
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
        """Marks the publication as processed by the application, so that it can be acknowledged."""
        if self._acknowledgements is not None:
            self._acknowledgements.finish(self._number)
            self._acknowledgements = None

    def renumber(self, number: int, acknowledgements: Acknowledgements) -> None:
        """Sets the delivery number of a new connection, on which the broker has sent the publication again."""
        self._number, self._acknowledgements = number, acknowledgements

    @property
    def is_unfinished(self) -> bool:
        """Whether the application has not finished the publication, and the broker waits for that."""
        return self._acknowledgements is not None


class Subscriber(Protocol):
    """The part of the client that a subscription uses."""

    async def open_subscription(self, subscription: Subscription) -> None: ...

    async def close_subscription(self, subscription: Subscription, *, is_kept: bool) -> None: ...

    def room_available(self, subscription: Subscription) -> None: ...

    async def add_expression(self, subscription: Subscription, name: str, expression: str) -> None: ...

    async def remove_expression(self, subscription: Subscription, name: str) -> None: ...


class Subscription:
    """A stream of the publications that match one or more expressions, each of them once.

    A request for the next publication finishes the previous one: only then is the previous one acknowledged. The
    stream queues at most a window of publications.
    """

    def __init__(self, client: Subscriber, expressions: Mapping[str, str], limit: int, *, is_kept: bool) -> None:
        self.expressions = dict(expressions)
        """Expressions by name."""
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
        await self._client.close_subscription(self, is_kept=self._is_kept)

    async def unsubscribe(self) -> None:
        """Ends the subscription. A durable client's named subscription ends too."""
        self._finish()
        self.end(None)
        await self._client.close_subscription(self, is_kept=False)

    async def add(self, name: str, expression: str) -> None:
        """Adds an expression to the stream, or replaces the one of that name. A refusal removes both."""
        await self._enter()
        await self._client.add_expression(self, name, expression)

    async def withdraw(self, name: str) -> None:
        """Removes an expression. The stream continues with the others."""
        await self._client.remove_expression(self, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Publication:
        if self._handed_out:
            self._finish()
        if not self._queue and not await self._wait_for_more():
            raise StopAsyncIteration
        publication = self._queue.popleft()
        self._handed_out.append(publication)
        if len(self._queue) == self._limit // 2:
            self._client.room_available(self)
        return publication

    async def receive_batch(self) -> list[Publication]:
        """Receives all queued publications, and waits for at least one. Returns none after the subscription has ended.

        This is faster than iteration one by one.
        """
        if self._handed_out:
            self._finish()
        if not self._queue and not await self._wait_for_more():
            return []
        publications, self._handed_out = list(self._queue), list(self._queue)
        self._queue.clear()
        self._client.room_available(self)
        return publications

    async def next(self, timeout_s: float | None = None) -> Publication:
        """Returns the next publication. Raises `TimeoutExpiredError` if none arrives in time."""
        async with Deadline("a publication", timeout_s):
            try:
                return await self.__anext__()
            except StopAsyncIteration:
                raise ClosedError("the subscription is over") from None

    def __len__(self) -> int:
        """The number of queued publications."""
        return len(self._queue)

    def put(self, publication: Publication) -> bool:
        """Queues a publication. Returns whether there is room for more."""
        self._queue.append(publication)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        return len(self._queue) < self._limit

    def unfinished(self) -> list[Publication]:
        """Delivered publications that the application has not finished."""
        return [each for each in (*self._handed_out, *self._queue) if each.is_unfinished]

    def discard(self) -> None:
        """Drops the queued publications, and marks them as finished."""
        for publication in self._queue:
            publication.finish()
        self._queue.clear()

    def end(self, error: ClientError | None) -> None:
        """Ends the stream. Queued publications can still be received."""
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
            await self._client.open_subscription(self)

    async def _wait_for_more(self) -> bool:
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

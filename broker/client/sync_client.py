"""The synchronous client: a thread runs the event loop, and calls wait for their result.

with connect_sync("mercast://127.0.0.1:7001") as client:
    client.publish({"symbol": "IBM", "price": 92.5})
    with client.subscribe("price > 90") as prices:
        for publication in prices:
            print(publication.attributes)
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Self, TypeVar

from broker.client.client import Client, connect
from broker.client.options import DEFAULT_SERVER
from broker.client.subscription import Publication, Subscription
from broker.wire.client_frames import DeliveryMode
from matching.expressions.model import Expression
from matching.expressions.values import Value
from routing.messages import PublicationId

T = TypeVar("T")


class SyncSubscription:
    """A context manager and an iterator over publications."""

    def __init__(self, client: SyncClient, subscription: Subscription) -> None:
        self._client = client
        self._subscription = subscription

    def __enter__(self) -> Self:
        self._client.run(self._subscription.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.run(self._subscription.__aexit__(kind, error, traceback))

    def __iter__(self) -> Iterator[Publication]:
        while batch := self._client.run(self._subscription.receive_batch()):
            yield from batch

    def next(self, timeout: float | None = None) -> Publication:
        return self._client.run(self._subscription.next(timeout))

    def unsubscribe(self) -> None:
        self._client.run(self._subscription.unsubscribe())


class SyncClient:
    """The synchronous client. Create one with `connect_sync`. Several threads may call its methods."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread, client: Client) -> None:
        self._loop = loop
        self._thread = thread
        self._client = client

    def __enter__(self) -> Self:
        try:
            self.run(self._client.open())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the client as `Client.close` does, and ends its thread."""
        if self._loop.is_closed():
            return
        try:
            self.run(self._client.close())
        finally:
            self._stop()

    @property
    def broker(self) -> str:
        """The id of the current broker, or of the last one while disconnected."""
        return self._client.broker

    def publish(
        self,
        attributes: Mapping[str, Value],
        payload: bytes = b"",
        *,
        expires: float | None = None,
        id: str | None = None,
    ) -> PublicationId | None:
        """Publishes and waits for the broker's answer, as `Client.publish` does."""
        return self.run(self._client.publish(attributes, payload, expires=expires, id=id))

    def advertise(self, expression: str | Expression, *, name: str | None = None) -> str:
        """Announces which publications the client will send. Returns the advertisement's name."""
        return self.run(self._client.advertise(expression, name=name))

    def unadvertise(self, name: str) -> None:
        """Withdraws an advertisement by its name."""
        self.run(self._client.unadvertise(name))

    def subscribe(
        self, expression: str | Expression | Mapping[str, str | Expression], *, name: str | None = None
    ) -> SyncSubscription:
        """Returns a stream of publications. `with` enters it at the broker. See `Client.subscribe`."""
        return SyncSubscription(self, self._client.subscribe(expression, name=name))

    def unsubscribe(self, name: str) -> None:
        """Removes a durable subscription that this process has not entered."""
        self.run(self._client.unsubscribe(name))

    def run(self, coroutine: Coroutine[object, object, T]) -> T:
        """Runs a coroutine in the loop's thread and returns its result. Ctrl-C cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def connect_sync(
    servers: str | Iterable[str] = DEFAULT_SERVER,
    *,
    name: str = "",
    token: str = "",
    tls: ssl.SSLContext | None = None,
    mode: DeliveryMode | str = DeliveryMode.AT_LEAST_ONCE,
    durable: bool = False,
    window: int = 1024,
    wait: float = 0.0,
    timeout: float | None = 30.0,
    reconnect_within: float | None = None,
) -> SyncClient:
    """Creates a client for programs without asyncio; `with` connects it. Options are those of `broker.connect`."""

    async def create() -> Client:
        return connect(
            servers,
            name=name,
            token=token,
            tls=tls,
            mode=mode,
            durable=durable,
            window=window,
            wait=wait,
            timeout=timeout,
            reconnect_within=reconnect_within,
        )

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="mercast-client", daemon=True)
    thread.start()
    try:
        client = asyncio.run_coroutine_threadsafe(create(), loop).result()
    except BaseException:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        raise
    return SyncClient(loop, thread, client)

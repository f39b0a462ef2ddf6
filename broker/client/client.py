"""The asyncio client.

    async with connect("mercast://127.0.0.1:7001") as client:
        await client.publish({"symbol": "IBM", "price": 92.5})
        async with client.subscribe("price > 90") as prices:
            async for publication in prices:
                print(publication.attributes)

It stays connected: when a connection breaks it tries its servers in turn, enters its subscriptions again where the
broker does not know them, and sends again what was published and not answered.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgpack

from broker.client.connection import LIMITS, Connection, decoded
from broker.client.deadline import Deadline
from broker.client.delivery_inbox import UNNAMED, DeliveryInbox
from broker.client.errors import ClientError, ClosedError, RefusedError, TimeoutExpiredError
from broker.client.options import ClientOptions
from broker.client.publish_queue import Answer, PublishQueue
from broker.client.reconnect import Reconnect
from broker.client.requests import Requests
from broker.client.servers import DEFAULT_SERVER, parse_servers
from broker.client.subscription import Subscription
from broker.client.validation import check_name, lifetime_ms, payload_bytes
from broker.config.address import Address
from broker.wire.client_codec import decode_delivery, encode
from broker.wire.client_frames import (
    Advertise,
    Delivery,
    DeliveryMode,
    Goodbye,
    Hello,
    Ping,
    Pong,
    PublicationRefused,
    PublicationsAccepted,
    Reason,
    RequestAccepted,
    RequestRefused,
    Subscribe,
    TraceAnswer,
    Welcome,
)
from broker.wire.client_kinds import DELIVERY
from broker.wire.limits import WireError
from matching.expressions.model import Expression
from matching.expressions.values import Value, check_publication
from routing.messages import PublicationId

log = logging.getLogger("mercast.client")

MOST_UNEXPLAINED = 3
"""Connections that a broker may end in a row over something that was sent, and that cannot be found."""


class Client:
    """Make one with `connect`."""

    def __init__(self, servers: tuple[Address, ...], options: ClientOptions) -> None:
        if options.is_durable and not options.name:
            raise ClientError('a durable client is known by its name; give one, as name="desk-1"')
        if options.window < 1:
            raise ClientError(f"window is {options.window}; at least one delivery must be on its way")
        self.name = options.name or f"client-{secrets.token_hex(6)}"
        check_name(self.name, "client")
        self.reconnects = 0
        self._options = options
        self._hello = Hello(
            self.name,
            secrets.token_hex(8),
            options.token,
            options.mode,
            options.is_durable,
            options.window,
        )
        try:
            encode(self._hello)
        except WireError as error:
            raise ClientError(f"name, token or window cannot be sent: {error}") from None
        self._dialling = Reconnect(servers, options.connect_within_s, options.tls, self._hello, self)
        self._next_name = 0
        self._connection: Connection | None = None
        self._broker = ""
        self._reconnecting: asyncio.Task[None] | None = None
        self._is_closing = False
        self._unexplained = 0
        loop = asyncio.get_running_loop()
        is_reliable = self._hello.mode is DeliveryMode.AT_LEAST_ONCE
        self._publishing = PublishQueue(loop, is_answered=is_reliable)
        self._entries = Requests(loop, self._subscription_lost, self._go_on_publishing)
        self._deliveries = DeliveryInbox(
            loop,
            options.window,
            lambda name: self._entries.abandon(Subscribe, [name]),
            is_acknowledged=is_reliable,
            is_durable=options.is_durable,
        )

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except ClientError:
            # The error that ended the block says more.
            if kind is None:
                raise

    async def open(self) -> None:
        """Connects to the first server that takes the connection."""
        await self._dialling.connect(self._options.wait_s)

    async def close(self) -> None:
        """Waits until what was published is answered, says farewell and ends all subscriptions."""
        if self._is_closing:
            return
        if self._connection is not None or self._reconnecting is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._options.drain_s):
                    await self._publishing.drain()
        unanswered = self._publishing.unanswered
        self._is_closing = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.wait([self._reconnecting])
        if self._connection is not None:
            self._deliveries.tell()
            unnamed = [name for each in self._deliveries.all() for name in each.expressions if name.startswith(UNNAMED)]
            if self._options.is_durable:
                self._entries.abandon(Subscribe, unnamed)
            await self._connection.close(is_kept=self._options.is_durable, within_s=1.0)
        self._finish(None)
        if unanswered:
            raise TimeoutExpiredError(
                f"{unanswered} publications had no answer within {self._options.drain_s:g} s when the client was closed"
            )

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def broker(self) -> str:
        """The id of the broker that the client is or was last connected to."""
        return self._broker

    @property
    def repeated(self) -> int:
        """Deliveries that came again after a reconnect and were left out."""
        return self._deliveries.repeated

    @property
    def unclaimed(self) -> tuple[str, ...]:
        """Durable subscriptions of an earlier process for which something came, and which this one has not entered."""
        return self._deliveries.unclaimed

    @property
    def refusals(self) -> Mapping[str, int]:
        """How many publications were refused, by reason."""
        return self._publishing.refusals

    async def publish(
        self,
        attributes: Mapping[str, Value],
        payload: bytes = b"",
        *,
        expires: float | None = None,
        is_traced: bool = False,
    ) -> PublicationId | None:
        """Returns when the broker answers for the publication, with its id where that is known.

        `expires` is in seconds: later than that it is not delivered. In at-most-once mode there is no answer.
        """
        async with self._in_time("an answer to a publication"):
            return await (await self.publish_soon(attributes, payload, expires=expires, is_traced=is_traced))

    async def publish_soon(
        self,
        attributes: Mapping[str, Value],
        payload: bytes = b"",
        *,
        expires: float | None = None,
        is_traced: bool = False,
    ) -> asyncio.Future[PublicationId | None]:
        """Sends the publication as soon as there is room, and returns its answer to come: many can be on their way."""
        packed: bytes = msgpack.packb(check_publication(attributes))
        return await self.publish_packed(packed, payload, expires=expires, is_traced=is_traced)

    async def publish_packed(
        self, attributes: bytes, payload: bytes = b"", *, expires: float | None = None, is_traced: bool = False
    ) -> asyncio.Future[PublicationId | None]:
        """As `publish_soon`, for attributes that are one MessagePack map already."""
        lifetime, body = lifetime_ms(expires), payload_bytes(payload)
        await self._publishing.wait_for_room()
        return self._publishing.put(attributes, body, lifetime, is_traced)

    async def wait_for_room(self) -> None:
        """Returns when a publication may be sent at once."""
        await self._publishing.wait_for_room()

    def publish_now(self, answer: Answer, attributes: bytes, payload: bytes) -> bool:
        """As `publish_packed`, without waiting, and with an answer of one's own. False: there is no room."""
        if not self._publishing.has_room():
            return False
        self._publishing.put_for(answer, attributes, payload, 0, False)
        return True

    async def flush(self) -> None:
        """Returns when everything that was published is answered."""
        async with self._in_time("answers to all publications"):
            await self._publishing.drain()

    async def advertise(self, expression: str | Expression, *, name: str | None = None) -> str:
        """Says what the client is going to publish; returns the advertisement's name."""
        chosen = name or self._new_name()
        async with self._in_time(f"an answer to advertisement {chosen!r}"):
            await self._entries.enter(Advertise, {chosen: str(expression)})
        return chosen

    async def unadvertise(self, name: str) -> None:
        async with self._in_time(f"an answer to unadvertise {name!r}"):
            await self._entries.withdraw(Advertise, [name])

    def subscribe(
        self, expression: str | Expression | Mapping[str, str | Expression], *, name: str | None = None
    ) -> Subscription:
        """A stream of publications, entered at the broker by `async with` or by the first iteration.

        Several expressions by name make one stream, in which a publication that matches several comes once. For a
        durable client a subscription with a name stays when it is left, until `unsubscribe`.
        """
        if isinstance(expression, Mapping):
            expressions = {each: str(text) for each, text in expression.items()}
        else:
            expressions = {name or self._new_name(): str(expression)}
        is_named = name is not None or isinstance(expression, Mapping)
        return Subscription(
            self,
            expressions,
            self._options.window,
            is_kept=self._options.is_durable and is_named,
        )

    async def unsubscribe(self, name: str) -> None:
        """Ends a durable subscription that this process has not entered."""
        async with self._in_time(f"an answer to unsubscribe {name!r}"):
            await self._entries.withdraw(Subscribe, [name])
        self._deliveries.unclaim(name)

    async def trace_steps(self, publication: PublicationId) -> TraceAnswer:
        """What the connected broker did with a traced publication."""
        async with self._in_time(f"the trace of {publication}"):
            return await self._entries.trace(publication)

    async def enter(self, subscription: Subscription) -> None:
        taken = next((name for name in subscription.expressions if name in self._deliveries), None)
        if taken is not None:
            raise ClientError(f"a subscription of this client is called {taken!r} already")
        self._deliveries.add(subscription)
        try:
            async with self._in_time("an answer to subscribe"):
                await self._entries.enter(Subscribe, subscription.expressions)
        except BaseException:
            self._deliveries.remove(subscription, is_kept=False)
            raise

    async def leave(self, subscription: Subscription, *, is_kept: bool) -> None:
        self._deliveries.remove(subscription, is_kept=is_kept)
        if is_kept or self._is_closing:
            return
        async with self._in_time("an answer to unsubscribe"):
            await self._entries.withdraw(Subscribe, subscription.expressions)
        for name in subscription.expressions:
            self._deliveries.unclaim(name)

    async def widen(self, subscription: Subscription, name: str, expression: str) -> None:
        if name in self._deliveries and name not in subscription.expressions:
            raise ClientError(f"another subscription of this client is called {name!r} already")
        subscription.expressions[name] = expression
        self._deliveries.add(subscription, name)
        try:
            async with self._in_time(f"an answer to subscribe {name!r}"):
                await self._entries.enter(Subscribe, {name: expression})
        except BaseException:
            self._deliveries.drop(subscription, name)
            raise

    async def narrow(self, subscription: Subscription, name: str) -> None:
        self._deliveries.drop(subscription, name)
        async with self._in_time(f"an answer to unsubscribe {name!r}"):
            await self._entries.withdraw(Subscribe, [name])
        self._deliveries.unclaim(name)

    def has_room_again(self, subscription: Subscription | None = None) -> None:
        if subscription is not None:
            self._deliveries.has_room_again(subscription)
        else:
            self._publishing.wake()

    def connection_ready(self, connection: Connection, welcome: Welcome) -> None:
        self._connection = connection
        self._broker = welcome.broker
        # Subscriptions first: who publishes to itself expects to hear it.
        self._deliveries.connected(connection, welcome)
        self._entries.connected(connection, welcome)
        if not self._entries.is_careful:
            self._publishing.connected(connection, welcome)

    def _go_on_publishing(self) -> None:
        connection = self._connection
        if connection is not None and connection.welcome is not None:
            self._publishing.connected(connection, connection.welcome)

    def frames_received(self, frames: list[bytes]) -> None:
        take = self._deliveries.take
        for frame in frames:
            if frame[6] == DELIVERY:
                take(decode_delivery(frame, LIMITS))
            else:
                self._heard(frame)

    def _heard(self, frame: bytes) -> None:
        match decoded(frame):
            case PublicationsAccepted(answers):
                self._publishing.accepted(answers)
            case PublicationRefused() as refusal:
                self._publishing.refused(refusal)
            case RequestAccepted() | TraceAnswer() as answer:
                self._entries.answered(answer)
            case RequestRefused() as request:
                self._entries.refused(request)
            case Ping() as ping:
                if self._connection is not None:
                    self._connection.answer_ping(ping)
            case Goodbye() as goodbye:
                if self._connection is not None:
                    self._connection.dismissed(goodbye)
            case Pong(number):
                self._publishing.heard_pong(number)
            case Welcome() | Delivery():
                pass

    def connection_lost(self, connection: Connection, reason: str) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        self._deliveries.disconnected(self._broker)
        blame = connection.goodbye
        if blame is not None and blame.reason != Reason.MALFORMED:
            blame = None
        is_explained = self._entries.disconnected(self._broker, blame)
        self._publishing.disconnected()
        if is_explained or self._dialling.is_proven():
            self._unexplained = 0
        if blame is not None and not is_explained:
            self._unexplained += 1
        if self._is_closing:
            return
        if self._unexplained >= MOST_UNEXPLAINED:
            error = ClosedError(f"broker {self._broker} ended {self._unexplained} connections in a row: {reason}")
            log.error("%s", error)
            self._finish(error)
            return
        log.warning("lost broker %s (%s); connecting again", self._broker, reason)
        self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect())

    async def _reconnect(self) -> None:
        try:
            await self._dialling.connect(self._options.reconnect_within_s)
        except ClientError as error:
            log.error("%s", error)
            self._finish(error)
        else:
            self.reconnects += 1
            log.info("connected to broker %s", self._broker)
        finally:
            # The new connection may have broken before this task noticed that it was made.
            if self._reconnecting is asyncio.current_task():
                self._reconnecting = None

    def _subscription_lost(self, name: str, error: RefusedError) -> None:
        for subscription in self._deliveries.all():
            if name in subscription.expressions:
                subscription.end(error)

    def _finish(self, error: ClientError | None) -> None:
        self._connection = None
        self._publishing.end(error)
        self._entries.end(error)
        for subscription in self._deliveries.all():
            subscription.end(error)

    def _new_name(self) -> str:
        self._next_name += 1
        # A durable client's names may have outlived an earlier process, and must not be taken for this one's.
        life = f"{self._hello.session}-" if self._options.is_durable else ""
        return f"{UNNAMED}{life}{self._next_name}"

    def _in_time(self, what: str) -> Deadline:
        return Deadline(what, self._options.timeout_s, lambda: self.is_connected)


def connect(
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
) -> Client:
    """A client, connected by `async with`; times in seconds. `ClientOptions` says what each option means."""
    try:
        chosen = DeliveryMode(mode)
    except ValueError:
        raise ClientError(f"mode {mode!r} is not known; take {' or '.join(DeliveryMode)}") from None
    options = ClientOptions(
        name=name,
        token=token,
        tls=tls,
        mode=chosen,
        is_durable=durable,
        window=window,
        wait_s=wait,
        timeout_s=timeout,
        reconnect_within_s=reconnect_within,
    )
    return Client(parse_servers(servers), options)

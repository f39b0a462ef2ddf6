"""The asyncio client.

    async with connect("mercast://127.0.0.1:7001") as client:
        await client.publish({"symbol": "IBM", "price": 92.5})
        async with client.subscribe("price > 90") as prices:
            async for publication in prices:
                print(publication.attributes)

The client stays connected. When a connection breaks, it tries its servers in turn. It enters its subscriptions again
if the broker does not know them, and resends publications that were not answered.
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

from broker.client.connection import LIMITS, Connection, Deadline, decode_from_broker
from broker.client.delivery_inbox import UNNAMED, DeliveryInbox
from broker.client.errors import ClientError, ClosedError, RefusedError, TimeoutExpiredError
from broker.client.options import DEFAULT_SERVER, ClientOptions, parse_servers
from broker.client.publish_queue import Answer, PublishQueue
from broker.client.reconnect import Connector
from broker.client.requests import Requests
from broker.client.subscription import Subscription
from broker.client.validation import check_name, check_once_id, lifetime_ms, payload_bytes
from broker.config.address import Address
from broker.wire.client_codec import DELIVERY, decode_delivery, encode
from broker.wire.client_frames import (
    ONCE,
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
from broker.wire.limits import WireError
from matching.expressions.model import Expression
from matching.expressions.values import Value, check_publication
from routing.messages import PublicationId

log = logging.getLogger("mercast.client")

MAX_UNEXPLAINED = 3
"""Connections in a row that a broker may end as malformed, without a known cause, before the client gives up."""


class Client:
    """The asyncio client. Create one with `connect`."""

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
            # With several servers, the client may publish again what an earlier broker has not answered.
            (ONCE,) if len(servers) > 1 and options.mode is DeliveryMode.AT_LEAST_ONCE else (),
        )
        try:
            encode(self._hello)
        except WireError as error:
            raise ClientError(f"name, token or window cannot be sent: {error}") from None
        self._connector = Connector(servers, options.connect_within_s, options.tls, self._hello, self)
        self._next_name = 0
        self._connection: Connection | None = None
        self._broker = ""
        self._reconnecting: asyncio.Task[None] | None = None
        self._is_closing = False
        self._unexplained = 0
        loop = asyncio.get_running_loop()
        is_reliable = self._hello.mode is DeliveryMode.AT_LEAST_ONCE
        self._publish_queue = PublishQueue(loop, is_answered=is_reliable)
        self._requests = Requests(loop, self._subscription_lost, self._resume_publishing)
        self._inbox = DeliveryInbox(
            loop,
            options.window,
            lambda name: self._requests.abandon(Subscribe, [name]),
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
            # The error that ended the block is more informative.
            if kind is None:
                raise

    async def open(self) -> None:
        """Connects to the first server that accepts the connection."""
        await self._connector.connect(self._options.wait_s)

    async def close(self) -> None:
        """Waits until all publications are answered, sends a goodbye and ends all subscriptions."""
        if self._is_closing:
            return
        if self._connection is not None or self._reconnecting is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._options.drain_s):
                    await self._publish_queue.drain()
        unanswered = self._publish_queue.unanswered
        self._is_closing = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.wait([self._reconnecting])
        if self._connection is not None:
            self._inbox.acknowledge()
            unnamed = [name for each in self._inbox.all() for name in each.expressions if name.startswith(UNNAMED)]
            if self._options.is_durable:
                self._requests.abandon(Subscribe, unnamed)
            await self._connection.close(is_kept=self._options.is_durable, within_s=1.0)
        self._finish(None)
        if unanswered:
            raise TimeoutExpiredError(
                f"{unanswered} publications had no answer within {self._options.drain_s:g} s when the client was closed"
            )

    @property
    def is_connected(self) -> bool:
        """Whether a broker has accepted the connection and the connection is not lost."""
        return self._connection is not None

    @property
    def broker(self) -> str:
        """The id of the current broker, or of the last one while disconnected."""
        return self._broker

    @property
    def repeated(self) -> int:
        """The number of duplicate deliveries that were skipped after a reconnect."""
        return self._inbox.repeated

    @property
    def unclaimed(self) -> tuple[str, ...]:
        """Durable subscriptions of an earlier process with deliveries, which this process has not entered."""
        return self._inbox.unclaimed

    @property
    def refusals(self) -> Mapping[str, int]:
        """The number of refused publications, by reason."""
        return self._publish_queue.refusals

    async def publish(
        self,
        attributes: Mapping[str, Value],
        payload: bytes = b"",
        *,
        expires: float | None = None,
        is_traced: bool = False,
        id: str | None = None,
    ) -> PublicationId | None:
        """Publishes and waits for the broker's answer. Returns the publication's id if it is known.

        `expires` is in seconds. The publication is not delivered later than that. In at-most-once mode there is no
        answer.

        `id` is unique among the publications of this client's name. If several publications have the same id, a
        subscriber receives one of them, within the time `[delivery] once` of its broker. So a program can publish
        again when it does not know whether it published before.
        """
        async with self._deadline("an answer to a publication"):
            answer = await self.publish_soon(attributes, payload, expires=expires, is_traced=is_traced, id=id)
            return await answer

    async def publish_soon(
        self,
        attributes: Mapping[str, Value],
        payload: bytes = b"",
        *,
        expires: float | None = None,
        is_traced: bool = False,
        id: str | None = None,
    ) -> asyncio.Future[PublicationId | None]:
        """Sends the publication as soon as the window has room. Returns a future of the answer."""
        packed: bytes = msgpack.packb(check_publication(attributes))
        return await self.publish_packed(packed, payload, expires=expires, is_traced=is_traced, id=id)

    async def publish_packed(
        self,
        attributes: bytes,
        payload: bytes = b"",
        *,
        expires: float | None = None,
        is_traced: bool = False,
        id: str | None = None,
    ) -> asyncio.Future[PublicationId | None]:
        """Publishes as `publish_soon` does. The attributes are encoded already, as one MessagePack map."""
        lifetime = 0 if expires is None else lifetime_ms(expires)
        # Only other buffers are checked and copied: bytes never change.
        body = payload if type(payload) is bytes else payload_bytes(payload)
        if id is not None:
            check_once_id(id)
        await self._publish_queue.wait_for_room()
        return self._publish_queue.put(attributes, body, lifetime, is_traced, id or "")

    async def wait_for_room(self) -> None:
        """Waits until a publication can be sent at once."""
        await self._publish_queue.wait_for_room()

    def publish_now(self, answer: Answer, attributes: bytes, payload: bytes) -> bool:
        """Publishes without waiting. `answer` receives the broker's answer. Returns False if there is no room."""
        if not self._publish_queue.has_room():
            return False
        self._publish_queue.put_for(answer, attributes, payload, 0, False)
        return True

    async def flush(self) -> None:
        """Waits until all publications are answered."""
        async with self._deadline("answers to all publications"):
            await self._publish_queue.drain()

    async def advertise(self, expression: str | Expression, *, name: str | None = None) -> str:
        """Announces which publications the client will send. Returns the advertisement's name."""
        chosen = name or self._new_name()
        async with self._deadline(f"an answer to advertisement {chosen!r}"):
            await self._requests.enter(Advertise, {chosen: str(expression)})
        return chosen

    async def unadvertise(self, name: str) -> None:
        """Withdraws an advertisement by its name."""
        async with self._deadline(f"an answer to unadvertise {name!r}"):
            await self._requests.withdraw(Advertise, [name])

    def subscribe(
        self, expression: str | Expression | Mapping[str, str | Expression], *, name: str | None = None
    ) -> Subscription:
        """Returns a stream of publications. `async with` or the first iteration enters it at the broker.

        A mapping of names to expressions makes one stream. A publication that matches several of them occurs once in
        it. A named subscription of a durable client outlives its `async with` block, until `unsubscribe`.
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
        """Removes a durable subscription that this process has not entered."""
        async with self._deadline(f"an answer to unsubscribe {name!r}"):
            await self._requests.withdraw(Subscribe, [name])
        self._inbox.discard_unclaimed(name)

    async def trace_steps(self, publication: PublicationId) -> TraceAnswer:
        """Requests the connected broker's steps with a traced publication."""
        async with self._deadline(f"the trace of {publication}"):
            return await self._requests.trace(publication)

    async def open_subscription(self, subscription: Subscription) -> None:
        in_use = next((name for name in subscription.expressions if name in self._inbox), None)
        if in_use is not None:
            raise ClientError(f"a subscription of this client is called {in_use!r} already")
        self._inbox.add(subscription)
        try:
            async with self._deadline("an answer to subscribe"):
                await self._requests.enter(Subscribe, subscription.expressions)
        except BaseException:
            self._inbox.remove(subscription, is_kept=False)
            raise

    async def close_subscription(self, subscription: Subscription, *, is_kept: bool) -> None:
        self._inbox.remove(subscription, is_kept=is_kept)
        if is_kept or self._is_closing:
            return
        async with self._deadline("an answer to unsubscribe"):
            await self._requests.withdraw(Subscribe, subscription.expressions)
        for name in subscription.expressions:
            self._inbox.discard_unclaimed(name)

    async def add_expression(self, subscription: Subscription, name: str, expression: str) -> None:
        if name in self._inbox and name not in subscription.expressions:
            raise ClientError(f"another subscription of this client is called {name!r} already")
        subscription.expressions[name] = expression
        self._inbox.add(subscription, name)
        try:
            async with self._deadline(f"an answer to subscribe {name!r}"):
                await self._requests.enter(Subscribe, {name: expression})
        except BaseException:
            self._inbox.remove_name(subscription, name)
            raise

    async def remove_expression(self, subscription: Subscription, name: str) -> None:
        self._inbox.remove_name(subscription, name)
        async with self._deadline(f"an answer to unsubscribe {name!r}"):
            await self._requests.withdraw(Subscribe, [name])
        self._inbox.discard_unclaimed(name)

    def room_available(self, subscription: Subscription) -> None:
        self._inbox.room_available(subscription)

    def writing_resumed(self) -> None:
        self._publish_queue.wake()

    def connection_ready(self, connection: Connection, welcome: Welcome) -> None:
        self._connection = connection
        self._broker = welcome.broker
        # Subscriptions first: a client that subscribes to its own publications expects to receive them.
        self._inbox.connected(connection, welcome)
        self._requests.connected(connection, welcome)
        if not self._requests.is_probing:
            self._publish_queue.connected(connection, welcome)

    def _resume_publishing(self) -> None:
        connection = self._connection
        if connection is not None and connection.welcome is not None:
            self._publish_queue.connected(connection, connection.welcome)

    def frames_received(self, frames: list[bytes]) -> None:
        receive = self._inbox.receive
        for frame in frames:
            if frame[6] == DELIVERY:
                receive(decode_delivery(frame, LIMITS))
            else:
                self._handle_frame(frame)

    def _handle_frame(self, frame: bytes) -> None:
        match decode_from_broker(frame):
            case PublicationsAccepted(answers):
                self._publish_queue.accepted(answers)
            case PublicationRefused() as refusal:
                self._publish_queue.refused(refusal)
            case RequestAccepted() | TraceAnswer() as answer:
                self._requests.answered(answer)
            case RequestRefused() as request:
                self._requests.refused(request)
            case Ping() as ping:
                if self._connection is not None:
                    self._connection.answer_ping(ping)
            case Goodbye() as goodbye:
                if self._connection is not None:
                    self._connection.goodbye_received(goodbye)
            case Pong(number):
                self._publish_queue.pong_received(number)
            case Welcome() | Delivery():
                pass

    def connection_lost(self, connection: Connection, reason: str) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        self._inbox.disconnected(self._broker)
        malformed = connection.goodbye
        if malformed is not None and malformed.reason != Reason.MALFORMED:
            malformed = None
        is_explained = self._requests.disconnected(self._broker, malformed)
        self._publish_queue.disconnected()
        if is_explained or self._connector.is_proven():
            self._unexplained = 0
        if malformed is not None and not is_explained:
            self._unexplained += 1
        if self._is_closing:
            return
        if self._unexplained >= MAX_UNEXPLAINED:
            error = ClosedError(f"broker {self._broker} ended {self._unexplained} connections in a row: {reason}")
            log.error("%s", error)
            self._finish(error)
            return
        log.warning("lost broker %s (%s); connecting again", self._broker, reason)
        self._reconnecting = asyncio.get_running_loop().create_task(self._reconnect())

    async def _reconnect(self) -> None:
        try:
            await self._connector.connect(self._options.reconnect_within_s)
        except ClientError as error:
            log.error("%s", error)
            self._finish(error)
        else:
            self.reconnects += 1
            log.info("connected to broker %s", self._broker)
        finally:
            # The new connection may break before this task runs again; then another reconnect is under way.
            if self._reconnecting is asyncio.current_task():
                self._reconnecting = None

    def _subscription_lost(self, name: str, error: RefusedError) -> None:
        for subscription in self._inbox.all():
            if name in subscription.expressions:
                subscription.end(error)

    def _finish(self, error: ClientError | None) -> None:
        self._connection = None
        self._publish_queue.end(error)
        self._requests.end(error)
        for subscription in self._inbox.all():
            subscription.end(error)

    def _new_name(self) -> str:
        self._next_name += 1
        # Names that an earlier process of a durable client made up may still exist at the broker.
        session = f"{self._hello.session}-" if self._options.is_durable else ""
        return f"{UNNAMED}{session}{self._next_name}"

    def _deadline(self, what: str) -> Deadline:
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
    """Creates a client; `async with` connects it. Times are in seconds. `ClientOptions` describes the options."""
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

"""A broker's links to its neighbours: dials, accepts and redials until each required link is up.

Both ends know that they need a link. The broker with the smaller id dials at once. The other dials only if there is
no link after a while. If both dial at the same time, they keep the connection that the smaller id dialled.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from broker.config.address import Address, AddressError, parse_address
from broker.config.overlay_config import BrokerConfig
from broker.core.settings import SECOND
from broker.log import Log
from broker.runtime.client_registry import ClientRegistry
from broker.runtime.connection import Connection, FlushQueue, TurnBudget
from broker.runtime.core_driver import CoreDriver
from broker.runtime.expression_reader import ExpressionReader
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.known_incarnations import KnownIncarnations
from broker.runtime.link import Link, LinkContext
from broker.runtime.listener import Listener
from broker.runtime.pending_connection import PendingConnection
from broker.runtime.violations import Violations
from broker.security.authentication import PeerCredentials, Security
from broker.wire import broker_codec, link_handshake
from broker.wire.client_frames import Reason
from broker.wire.limits import Limits, WireError
from broker.wire.link_handshake import LinkGoodbye, LinkHello, LinkWelcome
from routing.registry import info as protocol_info

DIAL_TIMEOUT_S = 3.0
LINK_BUFFER_BYTES = 1 << 20


@dataclass(slots=True)
class _RequiredLink:
    """A link that this broker restores whenever it is down. Without an address only the other end dials."""

    peer: str
    address: Address | None
    cost: int
    task: asyncio.Task[None] | None = None


class Neighbours:
    def __init__(
        self,
        config: BrokerConfig,
        driver: CoreDriver,
        clients: ClientRegistry,
        listener: Listener,
        security: Security,
        flush_queue: FlushQueue,
        violations: Violations,
        errors: InternalErrors,
        log: Log,
        generator: random.Random,
    ) -> None:
        self.links: dict[str, Link] = {}
        self.dials = 0
        self.is_closed = False
        self._config = config
        self._heartbeat = config.overlay.heartbeat
        self._limits = config.wire_limits()
        self._driver = driver
        self._listener = listener
        self._security = security
        self._flush_queue = flush_queue
        # Links have a budget and a reader of their own, so that clients do not delay other brokers.
        self._budget = TurnBudget()
        self._reader = ExpressionReader("links", errors)
        self._violations = violations
        self._errors = errors
        self._log = log
        self._random = generator
        self._incarnations = KnownIncarnations(config.id, driver)
        self._link_context = LinkContext(
            self._limits,
            self._heartbeat.clock_skew,
            driver,
            clients,
            violations,
            self.remove,
            self._reader,
            self._incarnations.learn,
        )
        self._required: dict[str, _RequiredLink] = {}
        self._down_events: dict[str, asyncio.Event] = {}
        self._joining: set[asyncio.Task[None]] = set()
        self._dialling: set[str] = set()
        """Brokers that this broker dialled and that have not answered yet."""

    def start(self, join: Address | None, replace_core: Callable[[str, int], None]) -> None:
        """Dials the neighbours of the configuration, and the broker at `join`. `replace_core`: see
        `KnownIncarnations`."""
        self._incarnations.start(replace_core)
        for neighbour in self._config.neighbours:
            self.require_link(neighbour.id, neighbour.address, neighbour.cost)
        if join is not None:
            self.join(join)

    def require_link(self, peer: str, address: Address | None, cost: int = 1) -> None:
        """Keeps a link to this broker from now on."""
        if self.is_closed or peer in self._required:
            return
        required = self._required[peer] = _RequiredLink(peer, address, cost)
        if address is not None:
            required.task = asyncio.create_task(self._maintain(required, address), name=f"link to {peer}")
            self._errors.watch(required.task)

    def release_link(self, peer: str) -> None:
        required = self._required.pop(peer, None)
        if required is not None and required.task is not None and required.task is not asyncio.current_task():
            required.task.cancel()

    def open(self, peer: str, address: str) -> None:
        """Opens a link that the router requests and the configuration does not contain."""
        try:
            self.require_link(peer, parse_address(address))
        except AddressError as error:
            self._log.warning("link not opened", peer=peer, reason=str(error))

    def close(self, peer: str) -> None:
        """Closes a link on request of the router, and does not dial it again."""
        self.release_link(peer)
        link = self.links.get(peer)
        if link is not None:
            link.end(link_handshake.CLOSED, "the overlay was reorganised")

    def reset(self, peer: str) -> None:
        """Aborts the link to a silent neighbour. A required link is dialled again."""
        link = self.links.get(peer)
        if link is not None:
            self._log.warning("neighbour silent", peer=peer)
            link.connection.abort()
            link.lost()

    def join(self, address: Address) -> None:
        """Links to a broker of which only the address is known. Dials until that succeeds."""
        task = asyncio.create_task(self._join(address), name=f"join at {address}")
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)
        self._errors.watch(task)

    async def _join(self, address: Address) -> None:
        wait: int = self._heartbeat.redial_first
        while not self.is_closed:
            link = await self._dial(address, None)
            if link is not None:
                self.require_link(link.peer, address)
                return
            wait = await self._back_off(wait)

    async def _maintain(self, required: _RequiredLink, address: Address) -> None:
        heartbeat = self._heartbeat
        wait: int = heartbeat.redial_first
        while not self.is_closed:
            if self._driver.core.me > required.peer and required.peer not in self.links:
                await asyncio.sleep(heartbeat.redial_at_most / SECOND)
            if required.peer not in self.links and await self._dial(address, required) is not None:
                wait = heartbeat.redial_first
            if required.peer in self.links:
                await self._down_events.setdefault(required.peer, asyncio.Event()).wait()
                wait = heartbeat.redial_first
            wait = await self._back_off(wait)

    async def _back_off(self, wait: int) -> int:
        """Sleeps for `wait` with jitter. Returns the next wait: twice as long, up to the maximum."""
        await asyncio.sleep(wait / SECOND * self._random.uniform(0.5, 1.5))
        return min(2 * wait, self._heartbeat.redial_at_most)

    async def _dial(self, address: Address, required: _RequiredLink | None) -> Link | None:
        self.dials += 1
        dialler: _Dialler | None = None

        def connected() -> Connection:
            nonlocal dialler
            connection = Connection(self._flush_queue, self._budget, self._limits, LINK_BUFFER_BYTES)
            dialler = connection.receiver = _Dialler(self, connection, required, self._limits, self._log)
            return connection

        try:
            async with asyncio.timeout(DIAL_TIMEOUT_S):
                await asyncio.get_running_loop().create_connection(
                    connected, address.host, address.port, ssl=self._security.link_tls
                )
                assert dialler is not None
                dialler.is_repeated = self._incarnations.has_greeted(required.peer if required else "")
                self._dialling.add(required.peer if required else "")
                dialler.connection.send(link_handshake.encode(self.hello_to(required.peer if required else "")))
                return await dialler.answer
        except (OSError, TimeoutError) as error:
            self._log.debug("dial failed", address=str(address), reason=str(error) or type(error).__name__)
            return None
        finally:
            self._dialling.discard(required.peer if required else "")
            if dialler is not None and not dialler.answer.done():
                dialler.connection.abort()

    def hello_to(self, to: str) -> LinkHello:
        """The hello to a broker. From now on that broker may know the present incarnation."""
        config, core = self._config, self._driver.core
        self._incarnations.mark_greeted(to)
        wanted = (link_handshake.TIMES_WANTED,) if self._driver.recorder is not None else ()
        return LinkHello(
            core.me,
            core.incarnation,
            config.overlay.name,
            config.overlay.protocol,
            config.clusters,
            str(self._listener.contact_address),
            core.router.greeting(),
            self._security.token,
            to,
            self._incarnations.of(to),
            (*link_handshake.CAPABILITIES, link_handshake.CLOCKS_COMPARED, link_handshake.ONCE, *wanted),
        )

    def hello_received(self, pending: PendingConnection, other: LinkHello) -> None:
        """Handles the hello of a broker that dialled: refuses it, or answers and activates the link."""
        code, reason = self._refusal(other)
        if not code:
            is_repeated = self._incarnations.has_greeted(other.broker)
            code, reason = self._incarnations.refusal(other, is_repeated=is_repeated)
            if code == link_handshake.OUTLIVED:
                # The welcome shows the other broker which incarnation it must exceed.
                pending.connection.send(link_handshake.encode(LinkWelcome(self.hello_to(other.broker))))
        if not code and self._driver.core.me < other.broker and self._has_dialled(other):
            code, reason = link_handshake.DUPLICATE, f"{self._driver.core.me} has dialled already"
        if code:
            pending.refuse(Reason.UNAUTHORISED, code, reason)
            return
        pending.release()
        pending.connection.budget = self._budget
        pending.connection.send(link_handshake.encode(LinkWelcome(self.hello_to(other.broker))))
        self._activate(Link(self._link_context, pending.connection, other, is_dialled=False))

    def _has_dialled(self, other: LinkHello) -> bool:
        """Whether this end dialled the other broker and the link is up or pending.

        A link to an earlier incarnation of the other broker does not count.
        """
        current = self.links.get(other.broker)
        if current is None:
            return other.broker in self._dialling
        return current.is_dialled and current.hello.incarnation >= other.incarnation

    def welcome_received(self, connection: Connection, other: LinkHello, *, is_repeated: bool) -> Link | None:
        """Handles the answer of a dialled broker: refuses it and returns None, or activates the link.

        `is_repeated`: the other broker may have received a hello of the present core before this connection.
        """
        current = self.links.get(other.broker)
        code, reason = self._refusal(other)
        credentials = PeerCredentials(
            other.broker, True, other.token, connection.remote_address, connection.certificate
        )
        unauthorised = self._security.authenticator.refusal(credentials)
        if unauthorised is not None:
            self._violations.count("unauthorised", other.broker)
            code, reason = link_handshake.UNAUTHORISED, unauthorised
        if not code:
            code, reason = self._incarnations.refusal(other, is_repeated=is_repeated)
        if not code and current is not None and not current.is_dialled and other.broker < self._driver.core.me:
            code, reason = link_handshake.DUPLICATE, f"{other.broker} has dialled already"
        if code:
            connection.close(link_handshake.encode(LinkGoodbye(code, reason)))
            self._log.warning("link refused", peer=other.broker, reason=reason)
            return None
        link = Link(self._link_context, connection, other, is_dialled=True)
        self._activate(link)
        return link

    def _refusal(self, other: LinkHello) -> tuple[str, str]:
        """The code and the reason to refuse a link, both empty if there is none."""
        config = self._config
        if self.is_closed:
            return link_handshake.STOPPING, f"{config.id} is stopping"
        if other.to not in ("", config.id):
            return link_handshake.REFUSED, f"{self._listener.address} belongs to {config.id}, not to {other.to[:80]}"
        if other.broker == config.id:
            return link_handshake.REFUSED, f"the id {config.id} is in use"
        if other.overlay != config.overlay.name:
            return link_handshake.REFUSED, f"this is overlay {config.overlay.name!r}, not {other.overlay[:80]!r}"
        needs_clusters = protocol_info(config.overlay.protocol).needs_clusters
        if other.protocol != config.overlay.protocol:
            return (
                link_handshake.REFUSED,
                f"this overlay routes by {config.overlay.protocol}, not by {other.protocol[:80]}",
            )
        if needs_clusters and not set(other.clusters) & set(config.clusters):
            return (
                link_handshake.REFUSED,
                f"{config.id} is in {', '.join(config.clusters)}, which {other.broker} shares nothing with",
            )
        missing = [each for each in link_handshake.CAPABILITIES if each not in other.capabilities]
        if missing:
            return link_handshake.REFUSED, f"{other.broker} lacks {', '.join(missing)}"
        if len(self.links) >= config.overlay.limits.neighbours and other.broker not in self.links:
            self._violations.count("neighbours", other.broker)
            return link_handshake.LIMIT, f"{config.id} has {len(self.links)} neighbours, and takes no more"
        return "", ""

    def _activate(self, link: Link) -> None:
        current = self.links.get(link.peer)
        if current is not None:
            current.end(link_handshake.DUPLICATE, "another connection took its place")
        link.connection.receiver = link
        self.links[link.peer] = link
        self._down_events[link.peer] = asyncio.Event()
        link.hello = replace(link.hello, remembered=min(link.hello.remembered, self._driver.core.incarnation))
        self._incarnations.add(link.peer, link.hello.incarnation)
        required = self._required.get(link.peer)
        self._log.info("link up", peer=link.peer, is_dialled=link.is_dialled)
        link.activate(required.cost if required is not None else 1)

    def remove(self, link: Link) -> bool:
        """Removes a link that is down. Returns False if it is not the current link to its peer."""
        if self.links.get(link.peer) is not link:
            return False
        del self.links[link.peer]
        goodbye = link.goodbye
        reason = f"{goodbye.code}: {goodbye.reason}" if goodbye is not None else "connection lost"
        self._log.info("link down", peer=link.peer, reason=reason)
        self._driver.record_link_down(link.peer, link.up_since)
        if goodbye is not None and goodbye.code in (link_handshake.CLOSED, link_handshake.LEFT):
            self.release_link(link.peer)
        self._down_events[link.peer].set()
        return True

    def compare_clocks(self) -> None:
        """Sends this broker's time to all neighbours."""
        for link in self.links.values():
            link.send_clock()

    def end_links(self, code: str, reason: str) -> None:
        """Closes all links with a goodbye. Required links are dialled again."""
        for link in list(self.links.values()):
            link.end(code, reason)

    def stop(self, code: str, reason: str) -> None:
        """Closes all links with a goodbye, and opens no new ones."""
        self.is_closed = True
        for task in (*self._joining, *(each.task for each in self._required.values())):
            if task is not None:
                task.cancel()
        self._reader.stop()
        self.end_links(code, reason)

    def address_of(self, peer: str) -> str:
        link = self.links.get(peer)
        return link.hello.address if link is not None else ""

    def required_peers(self) -> tuple[str, ...]:
        return tuple(sorted(self._required))

    def has_required_links(self) -> bool:
        return self.links.keys() >= self._required.keys()


class _Dialler:
    """The receiver at the dialling end until the other broker answers."""

    def __init__(
        self,
        neighbours: Neighbours,
        connection: Connection,
        required: _RequiredLink | None,
        limits: Limits,
        log: Log,
    ) -> None:
        self.connection = connection
        self.answer: asyncio.Future[Link | None] = asyncio.get_running_loop().create_future()
        self._neighbours = neighbours
        self.is_repeated = False
        """Whether the other broker may have received a hello before this connection."""
        self._required = required
        self._limits = limits
        self._log = log

    def received(self, frames: list[bytes]) -> None:
        first, *rest = frames
        if len(first) > 5 and first[5] != broker_codec.VERSION:
            raise WireError(f"version {first[5]} of the protocol is not spoken here; this is {broker_codec.VERSION}")
        content = link_handshake.decode(first, self._limits)
        if isinstance(content, LinkWelcome):
            other = content.hello
            if self._required is not None and other.broker != self._required.peer:
                raise WireError(f"{self._required.address} belongs to {other.broker}, not to {self._required.peer}")
            link = self._neighbours.welcome_received(self.connection, other, is_repeated=self.is_repeated)
            self._resolve(link)
            if link is not None and rest:
                link.received(rest)
            return
        reason = f"{content.code}: {content.reason}" if isinstance(content, LinkGoodbye) else "no welcome"
        self._log.warning("dial refused", other_end=self.connection.remote_address, reason=reason)
        self.connection.close()
        self._resolve(None)

    def _resolve(self, link: Link | None) -> None:
        if not self.answer.done():
            self.answer.set_result(link)

    def before_writing(self) -> None:
        """Does nothing: a dialler collects no frames."""

    def paused(self) -> None:
        """Does nothing: a hello always fits into the write buffer."""

    def resumed(self) -> None:
        """Does nothing: a hello always fits into the write buffer."""

    def malformed(self, error: WireError) -> None:
        self._log.warning("dial refused", other_end=self.connection.remote_address, reason=str(error))
        self.connection.close(link_handshake.encode(LinkGoodbye(link_handshake.MALFORMED, str(error))))
        self._resolve(None)

    def lost(self) -> None:
        self._resolve(None)

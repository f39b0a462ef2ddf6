"""A broker's links to others: dialling and being dialled, again and again until they stand.

Both ends know that they are to be linked. The one with the smaller id dials at once, the other only when that has not
led to a link for a while. When both dial at the same time, the connection that the smaller id dialled is kept.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from broker.config.address import Address, AddressError, parse_address
from broker.core.settings import SECOND
from broker.runtime.connection import Connection
from broker.runtime.link import Link
from broker.runtime.pending_connection import PendingConnection
from broker.security.authentication import Introduction
from broker.wire import broker_codec, link_handshake
from broker.wire.client_frames import Reason
from broker.wire.limits import WireError
from broker.wire.link_handshake import LinkGoodbye, LinkHello, LinkWelcome

if TYPE_CHECKING:
    from broker.runtime.server import BrokerServer

DIAL_WITHIN_S = 3.0
LINK_BUFFER_BYTES = 1 << 20


@dataclass(slots=True)
class _Wanted:
    peer: str
    address: Address | None
    cost: int
    task: asyncio.Task[None] | None = None


class Neighbours:
    def __init__(self, server: BrokerServer, generator: random.Random) -> None:
        self.links: dict[str, Link] = {}
        self.dials = 0
        self.is_closed = False
        self._server = server
        self._random = generator
        self._wanted: dict[str, _Wanted] = {}
        self._remembered: dict[str, int] = {}
        self._gone: dict[str, asyncio.Event] = {}
        self._joining: set[asyncio.Task[None]] = set()
        self._calling: set[str] = set()
        """Brokers that were dialled and have yet to answer."""

    def want(self, peer: str, address: Address | None, cost: int = 1) -> None:
        """There is to be a link to this broker from now on."""
        if self.is_closed or peer in self._wanted:
            return
        wanted = self._wanted[peer] = _Wanted(peer, address, cost)
        if address is not None:
            wanted.task = asyncio.create_task(self._keep(wanted, address), name=f"link to {peer}")
            self._server.errors.watch(wanted.task)

    def do_not_want(self, peer: str) -> None:
        wanted = self._wanted.pop(peer, None)
        if wanted is not None and wanted.task is not None and wanted.task is not asyncio.current_task():
            wanted.task.cancel()

    def open(self, peer: str, address: str) -> None:
        """The router wants a link that no configuration names."""
        try:
            self.want(peer, parse_address(address))
        except AddressError as error:
            self._server.log.warning("link not opened", peer=peer, reason=str(error))

    def close(self, peer: str) -> None:
        self.do_not_want(peer)
        link = self.links.get(peer)
        if link is not None:
            link.end(link_handshake.CLOSED, "the overlay was reorganised")

    def reset(self, peer: str) -> None:
        link = self.links.get(peer)
        if link is not None:
            self._server.log.warning("neighbour silent", peer=peer)
            link.connection.abort()
            link.lost()

    def join(self, address: Address) -> None:
        """Dials a broker that is known by its address only."""
        task = asyncio.create_task(self._join(address), name=f"join at {address}")
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)
        self._server.errors.watch(task)

    async def _join(self, address: Address) -> None:
        wait = self._server.config.overlay.heartbeat.redial_first
        while not self.is_closed:
            link = await self._dial(address, None)
            if link is not None:
                self.want(link.peer, address)
                return
            wait = await self._pause(wait)

    async def _keep(self, wanted: _Wanted, address: Address) -> None:
        heartbeat = self._server.config.overlay.heartbeat
        wait = heartbeat.redial_first
        while not self.is_closed:
            if self._server.core.me > wanted.peer and wanted.peer not in self.links:
                await asyncio.sleep(heartbeat.redial_at_most / SECOND)
            if wanted.peer not in self.links and await self._dial(address, wanted) is not None:
                wait = heartbeat.redial_first
            if wanted.peer in self.links:
                await self._gone.setdefault(wanted.peer, asyncio.Event()).wait()
                wait = heartbeat.redial_first
            wait = await self._pause(wait)

    async def _pause(self, wait: int) -> int:
        """Waits, more or less, and returns how long to wait the next time."""
        await asyncio.sleep(wait / SECOND * self._random.uniform(0.5, 1.5))
        return min(2 * wait, self._server.config.overlay.heartbeat.redial_at_most)

    async def _dial(self, address: Address, wanted: _Wanted | None) -> Link | None:
        server = self._server
        self.dials += 1
        caller: _Caller | None = None

        def connected() -> Connection:
            nonlocal caller
            connection = Connection(server.writers, server.limits, LINK_BUFFER_BYTES)
            caller = connection.receiver = _Caller(self, connection, wanted)
            return connection

        try:
            async with asyncio.timeout(DIAL_WITHIN_S):
                await asyncio.get_running_loop().create_connection(
                    connected, address.host, address.port, ssl=server.security.dialling
                )
                assert caller is not None
                self._calling.add(wanted.peer if wanted else "")
                caller.connection.send(link_handshake.encode(self.introduction(wanted.peer if wanted else "")))
                return await caller.answer
        except (OSError, TimeoutError) as error:
            server.log.debug("dial failed", address=str(address), reason=str(error) or type(error).__name__)
            return None
        finally:
            self._calling.discard(wanted.peer if wanted else "")
            if caller is not None and not caller.answer.done():
                caller.connection.abort()

    def introduction(self, to: str) -> LinkHello:
        server = self._server
        return LinkHello(
            server.core.me,
            server.core.incarnation,
            server.config.overlay.name,
            server.config.overlay.protocol,
            server.config.clusters,
            str(server.address),
            server.core.router.greeting(),
            server.security.token,
            to,
            self._remembered.get(to, 0),
            (*link_handshake.CAPABILITIES, link_handshake.TIMES_WANTED)
            if server.recorder is not None
            else link_handshake.CAPABILITIES,
        )

    def greeted(self, newcomer: PendingConnection, other: LinkHello) -> None:
        """Another broker dialled."""
        code, reason = self._refusal(other)
        if not code and self._server.core.me < other.broker and self._is_linked_by_dialling(other):
            code, reason = link_handshake.DUPLICATE, f"{self._server.core.me} has dialled already"
        if code:
            newcomer.refuse(Reason.UNAUTHORISED, code, reason)
            return
        self._server.newcomers.pop(newcomer, None)
        newcomer.connection.send(link_handshake.encode(LinkWelcome(self.introduction(other.broker))))
        self._stand(Link(self._server, newcomer.connection, other, is_dialled=False))

    def _is_linked_by_dialling(self, other: LinkHello) -> bool:
        """Or about to be? What this end dialled to an earlier incarnation does not count."""
        mine = self.links.get(other.broker)
        if mine is None:
            return other.broker in self._calling
        return mine.is_dialled and mine.hello.incarnation >= other.incarnation

    def welcomed(self, connection: Connection, other: LinkHello) -> Link | None:
        """The broker that was dialled has answered."""
        mine = self.links.get(other.broker)
        code, reason = self._refusal(other)
        introduction = Introduction(other.broker, True, other.token, connection.other_end, connection.certificate)
        unauthorised = self._server.security.authenticator.refusal(introduction)
        if unauthorised is not None:
            self._server.violated("unauthorised", other.broker)
            code, reason = link_handshake.UNAUTHORISED, unauthorised
        if not code and mine is not None and not mine.is_dialled and other.broker < self._server.core.me:
            code, reason = link_handshake.DUPLICATE, f"{other.broker} has dialled already"
        if code:
            connection.close(link_handshake.encode(LinkGoodbye(code, reason)))
            self._server.log.warning("link refused", peer=other.broker, reason=reason)
            return None
        link = Link(self._server, connection, other, is_dialled=True)
        self._stand(link)
        return link

    def _refusal(self, other: LinkHello) -> tuple[str, str]:
        """A code and a reason, both empty when there is none."""
        server = self._server
        mine = server.config
        if self.is_closed:
            return link_handshake.STOPPING, f"{mine.id} is stopping"
        if other.to not in ("", mine.id):
            return link_handshake.REFUSED, f"{server.listen} belongs to {mine.id}, not to {other.to[:80]}"
        if other.broker == mine.id:
            return link_handshake.REFUSED, f"the id {mine.id} is in use"
        if other.overlay != mine.overlay.name:
            return link_handshake.REFUSED, f"this is overlay {mine.overlay.name!r}, not {other.overlay[:80]!r}"
        if other.protocol != mine.overlay.protocol:
            return (
                link_handshake.REFUSED,
                f"this overlay routes by {mine.overlay.protocol}, not by {other.protocol[:80]}",
            )
        if other.protocol == "merc" and not set(other.clusters) & set(mine.clusters):
            return (
                link_handshake.REFUSED,
                f"{mine.id} is in {', '.join(mine.clusters)}, which {other.broker} shares nothing with",
            )
        lacking = [each for each in link_handshake.CAPABILITIES if each not in other.capabilities]
        if lacking:
            return link_handshake.REFUSED, f"{other.broker} lacks {', '.join(lacking)}"
        if len(self.links) >= mine.overlay.limits.neighbours and other.broker not in self.links:
            server.violated("neighbours", other.broker)
            return link_handshake.LIMIT, f"{mine.id} has {len(self.links)} neighbours, and takes no more"
        return "", ""

    def _stand(self, link: Link) -> None:
        mine = self.links.get(link.peer)
        if mine is not None:
            mine.end(link_handshake.DUPLICATE, "another connection took its place")
        link.connection.receiver = link
        self.links[link.peer] = link
        self._gone[link.peer] = asyncio.Event()
        link.hello = replace(link.hello, remembered=min(link.hello.remembered, self._server.core.incarnation))
        self._remembered[link.peer] = link.hello.incarnation
        wanted = self._wanted.get(link.peer)
        self._server.log.info("link up", peer=link.peer, is_dialled=link.is_dialled)
        link.up(wanted.cost if wanted is not None else 1)

    def remove(self, link: Link) -> bool:
        """Was it the link to that broker?"""
        if self.links.get(link.peer) is not link:
            return False
        del self.links[link.peer]
        goodbye = link.goodbye
        reason = f"{goodbye.code}: {goodbye.reason}" if goodbye is not None else "connection lost"
        self._server.log.info("link down", peer=link.peer, reason=reason)
        self._server.link_went(link)
        if goodbye is not None and goodbye.code in (link_handshake.CLOSED, link_handshake.LEFT):
            self.do_not_want(link.peer)
        self._gone[link.peer].set()
        return True

    def stop(self, code: str, reason: str) -> None:
        """Ends all links in good order; no new ones come."""
        self.is_closed = True
        for task in (*self._joining, *(each.task for each in self._wanted.values())):
            if task is not None:
                task.cancel()
        for link in list(self.links.values()):
            link.end(code, reason)

    def address_of(self, peer: str) -> str:
        link = self.links.get(peer)
        return link.hello.address if link is not None else ""

    def wanted(self) -> tuple[str, ...]:
        return tuple(sorted(self._wanted))


class _Caller:
    """The receiver at the dialling end until the other broker has answered."""

    def __init__(self, neighbours: Neighbours, connection: Connection, wanted: _Wanted | None) -> None:
        self.connection = connection
        self.answer: asyncio.Future[Link | None] = asyncio.get_running_loop().create_future()
        self._neighbours = neighbours
        self._wanted = wanted

    def received(self, frames: list[bytes]) -> None:
        first, *rest = frames
        server = self._neighbours._server
        if len(first) > 5 and first[5] != broker_codec.VERSION:
            raise WireError(f"version {first[5]} of the protocol is not spoken here; this is {broker_codec.VERSION}")
        content = link_handshake.decode(first, server.limits)
        if isinstance(content, LinkWelcome):
            other = content.hello
            if self._wanted is not None and other.broker != self._wanted.peer:
                raise WireError(f"{self._wanted.address} belongs to {other.broker}, not to {self._wanted.peer}")
            link = self._neighbours.welcomed(self.connection, other)
            self._settle(link)
            if link is not None and rest:
                link.received(rest)
            return
        reason = f"{content.code}: {content.reason}" if isinstance(content, LinkGoodbye) else "no welcome"
        server.log.warning("dial refused", other_end=self.connection.other_end, reason=reason)
        self.connection.close()
        self._settle(None)

    def _settle(self, link: Link | None) -> None:
        if not self.answer.done():
            self.answer.set_result(link)

    def before_writing(self) -> None:
        """All was said."""

    def paused(self) -> None:
        """A hello always fits."""

    def resumed(self) -> None:
        """A hello always fits."""

    def malformed(self, error: WireError) -> None:
        self._neighbours._server.log.warning("dial refused", other_end=self.connection.other_end, reason=str(error))
        self.connection.close(link_handshake.encode(LinkGoodbye(link_handshake.MALFORMED, str(error))))
        self._settle(None)

    def lost(self) -> None:
        self._settle(None)

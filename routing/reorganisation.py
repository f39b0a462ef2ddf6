"""Self-reorganisation: two brokers that exchange many messages decide to link to each other [THESIS 4.3].

Each broker counts the messages between itself and every other broker of a domain, end to end. At the end of a cycle it
compares the best link that it lacks with the worst link that it has:

    gain = messages * (distance - 1)                 saved by a new link
    loss = messages * (distance without it - 1)      saved by an existing link

A broker with fewer links than `most_links` pays nothing for a new link. Otherwise the cost is its smallest loss. A
broker whose gain exceeds its own cost proposes the link. The other end accepts if the gain exceeds the sum of both
costs. In a cycle, a broker makes or accepts at most one change, based on the counts of the previous cycle.

The new link opens before an old one closes. A broker announces that a link will close one tick before it closes it, so
that no message is in flight on it. The closed link stays on standby: the broker requests it again when brokers become
unreachable. A broker never closes a link whose loss would partition the overlay.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from routing.messages import ProposalAnswered, Propose
from routing.shortest_paths import TopologyTable


@dataclass(frozen=True, slots=True)
class OpenLink:
    """Requests a link to the broker at this address."""

    peer: str
    address: str


@dataclass(frozen=True, slots=True)
class CloseLink:
    """Requests the end of the link to this neighbour."""

    peer: str


class DomainLinks(Protocol):
    """A broker's links in a domain. `MulticastLayer` implements this."""

    me: str
    domain: str

    @property
    def topology(self) -> TopologyTable: ...

    def neighbours(self) -> tuple[str, ...]: ...

    def address_of(self, broker: str) -> str: ...

    def send(self, message: Propose | ProposalAnswered) -> None: ...

    def withdraw_link(self, peer: str) -> None: ...


class Reorganisation:
    """One broker's part in one domain."""

    def __init__(self, links: DomainLinks, most_links: int) -> None:
        self.link_requests: list[OpenLink | CloseLink] = []
        self._links = links
        self._most_links = most_links
        self._messages: dict[str, int] = {}
        """Counts of the current cycle."""
        self._counted: dict[str, int] = {}
        """Counts of the last complete cycle. All decisions use them."""
        self._proposed_to: str | None = None
        self._has_changed = False
        self._expected: dict[str, None] = {}
        """Links that were requested and are not up yet."""
        self._standby: dict[str, None] = {}
        """Closed links that may be requested again."""
        self._closing: dict[str, None] = {}
        """Links that were announced as closing. The next tick closes them."""

    def count(self, broker: str) -> None:
        """Counts a message to or from the broker, over any number of hops. Callers do not count proposals."""
        self._messages[broker] = self._messages.get(broker, 0) + 1

    def end_cycle(self) -> None:
        """Proposes the link with the largest gain if the gain exceeds the cost, and starts a new cycle of counts."""
        self._counted, self._messages = self._messages, {}
        self._expected.clear()
        self._proposed_to, self._has_changed = None, False
        if self._has_too_many(self._links.me):
            self._close_worst_link()
            return
        gain, broker = max(self._gains(), key=lambda each: each[0], default=(0.0, ""))
        cost = self.minimal_loss()
        if gain > cost:
            self._proposed_to = broker
            address = self._links.address_of(self._links.me)
            self._links.send(Propose(self._links.me, self._links.domain, (broker,), gain, cost, address))

    def _gains(self) -> list[tuple[float, str]]:
        neighbours = set(self._links.neighbours())
        gains: list[tuple[float, str]] = []
        for broker, messages in sorted(self._counted.items()):
            distance = self._links.topology.distance(self._links.me, broker)
            if broker not in neighbours and distance is not None and distance > 1:
                gains.append((float(messages * (distance - 1)), broker))
        return gains

    def minimal_loss(self) -> float:
        """Returns the cost of a new link: 0 below `most_links`, else the smallest loss of a present link."""
        if len(self._links.neighbours()) < self._most_links:
            return 0.0
        return min(map(self._loss, self._agreed_neighbours()), default=math.inf)

    def _agreed_neighbours(self) -> tuple[str, ...]:
        """Returns the neighbours that also list this broker as a neighbour. One that has left does not; its link is
        about to close."""
        return self._links.topology.neighbours(self._links.me)

    def _loss(self, neighbour: str) -> float:
        without = self._links.topology.without_link(self._links.me, neighbour)
        distance = without.distance(self._links.me, neighbour)
        if distance is None:
            return math.inf
        return float(self._counted.get(neighbour, 0) * (distance - 1))

    def receive(self, message: Propose | ProposalAnswered) -> None:
        if isinstance(message, Propose):
            self._receive_proposal(message)
        elif message.source == self._proposed_to:
            self._proposed_to = None
            if message.accepted:
                self._expect(message.source, message.address)

    def _receive_proposal(self, proposal: Propose) -> None:
        cost = self.minimal_loss()
        accepted = (
            not self._has_changed
            and self._proposed_to in (None, proposal.source)
            and proposal.source not in self._links.neighbours()
            and proposal.gain > proposal.minimal_loss + cost
        )
        if accepted:
            self._expect(proposal.source, proposal.address)
        address = self._links.address_of(self._links.me)
        answer = ProposalAnswered(self._links.me, self._links.domain, (proposal.source,), accepted, address)
        self._links.send(answer)

    def _expect(self, broker: str, address: str) -> None:
        if broker in self._expected:
            return
        self._has_changed = True
        self._expected[broker] = None
        self.link_requests.append(OpenLink(broker, address))

    def neighbour_up(self, peer: str) -> None:
        """Records that a new link is up. At the end of the cycle an old link may be closed in exchange."""
        self._standby.pop(peer, None)
        self._expected.pop(peer, None)

    def _has_too_many(self, broker: str) -> bool:
        return len(self._links.topology.neighbours(broker)) > self._most_links

    def _close_worst_link(self) -> None:
        """Closes the link with the smallest loss, unless that would partition the overlay. Of neighbours with too many
        links, the one with the smallest id acts first. If two closed links at once, they could cut off a third."""
        if any(other < self._links.me and self._has_too_many(other) for other in self._links.neighbours()):
            return
        loss, neighbour = min((self._loss(each), each) for each in self._agreed_neighbours())
        self._has_changed = True
        if loss < math.inf:
            self._standby[neighbour] = None
            self._closing[neighbour] = None
            self._links.withdraw_link(neighbour)

    def tick(self) -> None:
        self.link_requests += [CloseLink(neighbour) for neighbour in self._closing]
        self._closing.clear()

    def topology_changed(self) -> None:
        """Requests standby links to brokers that have become unreachable."""
        reached = self._links.topology.routes_from(self._links.me)
        for broker in list(self._standby):
            if broker not in reached and broker not in self._closing:
                self.link_requests.append(OpenLink(broker, self._links.address_of(broker)))

"""Self-reorganisation: links where much is said, decided by the two brokers concerned [THESIS 4.3].

Each broker counts the messages between itself and every other broker of a domain, end to end. At the end of a cycle it
compares the best link that it lacks with the worst that it has:

    gain = messages * (distance - 1)                 what a new link would save
    loss = messages * (distance without it - 1)      what an old link saves

With a free place (fewer links than `most_links`) a link costs its broker nothing, else it costs the smallest loss. A
broker whose gain exceeds its own cost proposes the link; the other end agrees when the gain exceeds both costs
together. The new link comes up before an old one goes. An old one that goes stays in mind: when brokers cannot be
reached any more, it is asked for again. A link without which the overlay would fall apart is never given up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from routing.messages import ProposalAnswered, Propose
from routing.shortest_paths import TopologyTable


@dataclass(frozen=True, slots=True)
class OpenLink:
    peer: str
    address: str


@dataclass(frozen=True, slots=True)
class CloseLink:
    peer: str


class Place(Protocol):
    """Where a broker stands in a domain; `Multicasting` is one."""

    me: str
    domain: str

    @property
    def topology(self) -> TopologyTable: ...

    def neighbours(self) -> tuple[str, ...]: ...

    def address_of(self, broker: str) -> str: ...

    def spread(self, message: Propose | ProposalAnswered) -> None: ...


class Reorganisation:
    """One broker's part in one domain."""

    def __init__(self, place: Place, most_links: int) -> None:
        self.wishes: list[OpenLink | CloseLink] = []
        self._place = place
        self._most_links = most_links
        self._messages: dict[str, int] = {}
        self._expected: dict[str, str | None] = {}
        """Links that are to come up, each with the neighbour that may go then."""
        self._standby: dict[str, None] = {}

    def count(self, broker: str) -> None:
        """A message went to the broker or came from it, however many hops between."""
        self._messages[broker] = self._messages.get(broker, 0) + 1

    def end_cycle(self) -> None:
        """Proposes the link with the largest gain, if it is worth its cost; counting starts anew."""
        gains = self._gains()
        if gains and not self._expected:
            gain, broker = max(gains, key=lambda each: (each[0], [-ord(letter) for letter in each[1]]))
            cost, _ = self.minimal_loss()
            if gain > cost:
                message = Propose(
                    self._place.me, self._place.domain, (broker,), gain, cost, self._place.address_of(self._place.me)
                )
                self._place.spread(message)
        self._expected.clear()
        self._messages.clear()

    def _gains(self) -> list[tuple[float, str]]:
        neighbours = set(self._place.neighbours())
        gains: list[tuple[float, str]] = []
        for broker, messages in self._messages.items():
            distance = self._place.topology.distance(self._place.me, broker)
            if broker not in neighbours and distance is not None and distance > 1:
                gains.append((float(messages * (distance - 1)), broker))
        return gains

    def minimal_loss(self) -> tuple[float, str | None]:
        """What a place for a new link costs, and which neighbour would go for it."""
        neighbours = self._place.neighbours()
        if len(neighbours) < self._most_links:
            return 0.0, None
        return min((self._loss(neighbour), neighbour) for neighbour in neighbours)

    def _loss(self, neighbour: str) -> float:
        without = self._place.topology.without_link(self._place.me, neighbour)
        distance = without.distance(self._place.me, neighbour)
        if distance is None:
            return math.inf
        return float(self._messages.get(neighbour, 0) * (distance - 1))

    def take(self, message: Propose | ProposalAnswered) -> None:
        if isinstance(message, Propose):
            self._proposed(message)
        elif message.accepted:
            self._expect(message.source, message.address)

    def _proposed(self, proposal: Propose) -> None:
        cost, _ = self.minimal_loss()
        accepted = (
            not self._expected
            and proposal.source not in self._place.neighbours()
            and proposal.gain > proposal.minimal_loss + cost
        )
        if accepted:
            self._expect(proposal.source, proposal.address)
        address = self._place.address_of(self._place.me)
        answer = ProposalAnswered(self._place.me, self._place.domain, (proposal.source,), accepted, address)
        self._place.spread(answer)

    def _expect(self, broker: str, address: str) -> None:
        _, victim = self.minimal_loss()
        self._expected[broker] = victim
        self.wishes.append(OpenLink(broker, address))

    def neighbour_up(self, peer: str) -> None:
        """The new link stands: now the old one may go."""
        self._standby.pop(peer, None)
        victim = self._expected.pop(peer, None)
        if victim is not None and victim in self._place.neighbours() and self._loss(victim) < math.inf:
            self._standby[victim] = None
            self.wishes.append(CloseLink(victim))

    def topology_changed(self) -> None:
        """Is someone cut off whom an old link might reach?"""
        reached = self._place.topology.routes_from(self._place.me)
        for broker in list(self._standby):
            if broker not in reached:
                self.wishes.append(OpenLink(broker, self._place.address_of(broker)))

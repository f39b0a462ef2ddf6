"""Self-reorganisation under a given load, cycle by cycle, without simulating time [THESIS 4.3, 10.1.2].

Every broker runs the `Reorganisation` that it runs anywhere else. What is left out is the time between: in a cycle all
brokers count the messages of the load, then decide on the same overlay, proposals and answers arrive, and links come
and go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from routing.messages import ProposalAnswered, Propose
from routing.reorganisation import OpenLink, Reorganisation
from routing.shortest_paths import TopologyTable
from topologies.random_streams import stream
from topologies.registry import generate

Load = dict[tuple[str, str], int]
"""Messages a cycle between two brokers, the smaller id first."""


@dataclass(frozen=True, slots=True)
class Reorganised:
    hops: tuple[float, ...]
    """Of a message on average: before, and after each cycle."""
    links: tuple[int, ...]
    changes: int
    """Links that came or went."""
    by_hops_before: tuple[float, ...]
    """Shares of messages that travel 1, 2, 3, … hops."""
    by_hops_after: tuple[float, ...]


class _Overlay:
    def __init__(self, ids: Sequence[str], links: Sequence[tuple[str, str]]) -> None:
        self.ids = tuple(ids)
        self.links = set(links)
        self.changes = 0
        self.table = TopologyTable.of_links(sorted(self.links))

    def change(self, links: set[tuple[str, str]]) -> None:
        self.changes += len(links ^ self.links)
        self.links = links
        self.table = TopologyTable.of_links(sorted(links))


class _Seat:
    """A broker's place in the overlay, as `Reorganisation` sees it."""

    domain = ""

    def __init__(self, me: str, overlay: _Overlay) -> None:
        self.me = me
        self.sent: list[Propose | ProposalAnswered] = []
        self.given_up: list[str] = []
        self._overlay = overlay

    @property
    def topology(self) -> TopologyTable:
        return self._overlay.table

    def neighbours(self) -> tuple[str, ...]:
        return tuple(sorted(self._overlay.table.neighbours(self.me)))

    def address_of(self, broker: str) -> str:
        return broker

    def spread(self, message: Propose | ProposalAnswered) -> None:
        self.sent.append(message)

    def give_up(self, peer: str) -> None:
        self.given_up.append(peer)


def reorganise_by_load(
    *, brokers: int, degree: float, most_links: int, most_messages: int, cycles: int, seed: int
) -> Reorganised:
    """A random overlay, with 1 to `most_messages` messages a cycle between any two brokers."""
    drawn = generate("random", {"brokers": brokers, "degree": degree}, seed=seed)
    overlay = _Overlay(drawn.ids, [link.ends for link in drawn.links])
    rng = stream(seed, "reorganising/load")
    load = {
        (first, second): rng.randint(1, most_messages)
        for position, second in enumerate(overlay.ids)
        for first in overlay.ids[:position]
    }
    seats = [_Seat(me, overlay) for me in overlay.ids]
    deciding = {seat.me: Reorganisation(seat, most_links) for seat in seats}
    before = _by_hops(overlay, load)
    hops, links = [_mean(before)], [len(overlay.links)]
    for _ in range(cycles):
        _one_cycle(overlay, seats, deciding, load)
        hops.append(_mean(_by_hops(overlay, load)))
        links.append(len(overlay.links))
    return Reorganised(tuple(hops), tuple(links), overlay.changes, _shares(before), _shares(_by_hops(overlay, load)))


def _one_cycle(overlay: _Overlay, seats: list[_Seat], deciding: dict[str, Reorganisation], load: Load) -> None:
    for (first, second), messages in load.items():
        for _ in range(messages):
            deciding[first].count(second)
            deciding[second].count(first)
    for seat in seats:
        deciding[seat.me].end_cycle()
    _deliver(seats, deciding)
    links = set(overlay.links)
    for seat in seats:
        wished = [wish.peer for wish in deciding[seat.me].link_requests if isinstance(wish, OpenLink)]
        links.update(_ends(seat.me, peer) for peer in wished)
        links.difference_update(_ends(seat.me, peer) for peer in seat.given_up)
        deciding[seat.me].link_requests.clear()
        seat.given_up.clear()
    overlay.change(links)
    for seat in seats:
        for peer in seat.neighbours():
            deciding[seat.me].neighbour_up(peer)


def _ends(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first < second else (second, first)


def _deliver(seats: list[_Seat], deciding: dict[str, Reorganisation]) -> None:
    """Proposals, then the answers to them."""
    while any(seat.sent for seat in seats):
        messages = [message for seat in seats for message in seat.sent]
        for seat in seats:
            seat.sent.clear()
        for message in messages:
            for destination in message.destinations:
                deciding[destination].receive(message)


def _by_hops(overlay: _Overlay, load: Load) -> Counter[int]:
    counts: Counter[int] = Counter()
    for (first, second), messages in load.items():
        distance = overlay.table.distance(first, second)
        if distance is not None:
            counts[distance] += messages
    return counts


def _mean(by_hops: Counter[int]) -> float:
    return sum(hops * messages for hops, messages in by_hops.items()) / by_hops.total()


def _shares(by_hops: Counter[int]) -> tuple[float, ...]:
    return tuple(by_hops[hops] / by_hops.total() for hops in range(1, max(by_hops) + 1))

"""Self-reorganisation under a given load, cycle by cycle, without simulating time [THESIS 4.3, 10.1.2].

Every broker uses the `Reorganisation` of real brokers. In a cycle all brokers count the messages of the load and decide
on the same overlay. Then proposals and answers arrive, and links are opened and closed.
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
"""Messages of a cycle between two brokers, the smaller id first."""


@dataclass(frozen=True, slots=True)
class ReorganisationResult:
    hops: tuple[float, ...]
    """Mean hops of a message, before the first cycle and after each cycle."""
    links: tuple[int, ...]
    changes: int
    """The number of links that were opened or closed."""
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


class _BrokerView:
    """A broker's view of the overlay, as `Reorganisation` needs it."""

    domain = ""

    def __init__(self, me: str, overlay: _Overlay) -> None:
        self.me = me
        self.sent: list[Propose | ProposalAnswered] = []
        self.withdrawn: list[str] = []
        self._overlay = overlay

    @property
    def topology(self) -> TopologyTable:
        return self._overlay.table

    def neighbours(self) -> tuple[str, ...]:
        return tuple(sorted(self._overlay.table.neighbours(self.me)))

    def address_of(self, broker: str) -> str:
        return broker

    def send(self, message: Propose | ProposalAnswered) -> None:
        self.sent.append(message)

    def withdraw_link(self, peer: str) -> None:
        self.withdrawn.append(peer)


def reorganise_by_load(
    *, brokers: int, degree: float, most_links: int, most_messages: int, cycles: int, seed: int
) -> ReorganisationResult:
    """Reorganises a random overlay with 1 to `most_messages` messages a cycle between any two brokers."""
    drawn = generate("random", {"brokers": brokers, "degree": degree}, seed=seed)
    overlay = _Overlay(drawn.ids, [link.ends for link in drawn.links])
    rng = stream(seed, "reorganising/load")
    load = {
        (first, second): rng.randint(1, most_messages)
        for position, second in enumerate(overlay.ids)
        for first in overlay.ids[:position]
    }
    views = [_BrokerView(me, overlay) for me in overlay.ids]
    reorganisations = {view.me: Reorganisation(view, most_links) for view in views}
    before = _by_hops(overlay, load)
    hops, links = [_mean(before)], [len(overlay.links)]
    for _ in range(cycles):
        _run_cycle(overlay, views, reorganisations, load)
        hops.append(_mean(_by_hops(overlay, load)))
        links.append(len(overlay.links))
    return ReorganisationResult(
        tuple(hops), tuple(links), overlay.changes, _shares(before), _shares(_by_hops(overlay, load))
    )


def _run_cycle(
    overlay: _Overlay, views: list[_BrokerView], reorganisations: dict[str, Reorganisation], load: Load
) -> None:
    for (first, second), messages in load.items():
        for _ in range(messages):
            reorganisations[first].count(second)
            reorganisations[second].count(first)
    for view in views:
        reorganisations[view.me].end_cycle()
    _deliver(views, reorganisations)
    links = set(overlay.links)
    for view in views:
        requested = [
            request.peer for request in reorganisations[view.me].link_requests if isinstance(request, OpenLink)
        ]
        links.update(_ends(view.me, peer) for peer in requested)
        links.difference_update(_ends(view.me, peer) for peer in view.withdrawn)
        reorganisations[view.me].link_requests.clear()
        view.withdrawn.clear()
    overlay.change(links)
    for view in views:
        for peer in view.neighbours():
            reorganisations[view.me].neighbour_up(peer)


def _ends(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first < second else (second, first)


def _deliver(views: list[_BrokerView], reorganisations: dict[str, Reorganisation]) -> None:
    """Delivers proposals, then the answers to them."""
    while any(view.sent for view in views):
        messages = [message for view in views for message in view.sent]
        for view in views:
            view.sent.clear()
        for message in messages:
            for destination in message.destinations:
                reorganisations[destination].receive(message)


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

"""Partitions an overlay into a given number of connected parts of about equal size, with few links between them.

Parts grow from seeds that are far apart, the smallest part first. Then brokers move from large parts to smaller
neighbouring parts until sizes are within a tenth of the mean. Last, single brokers move if that leaves fewer links
between parts. A broker moves together with the brokers that it would cut off, so parts stay connected.

Some overlays have no such parts: in a star, all parts but one would be single brokers. Then a broker may be shared. It
stays in its part, and becomes a guest of the part that receives the brokers connected only through it. If that does not
help either (three long arms in two parts), parts stay unequal instead of sharing long paths. Deterministic: ties go to
the smallest id. Cost: about a second for 1,000 brokers in ten parts.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from topologies.graph import components, hops_from

REFINING_PASSES = 12
Neighbours = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Part:
    """The brokers of one part, and the guests from other parts that connect it. Both are ascending."""

    brokers: tuple[str, ...]
    guests: tuple[str, ...]


def balanced_parts(neighbours: Neighbours, count: int) -> list[Part]:
    """Partitions a connected overlay into `count` connected parts, ordered by their smallest broker."""
    mean = len(neighbours) / count
    slack = max(1.0, mean / 10)
    parts = _Parts(neighbours, _grown(neighbours, _seeds(neighbours, count)))
    smallest, largest = max(1.0, mean - slack), mean + slack
    parts.balance(smallest, largest)
    parts.refine(smallest, largest)
    return sorted(parts.finish(), key=lambda part: part.brokers[0])


def _seeds(neighbours: Neighbours, count: int) -> list[str]:
    """Returns brokers that are far apart: one farthest from the first broker, then repeatedly the one farthest from all
    seeds so far."""
    rim = list(hops_from(min(neighbours), neighbours))[-1]
    seeds = [rim]
    nearest = hops_from(rim, neighbours)
    while len(seeds) < count:
        seed = max(sorted(neighbours), key=nearest.__getitem__)
        seeds.append(seed)
        for id, hops in hops_from(seed, neighbours).items():
            nearest[id] = min(nearest[id], hops)
    return seeds


def _grown(neighbours: Neighbours, seeds: Sequence[str]) -> dict[str, int]:
    """Returns the part of each broker. Parts grow from the seeds: the smallest part adds the free neighbour with most
    links into it."""
    home: dict[str, int] = {seed: number for number, seed in enumerate(seeds)}
    links_into: list[dict[str, int]] = [{} for _ in seeds]
    frontier: list[list[tuple[int, str]]] = [[] for _ in seeds]

    def widen(number: int, id: str) -> None:
        for other in neighbours[id]:
            if other not in home:
                links_into[number][other] = links_into[number].get(other, 0) + 1
                heapq.heappush(frontier[number], (-links_into[number][other], other))

    for number, seed in enumerate(seeds):
        widen(number, seed)
    queue = [(1, number) for number in range(len(seeds))]
    while queue:
        size, number = heapq.heappop(queue)
        while frontier[number] and frontier[number][0][1] in home:
            heapq.heappop(frontier[number])
        if frontier[number]:
            _, id = heapq.heappop(frontier[number])
            home[id] = number
            widen(number, id)
            heapq.heappush(queue, (size + 1, number))
    return home


class _Parts:
    """A partition during its improvement: the home part of each broker, and the guests of each part."""

    def __init__(self, neighbours: Neighbours, home: Mapping[str, int]) -> None:
        self._neighbours = neighbours
        self._home = {id: home[id] for id in sorted(home)}
        self._guests: list[set[str]] = [set() for _ in range(max(home.values()) + 1)]
        self._own: list[set[str]] = [set() for _ in self._guests]
        for id, number in home.items():
            self._own[number].add(id)

    def balance(self, smallest: float, largest: float) -> None:
        """Moves brokers from large parts to smaller neighbouring parts while that makes sizes more equal.

        Every transfer lowers the sum of the squared sizes, so this terminates.
        """
        while any(not smallest <= len(own) <= largest for own in self._own):
            if not self._balance_once():
                return

    def refine(self, smallest: float, largest: float) -> None:
        """Moves single brokers to the part that they have most links into, within the bounds on sizes."""
        for _ in range(REFINING_PASSES):
            moved = False
            for id, source in self._home.items():
                target = self._best_part(id)
                fits = len(self._own[target]) + 1 <= largest and len(self._own[source]) - 1 >= smallest
                if target != source and fits and not self._cut_off_by(id, source):
                    self._move([id], source, target)
                    moved = True
            if not moved:
                return

    def finish(self) -> list[Part]:
        """Removes guests that are not needed to connect their part. Returns the parts."""
        for number, guests in enumerate(self._guests):
            for guest in sorted(guests):
                members = self._members(number)
                members.discard(guest)
                if len(components(sorted(members), self._neighbours, inside=members)) == 1:
                    guests.discard(guest)
        return [
            Part(tuple(sorted(own)), tuple(sorted(guests))) for own, guests in zip(self._own, self._guests, strict=True)
        ]

    def _balance_once(self) -> bool:
        by_size = sorted(range(len(self._own)), key=lambda number: (-len(self._own[number]), number))
        for source in by_size:
            for target in reversed(by_size):
                if len(self._own[source]) - len(self._own[target]) >= 2 and self._transfer(source, target):
                    return True
        return False

    def _transfer(self, source: int, target: int) -> bool:
        """Moves a broker, with the brokers that it would cut off, to another part. If that is not possible, shares the
        broker and moves brokers that are connected only through it. Returns whether anything moved."""
        difference = len(self._own[source]) - len(self._own[target])
        gates = self._gates(source, target)
        for gate in gates:
            moving = [gate, *self._cut_off_by(gate, source)]
            if self._homes_among(moving, source) < difference:
                self._move(moving, source, target)
                return True
        for gate in gates:
            dependent = self._connected_through(gate, source, limit=difference // 2)
            if dependent:
                self._guests[target].add(gate)
                self._move(dependent, source, target)
                return True
        return False

    def _gates(self, source: int, target: int) -> list[str]:
        """Returns the brokers of `source` with a neighbour in `target`, those with most such neighbours first."""
        members = self._members(target)
        gates = []
        for id in self._own[source]:
            links = sum(other in members for other in self._neighbours[id])
            if links or id in members:
                gates.append((-links, id))
        return [id for _, id in sorted(gates)]

    def _pieces_without(self, id: str, number: int) -> list[list[str]]:
        """Returns the components of the part without this broker, the one with most of the part's own brokers first."""
        members = self._members(number)
        members.discard(id)
        starts = [other for other in self._neighbours[id] if other in members]
        pieces = components(starts, self._neighbours, inside=members)
        return sorted(pieces, key=lambda piece: (-self._homes_among(piece, number), min(piece)))

    def _cut_off_by(self, id: str, number: int) -> list[str]:
        """Returns the brokers that would be cut off from the part if this broker left it."""
        return [other for piece in self._pieces_without(id, number)[1:] for other in piece]

    def _connected_through(self, id: str, number: int, limit: int) -> list[str]:
        """Returns brokers that are connected to the part only through this broker, smallest components first, up to
        `limit` brokers."""
        dependent: list[str] = []
        for piece in reversed(self._pieces_without(id, number)):
            if self._homes_among(dependent, number) + self._homes_among(piece, number) > limit:
                break
            dependent += piece
        return dependent if self._homes_among(dependent, number) else []

    def _best_part(self, id: str) -> int:
        """Returns the part into which the broker has most links. Ties go to its own part."""
        own = self._home[id]
        links = {own: 0}
        for other in self._neighbours[id]:
            links[self._home[other]] = links.get(self._home[other], 0) + 1
        return max(sorted(links), key=lambda number: (links[number], number == own))

    def _homes_among(self, ids: Iterable[str], number: int) -> int:
        return sum(self._home[id] == number for id in ids)

    def _members(self, number: int) -> set[str]:
        return self._own[number] | self._guests[number]

    def _move(self, ids: Iterable[str], source: int, target: int) -> None:
        """Moves brokers between parts. A guest among them becomes a guest of the other part."""
        for id in ids:
            if self._home[id] == source:
                self._home[id] = target
                self._own[source].discard(id)
                self._own[target].add(id)
                self._guests[target].discard(id)
            else:
                self._guests[source].discard(id)
                if self._home[id] != target:
                    self._guests[target].add(id)

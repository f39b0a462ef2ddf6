"""Publications that this broker answers for, until every broker that it sent them to has settled them.

A broker that starts a stretch keeps the publication until each destination says that it is settled, there and behind
it. It sends it again when the way was lost, when a destination can be reached again, and after a long silence.
Destinations recognise what they have seen, so sending again is always safe. When everything is settled, whoever sent
the publication here is told. In the end the publisher's broker knows, and its window moves on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from routing.messages import PublicationId, Publish
from routing.multicast import narrowed


@dataclass(slots=True)
class _Stretch:
    message: Publish
    waiting: dict[str, int]
    """Destinations that have not settled, with the time at which they were last reachable."""
    missed: set[str] = field(default_factory=set)
    """Destinations that could not be reached when it was last sent."""


@dataclass(slots=True)
class Held:
    id: PublicationId
    stretches: list[_Stretch]
    upstream: list[tuple[str, str]]
    """Domain and broker to tell when all is settled: nobody at the publisher's broker."""
    sent: int
    patience: int

    @property
    def is_settled(self) -> bool:
        return not any(stretch.waiting for stretch in self.stretches)

    def messages(self) -> tuple[Publish, ...]:
        return tuple(narrowed(each.message, list(each.waiting)) for each in self.stretches if each.waiting)


@dataclass(frozen=True, slots=True)
class GivenUp:
    publication: PublicationId
    broker: str


class Custody:
    def __init__(self, patience: int, longest_patience: int, hold_unreachable: int) -> None:
        """Times in nanoseconds: how long until the first repetition, between repetitions at most, and how long a
        publication is kept for a destination that cannot be reached."""
        self._patience = patience
        self._longest_patience = longest_patience
        self._hold_unreachable = hold_unreachable
        self._held: dict[PublicationId, Held] = {}

    def __contains__(self, publication: object) -> bool:
        return publication in self._held

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Held]:
        return iter(list(self._held.values()))

    def hold(
        self,
        id: PublicationId,
        messages: tuple[Publish, ...],
        upstream: list[tuple[str, str]],
        now: int,
        is_reachable: Callable[[str, str], bool],
    ) -> None:
        """Destinations that cannot be reached now are served as soon as they can be."""
        stretches = []
        for message in messages:
            stretch = _Stretch(message, dict.fromkeys(message.destinations, now))
            for broker in stretch.waiting:
                if not is_reachable(message.domain, broker):
                    stretch.missed.add(broker)
            stretches.append(stretch)
        self._held[id] = Held(id, stretches, upstream, now, self._patience)

    def add_upstream(self, id: PublicationId, domain: str, broker: str) -> None:
        """The publication came a second time, from someone who waits for it too."""
        if (domain, broker) not in self._held[id].upstream:
            self._held[id].upstream.append((domain, broker))

    def settle(self, id: PublicationId, broker: str) -> Held | None:
        """One destination is done, whichever way it was reached. Returns the publication when it was the last."""
        held = self._held.get(id)
        if held is None:
            return None
        for stretch in held.stretches:
            stretch.waiting.pop(broker, None)
        return self._close(held)

    def _close(self, held: Held) -> Held | None:
        if not held.is_settled:
            return None
        return self._held.pop(held.id)

    def extend(self, id: PublicationId, message: Publish, now: int) -> None:
        """Others take the place of a destination that was lost."""
        self._held[id].stretches.append(_Stretch(message, dict.fromkeys(message.destinations, now)))

    def impatient(self) -> None:
        """A link was lost: what is under way may be lost with it, and is sent again with the next `due`."""
        for held in self._held.values():
            held.sent = min(held.sent, -held.patience)

    def due(
        self, now: int, is_reachable: Callable[[str, str], bool]
    ) -> tuple[list[Publish], list[tuple[Held, Publish, str]], list[GivenUp]]:
        """What to send now, whom to find a substitute for, and which destinations were given up."""
        again: list[Publish] = []
        lost: list[tuple[Held, Publish, str]] = []
        given_up: list[GivenUp] = []
        for held in list(self._held.values()):
            is_overdue = now - held.sent >= held.patience
            for stretch in held.stretches:
                chosen = self._choose(stretch, is_overdue, now, is_reachable)
                if is_overdue:
                    # Whoever passes on may itself have lost the way further on, and another may have one.
                    passing_on = {*stretch.missed, *stretch.message.transit}
                    lost += [(held, stretch.message, broker) for broker in stretch.waiting if broker in passing_on]
                for broker in [
                    each for each in stretch.waiting if now - stretch.waiting[each] > self._hold_unreachable
                ]:
                    del stretch.waiting[broker]
                    given_up.append(GivenUp(held.id, broker))
                if chosen:
                    again.append(narrowed(stretch.message, chosen))
            if is_overdue:
                held.sent = now
                held.patience = min(2 * held.patience, self._longest_patience)
        return again, lost, given_up

    def _choose(
        self, stretch: _Stretch, is_overdue: bool, now: int, is_reachable: Callable[[str, str], bool]
    ) -> list[str]:
        chosen: list[str] = []
        for broker in stretch.waiting:
            if is_reachable(stretch.message.domain, broker):
                stretch.waiting[broker] = now
                if is_overdue or broker in stretch.missed:
                    chosen.append(broker)
                stretch.missed.discard(broker)
            else:
                stretch.missed.add(broker)
        return chosen

    def closed(self) -> list[Held]:
        """Publications that have nothing left to wait for, after destinations were given up."""
        done = [held for held in self._held.values() if held.is_settled]
        for held in done:
            del self._held[held.id]
        return done

    def stranded(self, id: PublicationId, is_reachable: Callable[[str, str], bool]) -> bool:
        """Does it wait for none but unreachable destinations?"""
        held = self._held[id]
        return not any(
            is_reachable(stretch.message.domain, broker) for stretch in held.stretches for broker in stretch.waiting
        )

    def release(self, id: PublicationId) -> Held:
        return self._held.pop(id)

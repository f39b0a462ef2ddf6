"""Random messages of a compromised broker: well-formed, with false content."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

import msgpack

from routing.messages import (
    LARGEST_NUMBER,
    Advertise,
    Announce,
    Change,
    Credit,
    EntryId,
    Heartbeat,
    LinkState,
    LinkStates,
    Message,
    Neighbour,
    ProposalAnswered,
    Propose,
    PublicationId,
    Publish,
    Resend,
    Settled,
    Subscribe,
    Turn,
    Unadvertise,
    Unsubscribe,
    Update,
    UpdateAcknowledged,
)

T = TypeVar("T")

BODIES = (msgpack.packb({"n": 1}), msgpack.packb({}), b"", b"\xc1", b"\x81\xa1n", b"\xdf\xff\xff\xff\xff")
EXPRESSIONS = ("TRUE", "n = 1", "n > 'a' AND", "", "x" * 300, "NOT " * 50 + "n = 1", "a = 1 OR b = 2")


class Liar:
    """Draws messages about these brokers, and about brokers that do not exist."""

    def __init__(self, draws: Random, brokers: tuple[str, ...], domains: tuple[str, ...], incarnation: int) -> None:
        self._draws = draws
        self._brokers = (*brokers, "nobody", "")
        self._domains = (*domains, "elsewhere")
        self._incarnations = (0, 1, incarnation - 1, incarnation, incarnation + 1, LARGEST_NUMBER)
        self._kinds: tuple[Callable[[], Message], ...] = (
            self._publish,
            self._update,
            self._update,
            lambda: UpdateAcknowledged(*self._from_to(), self._number(), self._number(), self._number()),
            lambda: Resend(*self._from_to(), self._number()),
            lambda: Settled(self._broker(), self._domain(), self._some_brokers(), self._some(self._publication)),
            lambda: LinkStates(self._some(self._state)),
            lambda: Announce(self._broker(), self._domain(), self._some_brokers(), self._state(), self._number()),
            lambda: Heartbeat(self._incarnation(), self._some(self._domain), ((self._domain(), draws.randbytes(8)),)),
            lambda: Credit(self._number()),
            lambda: Propose(self._broker(), self._domain(), self._some_brokers(), 1.5, 1e308, "127.0.0.1:1"),
            lambda: ProposalAnswered(self._broker(), self._domain(), self._some_brokers(), True, "no address"),
        )

    def lie(self) -> Message:
        return self._draws.choice(self._kinds)()

    def _publish(self) -> Publish:
        draws = self._draws
        return Publish(
            self._publication(),
            self._broker(),
            self._domain(),
            self._some_brokers(),
            self._some_brokers(),
            draws.choice(BODIES),
            draws.choice((b"", b"body")),
            self._some(self._domain),
            draws.choice((None, self._entry())),
            self._number(),
            draws.choice((None, self._number())),
            self._number(),
            draws.random() < 0.2,
        )

    def _update(self) -> Update:
        turns = tuple(Turn(each, self._number(), self._number()) for each in self._some_brokers())
        changes = self._some(self._change)
        return Update(self._broker(), self._incarnation(), self._domain(), turns, changes, self._number())

    def _change(self) -> Change:
        draws, entry, crossed = self._draws, self._entry(), self._some(self._domain)
        tree = draws.choice((None, self._entry()))
        return draws.choice(
            (
                Advertise(entry, draws.choice(EXPRESSIONS), crossed, draws.random() < 0.2),
                Unadvertise(entry),
                Subscribe(entry, draws.choice(EXPRESSIONS), crossed, tree, draws.random() < 0.2),
                Unsubscribe(entry, tree),
            )
        )

    def _state(self) -> LinkState:
        neighbours = tuple(Neighbour(each, self._number()) for each in self._some_brokers())
        who = (self._broker(), self._incarnation(), self._number(), self._domain())
        return LinkState(*who, neighbours, self._some(self._domain), "127.0.0.1:1", self._draws.random() < 0.2)

    def _from_to(self) -> tuple[str, int, str, tuple[str, ...]]:
        return self._broker(), self._incarnation(), self._domain(), self._some_brokers()

    def _broker(self) -> str:
        return self._draws.choice(self._brokers)

    def _some_brokers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._some(self._broker)))

    def _domain(self) -> str:
        return self._draws.choice(self._domains)

    def _incarnation(self) -> int:
        return self._draws.choice(self._incarnations)

    def _number(self) -> int:
        return self._draws.choice((0, 1, 1, 2, 3, 64, LARGEST_NUMBER))

    def _entry(self) -> EntryId:
        return EntryId(self._broker(), self._incarnation(), self._number())

    def _publication(self) -> PublicationId:
        return PublicationId(self._broker(), self._incarnation(), self._number())

    def _some(self, draw: Callable[[], T]) -> tuple[T, ...]:
        return tuple(draw() for _ in range(self._draws.randrange(4)))

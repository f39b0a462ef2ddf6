"""Restarts: what a broker remembers of earlier incarnations, and how it learns again what other brokers want.

After a restart, publications that this broker must pass on wait until it knows enough. It knows enough when every
broker that it can reach has sent its opening, in its present incarnation. Links need some time to come up, so recovery
takes at least two ticks. Brokers that recover together may wait for each other, so recovery ends after a while in any
case. Retention covers what the broker learns later.

A durable broker stores the names of the other brokers, so that a broker which is down during the restart is not
forgotten. It also stores which retained publications are settled, so that they are not sent again.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.core.context import CoreContext
from broker.core.effects import Persist
from broker.core.retention import Retention
from routing.messages import PublicationId, Publish

FEWEST_TICKS = 2


class Recovery:
    def __init__(
        self, context: CoreContext, retention: Retention, expected_neighbours: tuple[str, ...], *, has_lived: bool
    ) -> None:
        """`has_lived`: there were earlier incarnations. `expected_neighbours`: those of the configuration; recovery
        gives their links time to come up."""
        self._context = context
        self._router = context.router
        self._retention = retention
        self._expected_neighbours = expected_neighbours
        self._most_ticks = max(context.settings.ticks_in(context.settings.detection_time), FEWEST_TICKS)
        self._most_waiting = 4 * context.settings.window
        self._has_lived = False
        self._ticks = 0
        self.is_active = False
        """Whether this broker restarted and may not know yet what other brokers want."""
        self._waiting: dict[PublicationId, list[tuple[Publish, str]]] = {}
        self._members: dict[str, tuple[str, ...]] = {}
        """The members of each domain, as they are stored."""
        self._settled: tuple[tuple[int, int], ...] = ()
        """The settled publications of clients here, as they are stored."""
        self._router.expect_neighbours(expected_neighbours)
        if has_lived:
            self.begin()

    def begin(self) -> None:
        """Begins recovery, unless it began before. A neighbour may be the first to know of an earlier incarnation."""
        if not self._has_lived:
            self._has_lived = True
            self.is_active = True
            self._router.begin_recovery()

    def tick(self, is_up: Callable[[str], bool]) -> list[tuple[Publish, str]]:
        """Counts a tick. Returns the publications that waited, in the order of their arrival, if recovery ends."""
        if not self.is_active:
            return []
        self._ticks += 1
        is_informed = all(map(is_up, self._expected_neighbours)) and self._router.has_all_openings
        if self._ticks < FEWEST_TICKS or not (is_informed or self._ticks >= self._most_ticks):
            return []
        self.is_active = False
        self._router.end_recovery()
        waiting, self._waiting = self._waiting, {}
        return [copy for copies in waiting.values() for copy in copies]

    def postpone(self, message: Publish, peer: str) -> None:
        """Keeps an arrived publication until recovery ends. Of several copies over the same route it keeps the last
        one. Without room it keeps none: the sender sends the publication again."""
        if message.id not in self._waiting and len(self._waiting) >= self._most_waiting:
            return
        copies = self._waiting.setdefault(message.id, [])
        copies[:] = [each for each in copies if (each[0].source, each[0].domain) != (message.source, message.domain)]
        copies.append((message, peer))

    def __contains__(self, publication: object) -> bool:
        """Whether the publication waits for the end of recovery."""
        return publication in self._waiting

    def __len__(self) -> int:
        """The number of publications that wait for the end of recovery."""
        return len(self._waiting)

    def restore_members(self, domain: str, members: tuple[str, ...]) -> None:
        self._members[domain] = members
        self._router.restore_members(domain, members)

    def store_members(self) -> None:
        """Stores the members of the domains that have changed."""
        if self._context.settings.is_durable:
            for domain, members in self._router.members():
                if self._members.get(domain) != members:
                    self._members[domain] = members
                    self._context.effects.append(Persist(("members", domain), members))

    def store_settled(self) -> None:
        """Stores which retained publications of clients here are settled, if that has changed."""
        if self._context.settings.is_durable:
            own = (each.id for each in self._retention.closed() if each.peer is None)
            settled = tuple((id.incarnation, id.counter) for id in own)
            if settled != self._settled:
                self._settled = settled
                self._context.effects.append(Persist(("settled",), settled))

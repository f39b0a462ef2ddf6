"""Flooding: every publication goes to every broker; the floor that other routers are compared with [THESIS 2.1].

Nothing is stored but local subscriptions. On an overlay with cycles a broker gets copies over several links; it
keeps the first and answers for the others at once.
"""

from __future__ import annotations

from matching.model import Expression
from routing.hop_by_hop import DOMAIN, HopByHop
from routing.messages import EntryId, Publish
from routing.router import Counts, Matched, Stretch, work_of
from routing.tables import LocalAdvertisements, LocalSubscriptions


class Flooding(HopByHop):
    name = "flooding"

    def __init__(
        self, me: str, incarnation: int, matcher: str = "auto", clusters: tuple[str, ...] = (), address: str = ""
    ) -> None:
        super().__init__(me, incarnation)
        self._local_advertisements = LocalAdvertisements()
        self._local_subscriptions = LocalSubscriptions(matcher)

    def advertise(self, entry: EntryId, client: str, expression: Expression) -> None:
        self._local_advertisements.insert(entry, client, expression)

    def unadvertise(self, entry: EntryId) -> None:
        self._local_advertisements.remove(entry)

    def subscribe(self, entry: EntryId, client: str, expression: Expression) -> None:
        self._local_subscriptions.insert(entry, client, expression)

    def unsubscribe(self, entry: EntryId) -> None:
        self._local_subscriptions.remove(entry)

    def match_own(self, client: str, attributes: bytes) -> Matched | None:
        if self._local_advertisements.permitting(client, attributes) is None:
            return None
        return self._match(attributes, self.neighbours())

    def match_arrived(self, publication: Publish, peer: str) -> Matched:
        return self._match(publication.attributes, tuple(each for each in self.neighbours() if each != peer))

    def _match(self, attributes: bytes, onward: tuple[str, ...]) -> Matched:
        report, clients = self._local_subscriptions.match(attributes)
        stretches = (Stretch(DOMAIN, (), onward),) if onward else ()
        return Matched(clients, stretches, (work_of("L-PRT", report),))

    def leave(self) -> None:
        """Nobody holds anything of this broker's."""

    def counts(self) -> Counts:
        return Counts(len(self._local_advertisements), len(self._local_subscriptions), 0, 0)

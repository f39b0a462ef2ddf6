"""What routers share that know their neighbours only: a publication is decided on anew at every hop."""

from __future__ import annotations

from routing.correspondence import Hearer, Teller
from routing.errors import RoutingError
from routing.messages import (
    Announce,
    Change,
    Heartbeat,
    LinkState,
    LinkStates,
    Message,
    Publish,
    Resend,
    Routed,
    Unadvertise,
    Unsubscribe,
    Update,
    UpdateAcknowledged,
)
from routing.multicast import narrowed
from routing.reorganise import CloseLink, OpenLink
from routing.router import Stretch
from routing.tables import is_readable

DOMAIN = ""


class HopByHop:
    """Each neighbour is a destination of its own; nothing travels further than one hop under the same header."""

    def __init__(self, me: str, incarnation: int) -> None:
        self.me = me
        self.is_behind = False
        self._incarnation = incarnation
        self._neighbours: dict[str, int] = {}
        self._sends: list[tuple[str, Message]] = []
        self._teller = Teller(me, incarnation, DOMAIN)
        self._hearer = Hearer(me, incarnation, DOMAIN)

    def catch_up(self) -> None:
        """News of neighbours is never put off."""

    def start_with(self, states: tuple[LinkState, ...]) -> None:
        """Nothing beyond the neighbours matters here, and these introduce themselves."""

    def neighbour_up(self, peer: str, greeting: Heartbeat, cost: int = 1) -> None:
        withdrawn = self._hearer.disregard_before(peer, greeting.incarnation)
        if withdrawn:
            self._restarted(peer, withdrawn)
        is_new = peer not in self._neighbours
        self._neighbours[peer] = greeting.incarnation
        self._teller.reaches(peer, greeting.incarnation)
        if is_new:
            self._neighbour_added(peer)

    def neighbour_lost(self, peer: str) -> None:
        if self._neighbours.pop(peer, None) is not None:
            self._teller.cannot_reach(peer)

    def _neighbour_added(self, peer: str) -> None:
        """A neighbour that was not there before."""

    def _restarted(self, peer: str, withdrawn: list[Change]) -> None:
        """A neighbour started anew and knows nothing of what it had told."""

    def _apply(self, change: Change, peer: str) -> None:
        """A neighbour said something about advertisements or subscriptions."""

    def neighbours(self) -> tuple[str, ...]:
        return tuple(sorted(self._neighbours))

    def still_leads(self, stretch: Stretch) -> bool:
        return True

    def send(self, message: Routed) -> None:
        for destination in message.destinations:
            if destination in self._neighbours:
                self._sends.append((destination, narrowed(message, (destination,))))

    def reorganise_with(self, most_links: int) -> None:
        raise RoutingError(
            f"{type(self).__name__} cannot reorganise itself: it does not know the overlay; use d-dbr or merc"
        )

    def reorganise(self) -> None:
        """Never asked to."""

    def wishes(self) -> list[OpenLink | CloseLink]:
        return []

    def counts_of_losses(self) -> int:
        """Losing a neighbour is known without being counted: nobody else's links matter here."""
        return 0

    def take(self, message: Message, peer: str) -> Message | None:
        if isinstance(message, Update):
            self._take_update(message, peer)
        elif isinstance(message, UpdateAcknowledged):
            self._teller.acknowledged(message)
        elif isinstance(message, Resend):
            self._teller.asked_to_resend(message)
        elif not isinstance(message, LinkStates | Announce | Heartbeat):
            return message
        return None

    def _take_update(self, update: Update, peer: str) -> None:
        turn = next((turn for turn in update.turns if turn.destination == self.me), None)
        if turn is None or update.source != peer:
            return
        changes, answer = self._hearer.take(update, turn)
        for change in changes:
            if isinstance(change, Unadvertise | Unsubscribe) or is_readable(change.expression):
                self._apply(change, peer)
        if answer is not None:
            self._sends.append((peer, answer))

    def tick(self) -> None:
        self._send_updates(self._teller.repeat())

    def greeting(self) -> Heartbeat:
        return Heartbeat(self._incarnation, ())

    def is_reachable(self, domain: str, broker: str) -> bool:
        return broker in self._neighbours

    def substitutes(self, publication: Publish, lost: str) -> Stretch | None:
        return None

    def drain(self) -> list[tuple[str, Message]]:
        self._send_updates(self._teller.flush())
        sends, self._sends = self._sends, []
        return sends

    def _send_updates(self, updates: list[Update]) -> None:
        for update in updates:
            self._sends += [(peer, narrowed(update, (peer,))) for peer in update.destinations]

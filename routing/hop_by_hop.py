"""The common part of routers that know only their neighbours: every hop makes a new routing decision."""

from __future__ import annotations

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
from routing.multicast import destinations_of, narrowed
from routing.reliable_updates import UpdateReceiver, UpdateSender
from routing.router import ANY_NUMBER, ForwardingLeg, LearnedSubscription, RouterOutput, RouterSettings
from routing.tables import is_parsable

DOMAIN = ""


class HopByHop:
    """A router whose destinations are its neighbours. No message travels further than one hop with the same header."""

    def __init__(self, me: str, incarnation: int) -> None:
        self.me = me
        self.settings = RouterSettings()
        self._incarnation = incarnation
        self._neighbours: dict[str, int] = {}
        self._known_neighbours: dict[str, int] = {}
        """Present neighbours and former ones that have not left, with their last incarnation. 0 means unknown."""
        self._returned: dict[str, None] = {}
        """Neighbours that are reachable again, and have not confirmed yet that they sent all changes."""
        self._converging_ticks = 0
        """Remaining ticks in which neighbours that are reachable again, or others behind them, may send more
        changes."""
        self._learned_subscriptions: list[LearnedSubscription] = []
        self._is_recovering = False
        self._has_restarted = False
        """Whether there was an earlier incarnation, which knew more than this one at its start."""
        self._sends: list[tuple[str, Message]] = []
        self._update_sender = UpdateSender(me, incarnation, DOMAIN)
        self._update_receiver = UpdateReceiver(me, incarnation, DOMAIN)

    def apply_link_states(self) -> None:
        """Does nothing: changes of neighbours are applied at once."""

    def load_link_states(self, states: tuple[LinkState, ...]) -> None:
        """Does nothing: only neighbours matter here, and they send greetings."""

    def neighbour_up(self, peer: str, greeting: Heartbeat, cost: int = 1) -> None:
        if peer not in self._neighbours and (
            self._known_neighbours.get(peer) or (peer in self._known_neighbours and self._has_restarted)
        ):
            self._returned[peer] = None
            self._converging_ticks = self.settings.detection_ticks
        self._add_neighbour(peer)
        self._neighbours[peer] = self._known_neighbours[peer] = greeting.incarnation
        self._update_sender.set_reachable(peer, greeting.incarnation)
        self._send_inquiries()
        self._request_openings()
        self._neighbour_reachable(peer)

    def _add_neighbour(self, peer: str) -> None:
        if peer not in self._known_neighbours:
            self._known_neighbours[peer] = 0
            self._neighbour_added(peer)

    def neighbour_lost(self, peer: str) -> None:
        if self._neighbours.pop(peer, None) is not None:
            self._returned.pop(peer, None)
            self._update_sender.set_unreachable(peer)

    def neighbour_left(self, peer: str) -> None:
        self.neighbour_lost(peer)
        incarnation = self._known_neighbours.pop(peer, None)
        self._update_sender.remove_destination(peer)
        if incarnation is not None:
            self._apply_withdrawals(self._update_receiver.drop_older_incarnations(peer, incarnation + 1), peer)

    def _neighbour_added(self, peer: str) -> None:
        """Called for a neighbour that was not known before."""

    def _neighbour_reachable(self, peer: str) -> None:
        """Called for a neighbour that is reachable again, or for the first time."""

    def _apply_withdrawals(self, withdrawals: list[Change], peer: str) -> None:
        """Applies withdrawals of entries that a restarted neighbour did not repeat in its opening, or of a neighbour
        that has left."""

    def _apply(self, change: Change, peer: str) -> None:
        """Applies a change that a neighbour sent."""

    def _apply_repeated(self, change: Change, peer: str) -> None:
        """Handles a known entry that a restarted neighbour repeated."""

    def begin_recovery(self) -> None:
        self._is_recovering = self._has_restarted = True
        self._update_sender.leave_openings_unfinished()

    @property
    def has_all_openings(self) -> bool:
        return not self._missing_openings()

    def end_recovery(self) -> None:
        self._is_recovering = False
        self._update_sender.finish_openings()
        self._converging_ticks = self.settings.detection_ticks

    def _missing_openings(self) -> dict[str, int]:
        """Returns neighbours whose opening is not complete, with their present incarnation. An opening is awaited only
        from a neighbour with known entries, unless this broker itself recovers from a restart."""
        return {
            peer: incarnation
            for peer, incarnation in self._neighbours.items()
            if not self._update_receiver.is_complete(peer, incarnation)
            and (self._is_recovering or self._update_receiver.has_older_entries(peer, incarnation))
        }

    def _send_inquiries(self) -> None:
        """Sends inquiries to neighbours that are reachable again and have acknowledged all changes. Their own changes
        may depend on these."""
        for peer in self._returned:
            if self._update_sender.is_up_to_date(peer):
                self._sends.append((peer, self._update_receiver.inquiry(peer)))

    def _request_openings(self) -> None:
        for peer, incarnation in self._missing_openings().items():
            request = self._update_receiver.opening_request(peer, incarnation)
            if request is not None:
                self._sends.append((peer, request))

    def incarnation_of(self, broker: str) -> int:
        return self._known_neighbours.get(broker, 0)

    def members(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ((DOMAIN, tuple(sorted(self._known_neighbours))),)

    def expect_neighbours(self, peers: tuple[str, ...]) -> None:
        self.restore_members(DOMAIN, peers)

    def restore_members(self, domain: str, members: tuple[str, ...]) -> None:
        for peer in members:
            self._add_neighbour(peer)

    def _silent_neighbours(self) -> list[str]:
        """Returns neighbours that cannot send subscriptions at present, neither theirs nor those of brokers behind
        them."""
        awaited = self._missing_openings().keys() | self._returned.keys()
        return [peer for peer in self._known_neighbours if peer not in self._neighbours or peer in awaited]

    @property
    def is_converging(self) -> bool:
        return bool(self._converging_ticks or self._returned)

    def neighbours(self) -> tuple[str, ...]:
        return tuple(sorted(self._neighbours))

    def is_valid(self, leg: ForwardingLeg) -> bool:
        return True

    def send(self, message: Routed) -> None:
        for destination in destinations_of(message):
            if destination in self._neighbours:
                self._sends.append((destination, narrowed(message, (destination,))))

    def enable_reorganisation(self, most_links: int) -> None:
        raise RoutingError(
            f"{type(self).__name__} cannot reorganise itself: it does not know the overlay; use d-dbr or merc"
        )

    def reorganise(self) -> None:
        """Does nothing: `enable_reorganisation` always fails."""

    def receive(self, message: Message, peer: str) -> Message | None:
        if isinstance(message, Update):
            self._receive_update(message, peer)
        elif isinstance(message, UpdateAcknowledged):
            self._update_sender.receive_acknowledgement(message)
            if peer in self._returned and not message.is_inquiry:
                self._send_inquiries()
        elif isinstance(message, Resend):
            self._update_sender.receive_resend_request(message)
        elif not isinstance(message, LinkStates | Announce | Heartbeat):
            return message
        return None

    def _receive_update(self, update: Update, peer: str) -> None:
        turn = next((turn for turn in update.turns if turn.destination == self.me), None)
        if turn is None or update.source != peer:
            return
        received = self._update_receiver.receive(update, turn)
        for change in received.changes:
            if isinstance(change, Unadvertise | Unsubscribe) or is_parsable(change.expression):
                self._apply(change, peer)
        for change in received.repeated:
            if isinstance(change, Unadvertise | Unsubscribe) or is_parsable(change.expression):
                self._apply_repeated(change, peer)
        if received.withdrawn:
            self._apply_withdrawals(received.withdrawn, peer)
        if received.is_complete:
            self._returned.pop(peer, None)
        if received.answer is not None:
            self._sends.append((peer, received.answer))

    def tick(self) -> None:
        self._send_updates(self._update_sender.repeat())
        self._converging_ticks = max(0, self._converging_ticks - 1)
        self._send_inquiries()
        self._request_openings()

    def idle_ticks(self) -> int:
        if self._update_sender.is_repeating:
            return 0
        # The tick in which the countdown ends changes `is_converging`.
        return self._converging_ticks - 1 if self._converging_ticks else ANY_NUMBER

    def skip_ticks(self, count: int) -> None:
        self._update_sender.skip_ticks(count)
        self._converging_ticks = max(0, self._converging_ticks - count)

    def greeting(self) -> Heartbeat:
        return Heartbeat(self._incarnation, ())

    def is_reachable(self, domain: str, broker: str) -> bool:
        return broker in self._neighbours

    def substitute_leg(self, publication: Publish, lost: str) -> ForwardingLeg | None:
        return None

    def drain(self) -> RouterOutput:
        """Removes and returns messages and learned subscriptions. Link losses stay 0: only links to neighbours matter
        here, and their loss is known directly."""
        self._send_updates(self._update_sender.flush())
        messages, self._sends = self._sends, []
        learned, self._learned_subscriptions = self._learned_subscriptions, []
        return RouterOutput(messages, (), learned)

    def _send_updates(self, updates: list[Update]) -> None:
        for update in updates:
            self._sends += [(peer, narrowed(update, (peer,))) for peer in update.destinations]

"""The broker, without I/O: inputs and the time go in, effects come out.

This module dispatches inputs and timers. `publications` accepts, serves, forwards and settles publications. `sessions`
has the clients. `links` has the neighbours. `recovery` has all state of restarts. The router decides where messages go.
A driver owns bytes, sockets and clocks.
"""

from __future__ import annotations

from collections import Counter

from broker.core.client import Client, Clients
from broker.core.context import CoreContext
from broker.core.deduplication import SeenPublications
from broker.core.effects import Effect, Failed, ResetLink, Send, SetTimer
from broker.core.eviction import Eviction
from broker.core.inputs import (
    Advertised,
    ClientConnected,
    ClientLeft,
    ClientLost,
    ClientPaused,
    ClientResumed,
    DeliveryAcknowledged,
    FrameReceived,
    Input,
    LeaveRequested,
    PeerDelayed,
    PeerLost,
    PeerUp,
    Persisted,
    Published,
    Restored,
    RightsNarrowed,
    Subscribed,
    TimerFired,
    Unadvertised,
    Unsubscribed,
)
from broker.core.late_subscriptions import MATCH_LATE, LateSubscriptions
from broker.core.links import Links
from broker.core.once_ids import RECORD, OnceIds
from broker.core.pending_writes import PendingWrites
from broker.core.publications import SETTLE, Publications
from broker.core.recovery import Recovery
from broker.core.retention import AdvertisementUse, Retention
from broker.core.sessions import WITHDRAW, Sessions
from broker.core.settings import Settings
from broker.core.stored_arrivals import StoredArrivals
from matching.expressions.model import TRUE
from routing.messages import Credit, EntryId, Message, PublicationId, Publish, Settled
from routing.multicast import forwarded
from routing.router import Router, RouterSettings
from routing.tables import EVERYBODY

TICK = "tick"
REORGANISE = "reorganise"
CATCH_UP = "catch up"


class Broker:
    """One broker. Call `start` once, then `handle` for every input, and perform the effects that they return."""

    def __init__(
        self,
        router: Router,
        me: str,
        incarnation: int,
        settings: Settings | None = None,
        has_lived: bool | None = None,
        expected_neighbours: tuple[str, ...] = (),
    ) -> None:
        """`has_lived`: there were earlier incarnations. None: if this is not the first.

        `expected_neighbours`: those of the configuration. After a restart, recovery gives their links time to come up.
        """
        self.me = me
        self.incarnation = incarnation
        self.router = router
        self.failures: Counter[str] = Counter()
        """Inputs that made the core raise, by kind: defects."""
        self._settings = settings = settings or Settings()
        self._context = context = CoreContext(me, incarnation, settings, router)
        self._effects = context.effects
        self.drops = context.drops
        """Drops by reason."""
        router.settings = RouterSettings(
            settings.ticks_in(settings.detection_time),
            settings.ticks_in(2 * settings.hold_unreachable),
            settles_early=not settings.is_durable,
        )
        self._links = Links(settings)
        self._pending_writes = PendingWrites(context.effects)
        served = SeenPublications(settings.window)
        self._retention = Retention(settings.window, settings.retain_bytes, settings.hold_unreachable)
        self._arrivals = StoredArrivals(context, served)
        self._advertisements = AdvertisementUse(context)
        self._once_ids = OnceIds(context)
        self._eviction = Eviction(context, self._retention, self._advertisements)
        self._late_subscriptions = LateSubscriptions(context, self._retention)
        has_lived = incarnation > 1 if has_lived is None else has_lived
        self._recovery = Recovery(context, self._retention, expected_neighbours, has_lived=has_lived)
        self._sessions = Sessions(
            settings,
            router,
            context.effects,
            self._pending_writes,
            context.drops,
            context.drop,
            self._arrivals,
            self._new_entry,
            lambda: context.now,
            self._advertisements.unadvertise,
        )
        self._publications = Publications(
            context,
            self._links,
            self._sessions,
            self._pending_writes,
            served,
            self._arrivals,
            self._retention,
            self._advertisements,
            self._eviction,
            self._once_ids,
            self._recovery,
            self._late_subscriptions,
        )
        self._next_entry = 0
        self._known_losses = 0
        self._is_catch_up_set = False
        if settings.reorganise_every:
            router.enable_reorganisation(settings.most_links)
        if settings.is_open:
            router.advertise(self._new_entry(), EVERYBODY, TRUE)

    def handle(self, happened: Input, now: int) -> list[Effect]:
        """Handles one input. Returns its effects, in the order in which a driver performs them."""
        if now > self._context.now:
            self._context.now = now
        try:
            self._dispatch(happened)
            self._flush()
        except Exception as error:
            # A defect must not stop the broker: the effects so far are performed, timers included.
            self.failures[type(happened).__name__] += 1
            self._effects.append(Failed(_description(happened), error))
        effects = self._effects[:]
        self._effects.clear()
        return effects

    def start(self, now: int) -> list[Effect]:
        """Runs the first tick. Call it once, after `Restored` if there is a store."""
        effects = self.handle(TimerFired(TICK), now)
        if self._settings.reorganise_every:
            effects.append(SetTimer(REORGANISE, now + self._settings.reorganise_every))
        return effects

    def _dispatch(self, happened: Input) -> None:
        match happened:
            case FrameReceived():
                self._receive_frame(happened)
            case Published():
                self._publications.accept(happened)
            case DeliveryAcknowledged():
                self._sessions.acknowledge(happened, self._context.now)
            case Persisted():
                self._pending_writes.complete(happened.key)
            case TimerFired():
                self._fire(happened.name)
            case PeerUp() | PeerLost():
                self._change_link(happened)
            case PeerDelayed():
                self._links.mark_alive(happened.peer, self._context.now)
            case Subscribed() | Advertised() | Unsubscribed() | Unadvertised():
                self._sessions.handle_request(happened, self._context.now)
            case ClientConnected() | ClientLost() | ClientLeft() | ClientPaused() | ClientResumed() | RightsNarrowed():
                self._sessions.handle_client(happened, self._context.now)
            case Restored():
                self._restore(happened)
            case LeaveRequested():
                self.router.leave()

    def _fire(self, timer: str) -> None:
        if timer == TICK:
            self._tick()
        elif timer == SETTLE:
            self._publications.send_settled()
        elif timer == CATCH_UP:
            self._is_catch_up_set = False
            self.router.apply_link_states()
        elif timer == WITHDRAW:
            self._sessions.continue_withdrawals()
        elif timer == MATCH_LATE:
            self._publications.match_late()
        elif timer == REORGANISE:
            self._context.set_timer(REORGANISE, self._settings.reorganise_every)
            self.router.reorganise()

    def _tick(self) -> None:
        now = self._context.now
        self._context.set_timer(TICK, self._settings.tick)
        for peer in self._links.timed_out(now):
            self._lose_link(peer)
            self._effects.append(ResetLink(peer))
        greeting = self.router.greeting()
        for peer in self._links.peers():
            self._effects.append(Send(peer, greeting))
        self._effects += self._links.tick()
        self.router.tick()
        for message, peer in self._recovery.tick(self._links.is_up):
            self._publications.receive(message, peer)
        self._publications.send_settled()
        self._arrivals.forget_past()
        self._once_ids.forget_past()
        self._sessions.end_expired(now)
        self._publications.retransmit()
        self._eviction.evict()
        self._advertisements.end_unused()
        self._recovery.store_members()
        self._recovery.store_settled()

    def idle_ticks(self, at: int) -> int:
        """Returns how many ticks, the next one at time `at`, would only send heartbeats.

        This holds if the last tick did no more, if no other input comes, and while no neighbour is silent for too long.
        A driver in virtual time may skip these ticks.
        """
        if self._recovery.is_active or not self._links.is_idle or self._sessions.clients.has_ending_sessions:
            return 0
        timely = (self._publications.idle_until() - at) // self._settings.tick + 1
        return max(0, min(timely, self.router.idle_ticks()))

    def skip_ticks(self, count: int, last: int) -> None:
        """Counts ticks without running them: at most `idle_ticks`, the last one at time `last`."""
        self._context.now = max(self._context.now, last)
        self.router.skip_ticks(count)
        self._publications.skip_retransmission(last)

    def _flush(self) -> None:
        """Turns the router's output into effects, and writes the records of dropped deliveries."""
        if self._arrivals.outdated:
            self._arrivals.store_dropped()
        output = self.router.drain()
        for peer, message in output.messages:
            self._send(peer, message)
        self._effects += output.link_requests
        if output.has_pending_link_states and not self._is_catch_up_set:
            self._is_catch_up_set = True
            self._context.set_timer(CATCH_UP, self._settings.catch_up_after)
        if output.learned_subscriptions:
            self._late_subscriptions.add(output.learned_subscriptions)
        if output.link_losses > self._known_losses:
            self._known_losses = output.link_losses
            self._publications.retry_now()

    def _send(self, peer: str, message: Message) -> None:
        if not isinstance(message, Publish):
            if self._links.is_up(peer):
                self._effects.append(Send(peer, message))
            return
        refusal = self._links.offer(peer, message, self._effects)
        if refusal is not None:
            self._context.drop(refusal, message.id, f"to {peer}")

    def _receive_frame(self, frame: FrameReceived) -> None:
        if not self._links.mark_alive(frame.peer, self._context.now):
            return
        if frame.sequence is not None:
            received = self._links.receive_frame(frame.peer, frame.sequence)
            if received is not None:
                self._effects.append(Send(frame.peer, Credit(received)))
        message = self.router.receive(frame.message, frame.peer)
        if isinstance(message, Publish):
            self._publications.arrive(forwarded(message, message.local, message.transit, further=1), frame.peer)
        elif isinstance(message, Settled):
            self._publications.settle(message)
        elif isinstance(message, Credit):
            self._effects += self._links.receive_credit(frame.peer, message.acknowledged_through)

    def _change_link(self, happened: PeerUp | PeerLost) -> None:
        if isinstance(happened, PeerLost):
            self._lose_link(happened.peer)
            if happened.has_left:
                self.router.neighbour_left(happened.peer)
            return
        if happened.remembers:
            self._recovery.begin()
        self._links.add(happened.peer, self._context.now)
        self.router.neighbour_up(happened.peer, happened.greeting, happened.cost)
        self._recovery.store_members()
        self._publications.retransmit()

    def _lose_link(self, peer: str) -> None:
        if self._links.remove(peer):
            self.router.neighbour_lost(peer)
            self._publications.retry_now()

    def _new_entry(self) -> EntryId:
        self._next_entry += 1
        return EntryId(self.me, self.incarnation, self._next_entry)

    def _restore(self, restored: Restored) -> None:
        """Restores sessions first, then deliveries, then accepted publications."""
        self._sessions.restore(restored.records, self._context.now)
        self._once_ids.restore({key: record for key, record in restored.records.items() if key[0] == RECORD})
        settled: set[tuple[int, int]] = set()
        for key, record in restored.records.items():
            if key[0] == "arrival":
                self._publications.restore_arrival(PublicationId(key[1], int(key[2]), int(key[3])), record)
            elif key[0] == "members":
                assert isinstance(record, tuple)
                self._recovery.restore_members(key[1], record)
            elif key[0] == "settled":
                assert isinstance(record, tuple)
                settled = {(incarnation, counter) for incarnation, counter in record}
        self._sessions.sort_restored()
        for key, record in restored.records.items():
            if key[0] == "publication":
                self._publications.restore_publication(record, settled)

    def is_repeated(self, request: Published) -> bool:
        """Whether a client sent the publication again while it was being stored."""
        return self._publications.is_repeated(request)

    @property
    def admits(self) -> bool:
        """Whether the broker has room for a publication and knows which brokers want it: it does not recover. A driver
        may let clients wait rather than refuse."""
        return not self._recovery.is_active and self._publications.overload() is None

    @property
    def is_recovering(self) -> bool:
        """Whether the broker restarted and may not know yet what other brokers want."""
        return self._recovery.is_active

    def client(self, name: str) -> Client | None:
        """The client of that name, or None."""
        return self._sessions.clients.by_name.get(name)

    @property
    def clients(self) -> Clients:
        """The clients that are connected or have a durable session."""
        return self._sessions.clients

    @property
    def links(self) -> Links:
        """The links to neighbours."""
        return self._links

    @property
    def in_custody(self) -> int:
        """The number of publications that destinations have yet to settle."""
        return self._publications.pending

    @property
    def retained(self) -> int:
        """The number of publications that are kept for late subscriptions."""
        return len(self._retention)

    @property
    def postponed(self) -> int:
        """The number of publications that wait for the end of recovery."""
        return len(self._recovery)

    @property
    def unsettled(self) -> int:
        """The number of publications of clients here that are not settled everywhere."""
        return self._publications.unsettled

    @property
    def once_ids(self) -> OnceIds:
        """The once ids of publications that clients here received."""
        return self._once_ids

    def answers_for(self, publication: PublicationId) -> bool:
        """Whether this broker has yet to store the publication, to pass it on, or to receive its settlement."""
        return self._publications.is_responsible_for(publication)

    def awaits(self, publication: PublicationId) -> frozenset[str]:
        """The brokers that have yet to settle the publication with this one."""
        return self._publications.awaited(publication)

    def retains(self, publication: PublicationId) -> bool:
        """Whether this broker would still send the publication to a broker that it learns of late."""
        return self._retention.find(publication) is not None

    def unknown_interest(self, publication: PublicationId) -> list[str]:
        """Brokers that may want a retained publication and could not say so yet."""
        retained = self._retention.find(publication)
        return self._eviction.brokers_of_unknown_interest(retained) if retained is not None else []


def _description(happened: Input) -> str:
    """The kind and the origin of an input that made the core raise, for the log."""
    kind = type(happened).__name__
    if isinstance(happened, FrameReceived):
        return f"{kind}: {type(happened.message).__name__} from {happened.peer}"
    if isinstance(happened, Persisted):
        return f"{kind}: {'/'.join(happened.key)}"
    return f"{kind}: {happened.name}" if isinstance(happened, TimerFired) else kind

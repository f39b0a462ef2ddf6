"""Passes deliveries to the application's subscriptions: each publication once, acknowledged after it is processed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from broker.client.acknowledgements import Acknowledgements
from broker.client.connection import Connection
from broker.client.subscription import Publication, Subscription
from broker.wire.client_frames import Acknowledge, Delivery, Welcome
from routing.messages import PublicationId

log = logging.getLogger("mercast.client")

UNNAMED = "~"
"""The prefix of names that the client makes up."""

ACKNOWLEDGE_WITHIN_S = 0.01
ACKNOWLEDGE_AT_LEAST_EVERY = 128
"""In deliveries. An acknowledgement costs a frame at both ends, but the broker sends only a window without one."""

GENERATION = 16_384
"""The largest number of ids in a generation of `SeenDeliveries`."""


class DeliveryInbox:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        window: int,
        on_unclaimable: Callable[[str], None],
        *,
        is_acknowledged: bool,
        is_durable: bool,
    ) -> None:
        """`on_unclaimable` is called with the name of a subscription at the broker that no application can claim."""
        self._on_unclaimable = on_unclaimable
        self.repeated = 0
        """The number of skipped duplicate deliveries."""
        self._loop = loop
        self._window = window
        self._acknowledge_every = 1
        self._is_acknowledged = is_acknowledged
        self._is_durable = is_durable
        self._seen = SeenDeliveries()
        self._subscriptions: dict[str, Subscription] = {}
        self._unclaimed: dict[str, list[Publication]] = {}
        self._unfinished: dict[PublicationId, list[Publication]] = {}
        """Publications of earlier connections that the application has not finished."""
        self._connection: Connection | None = None
        self._acknowledgements: Acknowledgements | None = None
        self._acknowledge_timer: asyncio.TimerHandle | None = None
        self._full: dict[int, Subscription] = {}

    def add(self, subscription: Subscription, *names: str) -> None:
        """Adds a subscription under the given names, by default under all of its names."""
        for name in names or subscription.expressions:
            self._subscriptions[name] = subscription
            for publication in self._unclaimed.pop(name, ()):
                subscription.put(publication)

    def remove_name(self, subscription: Subscription, name: str) -> None:
        """Removes one name of a subscription."""
        subscription.expressions.pop(name, None)
        self._subscriptions.pop(name, None)

    def remove(self, subscription: Subscription, *, is_kept: bool) -> None:
        """Removes a subscription. With `is_kept` its publications wait for the next subscription of the same name."""
        for name in subscription.expressions:
            if self._subscriptions.get(name) is subscription:
                del self._subscriptions[name]
        if is_kept:
            for publication in subscription.unfinished():
                name = next(each for each in publication.subscriptions if each in subscription.expressions)
                self._keep_unclaimed(name, publication)
        else:
            subscription.discard()
        self.room_available(subscription)

    def __contains__(self, name: object) -> bool:
        return name in self._subscriptions

    def all(self) -> list[Subscription]:
        return list(dict.fromkeys(self._subscriptions.values()))

    def receive(self, delivery: Delivery) -> None:
        if not self._seen.add_if_new(delivery.id):
            self._skip_duplicate(delivery)
            return
        first: Subscription | None = None
        find = self._subscriptions.get
        for name in delivery.subscriptions:
            found = find(name)
            if found is not first:
                if first is not None or found is None:
                    self._receive_for_several(delivery)
                    return
                first = found
        if first is None:
            self._receive_for_several(delivery)
        elif not first.put(Publication(delivery, self._acknowledgements)):
            self._pause_reading_for(first)

    def _receive_for_several(self, delivery: Delivery) -> None:
        found = [self._subscriptions.get(name) for name in delivery.subscriptions]
        subscriptions = list(dict.fromkeys(each for each in found if each is not None))
        unclaimed = [name for name, each in zip(delivery.subscriptions, found, strict=True) if each is None]
        if not self._is_durable or self._acknowledgements is None:
            # It was in flight when the application closed the subscription.
            unclaimed = []
        for name in [name for name in unclaimed if name.startswith(UNNAMED)]:
            # An earlier process of this client made up the name, and ended without withdrawing the subscription.
            unclaimed.remove(name)
            self._on_unclaimable(name)
        parts = len(subscriptions) or bool(unclaimed)
        if self._acknowledgements is not None:
            if parts > 1:
                self._acknowledgements.share(delivery.number, parts)
            elif not parts:
                self._acknowledgements.finish(delivery.number)
        for subscription in subscriptions:
            if not subscription.put(Publication(delivery, self._acknowledgements)):
                self._pause_reading_for(subscription)
        if not subscriptions and unclaimed:
            self._keep_unclaimed(unclaimed[0], Publication(delivery, self._acknowledgements))

    def _keep_unclaimed(self, name: str, publication: Publication) -> None:
        """Keeps a publication for a durable subscription of an earlier process, which this process may still enter."""
        waiting = self._unclaimed.setdefault(name, [])
        if not waiting:
            log.warning("publications wait for subscription %r: subscribe to it by name, or unsubscribe", name)
        waiting.append(publication)

    @property
    def unclaimed(self) -> tuple[str, ...]:
        """Names of subscriptions that have queued publications, and that the application has not entered."""
        return tuple(self._unclaimed)

    def discard_unclaimed(self, name: str) -> None:
        """Drops the publications that wait for an unclaimed subscription, and marks them as finished."""
        for publication in self._unclaimed.pop(name, ()):
            publication.finish()

    def _skip_duplicate(self, delivery: Delivery) -> None:
        self.repeated += 1
        if self._acknowledgements is None:
            return
        still_here = [each for each in self._unfinished.pop(delivery.id, ()) if each.is_unfinished]
        if len(still_here) > 1:
            self._acknowledgements.share(delivery.number, len(still_here))
        for publication in still_here:
            publication.renumber(delivery.number, self._acknowledgements)
        if not still_here:
            self._acknowledgements.finish(delivery.number)

    def connected(self, connection: Connection, welcome: Welcome) -> None:
        self._connection = connection
        self._acknowledge_every = max(1, min(ACKNOWLEDGE_AT_LEAST_EVERY, welcome.window // 4))
        self._unfinished.clear()
        for subscription in self.all():
            for publication in subscription.unfinished():
                self._unfinished.setdefault(publication.id, []).append(publication)
        for publications in self._unclaimed.values():
            for publication in publications:
                self._unfinished.setdefault(publication.id, []).append(publication)
        if self._is_acknowledged:
            self._acknowledgements = Acknowledgements(self._schedule_acknowledgement, self._acknowledge_every)

    def disconnected(self, broker: str) -> None:
        self._seen.keep_latest(broker, self._window)
        self._connection = None
        self._full.clear()

    def _schedule_acknowledgement(self) -> None:
        assert self._acknowledgements is not None
        if self._acknowledgements.pending >= self._acknowledge_every:
            self.acknowledge()
        elif self._acknowledge_timer is None:
            self._acknowledge_timer = self._loop.call_later(ACKNOWLEDGE_WITHIN_S, self.acknowledge)

    def acknowledge(self) -> None:
        """Acknowledges the publications that the application has finished."""
        if self._acknowledge_timer is not None:
            self._acknowledge_timer.cancel()
            self._acknowledge_timer = None
        if self._connection is not None and self._acknowledgements is not None and self._acknowledgements.pending:
            self._connection.send_frame(Acknowledge(self._acknowledgements.mark_acknowledged()))

    def _pause_reading_for(self, subscription: Subscription) -> None:
        """Stops reading while a subscription is full, if there are no acknowledgements.

        With acknowledgements the broker keeps to the window, and no pause is needed.
        """
        if not self._is_acknowledged and self._connection is not None:
            self._full[id(subscription)] = subscription
            self._connection.pause_reading()

    def room_available(self, subscription: Subscription) -> None:
        if self._full.pop(id(subscription), None) is not None and not self._full and self._connection is not None:
            self._connection.resume_reading()


class SeenDeliveries:
    """Recognises duplicate deliveries: a broker may resend publications that it has no acknowledgement for.

    A broker resends only deliveries that were in flight when a connection broke, at most a window of them. After a
    failover another broker may deliver the same publication, for as long as brokers keep it for this client. Of those,
    the latest tens of thousands are recognised. The ids are in two generations. A full younger generation replaces the
    older one.
    """

    __slots__ = ("_generation", "_kept", "_older", "_younger")

    def __init__(self, generation: int = GENERATION) -> None:
        self._generation = generation
        self._younger: dict[PublicationId, None] = {}
        self._older: dict[PublicationId, None] = {}
        self._kept: dict[str, tuple[frozenset[PublicationId], frozenset[PublicationId]]] = {}

    def add_if_new(self, publication: PublicationId) -> bool:
        """Adds the id. Returns False if it was already there."""
        younger = self._younger
        if publication in younger or publication in self._older or self._is_kept(publication):
            return False
        younger[publication] = None
        if len(younger) >= self._generation:
            self._older, self._younger = younger, {}
        return True

    def keep_latest(self, broker: str, count: int) -> None:
        """Keeps the latest ids after a connection to `broker` broke, however long the client uses other brokers."""
        latest = frozenset((*self._older, *self._younger)[-count:])
        # Duplicates on this connection are not among the latest, so those of the previous connection are kept too.
        previous, _ = self._kept.get(broker, (frozenset(), frozenset()))
        self._kept[broker] = (latest, previous)

    def _is_kept(self, publication: PublicationId) -> bool:
        for latest, previous in self._kept.values():
            if publication in latest or publication in previous:
                return True
        return False

    def __len__(self) -> int:
        return len(self._younger) + len(self._older)

"""From a broker's deliveries to the application's subscriptions: each publication once, acknowledged when taken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from broker.client.acknowledgements import Acknowledgements
from broker.client.connection import Connection
from broker.client.deduplication import SeenDeliveries
from broker.client.subscription import Publication, Subscription
from broker.wire.client_frames import Acknowledge, Delivery, Welcome
from routing.messages import PublicationId

log = logging.getLogger("mercast.client")

UNNAMED = "~"
"""Names that the client made up begin with this."""

TELL_WITHIN_S = 0.01
TELL_AT_LEAST_EVERY = 128
"""Deliveries. Telling costs a frame at either end, and a broker has a window of deliveries for each client."""


class DeliveryInbox:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        window: int,
        on_stray: Callable[[str], None],
        *,
        is_acknowledged: bool,
        is_durable: bool,
    ) -> None:
        """`on_stray` is told of a subscription that the broker has and nobody here will ever ask for."""
        self._on_stray = on_stray
        self.repeated = 0
        """Deliveries that came again and were left out."""
        self._loop = loop
        self._window = window
        self._tell_every = 1
        self._is_acknowledged = is_acknowledged
        self._is_durable = is_durable
        self._seen = SeenDeliveries()
        self._subscriptions: dict[str, Subscription] = {}
        self._unclaimed: dict[str, list[Publication]] = {}
        self._waiting_before: dict[PublicationId, list[Publication]] = {}
        """What came on earlier connections and the application is not done with."""
        self._connection: Connection | None = None
        self._acknowledgements: Acknowledgements | None = None
        self._teller: asyncio.TimerHandle | None = None
        self._full: dict[int, Subscription] = {}

    def add(self, subscription: Subscription, *names: str) -> None:
        """All of its names, or those that are given."""
        for name in names or subscription.expressions:
            self._subscriptions[name] = subscription
            for publication in self._unclaimed.pop(name, ()):
                subscription.put(publication)

    def drop(self, subscription: Subscription, name: str) -> None:
        """A stream loses one of its names."""
        subscription.expressions.pop(name, None)
        self._subscriptions.pop(name, None)

    def remove(self, subscription: Subscription, *, is_kept: bool) -> None:
        """What waits in a kept one goes on waiting, for the next who subscribes by its name."""
        for name in subscription.expressions:
            if self._subscriptions.get(name) is subscription:
                del self._subscriptions[name]
        if is_kept:
            for publication in subscription.unfinished():
                name = next(each for each in publication.subscriptions if each in subscription.expressions)
                self._hold(name, publication)
        else:
            subscription.discard()
        self.has_room_again(subscription)

    def __contains__(self, name: object) -> bool:
        return name in self._subscriptions

    def all(self) -> list[Subscription]:
        return list(dict.fromkeys(self._subscriptions.values()))

    def take(self, delivery: Delivery) -> None:
        if not self._seen.is_new(delivery.id):
            self._came_again(delivery)
            return
        first: Subscription | None = None
        find = self._subscriptions.get
        for name in delivery.subscriptions:
            found = find(name)
            if found is not first:
                if first is not None or found is None:
                    self._take_for_several(delivery)
                    return
                first = found
        if first is None:
            self._take_for_several(delivery)
        elif not first.put(Publication(delivery, self._acknowledgements)):
            self._filled(first)

    def _take_for_several(self, delivery: Delivery) -> None:
        found = [self._subscriptions.get(name) for name in delivery.subscriptions]
        subscriptions = list(dict.fromkeys(each for each in found if each is not None))
        unclaimed = [name for name, each in zip(delivery.subscriptions, found, strict=True) if each is None]
        if not self._is_durable or self._acknowledgements is None:
            # On its way when the application left the subscription.
            unclaimed = []
        for name in [name for name in unclaimed if name.startswith(UNNAMED)]:
            # Of an earlier life of this client, which did not get to say that nobody can ask for it again.
            unclaimed.remove(name)
            self._on_stray(name)
        parts = len(subscriptions) or bool(unclaimed)
        if self._acknowledgements is not None:
            if parts > 1:
                self._acknowledgements.share(delivery.number, parts)
            elif not parts:
                self._acknowledgements.done(delivery.number)
        for subscription in subscriptions:
            if not subscription.put(Publication(delivery, self._acknowledgements)):
                self._filled(subscription)
        if not subscriptions and unclaimed:
            self._hold(unclaimed[0], Publication(delivery, self._acknowledgements))

    def _hold(self, name: str, publication: Publication) -> None:
        """For a subscription that the broker knows from an earlier life of a durable client: it may come yet."""
        waiting = self._unclaimed.setdefault(name, [])
        if not waiting:
            log.warning("publications wait for subscription %r: subscribe to it by name, or unsubscribe", name)
        waiting.append(publication)

    @property
    def unclaimed(self) -> tuple[str, ...]:
        """Names of subscriptions for which publications wait, and nobody here has subscribed by them."""
        return tuple(self._unclaimed)

    def unclaim(self, name: str) -> None:
        for publication in self._unclaimed.pop(name, ()):
            publication.finish()

    def _came_again(self, delivery: Delivery) -> None:
        self.repeated += 1
        if self._acknowledgements is None:
            return
        still_here = [each for each in self._waiting_before.pop(delivery.id, ()) if each.is_unfinished]
        if len(still_here) > 1:
            self._acknowledgements.share(delivery.number, len(still_here))
        for publication in still_here:
            publication.came_again(delivery.number, self._acknowledgements)
        if not still_here:
            self._acknowledgements.done(delivery.number)

    def connected(self, connection: Connection, welcome: Welcome) -> None:
        self._connection = connection
        self._tell_every = max(1, min(TELL_AT_LEAST_EVERY, welcome.window // 4))
        self._waiting_before.clear()
        for subscription in self.all():
            for publication in subscription.unfinished():
                self._waiting_before.setdefault(publication.id, []).append(publication)
        for publications in self._unclaimed.values():
            for publication in publications:
                self._waiting_before.setdefault(publication.id, []).append(publication)
        if self._is_acknowledged:
            self._acknowledgements = Acknowledgements(self._has_news, self._tell_every)

    def disconnected(self, broker: str) -> None:
        self._seen.keep_latest(broker, self._window)
        self._connection = None
        self._full.clear()

    def _has_news(self) -> None:
        assert self._acknowledgements is not None
        if self._acknowledgements.untold >= self._tell_every:
            self.tell()
        elif self._teller is None:
            self._teller = self._loop.call_later(TELL_WITHIN_S, self.tell)

    def tell(self) -> None:
        """Acknowledges what the application is done with."""
        if self._teller is not None:
            self._teller.cancel()
            self._teller = None
        if self._connection is not None and self._acknowledgements is not None and self._acknowledgements.untold:
            self._connection.send_frame(Acknowledge(self._acknowledgements.tell()))

    def _filled(self, subscription: Subscription) -> None:
        """Where brokers keep to the window this happens at its end alone; otherwise the network has to hold them."""
        if not self._is_acknowledged and self._connection is not None:
            self._full[id(subscription)] = subscription
            self._connection.pause_reading()

    def has_room_again(self, subscription: Subscription) -> None:
        if self._full.pop(id(subscription), None) is not None and not self._full and self._connection is not None:
            self._connection.resume_reading()

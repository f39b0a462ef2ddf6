"""Deliveries to a broker's clients: in order, bounded, and for reliable sessions until they are acknowledged.

A slow client never stalls another: what it does not take waits here up to a limit. Beyond it the oldest delivery that
was not sent goes, and with `disconnects_slow` the client's connection as well. Both are counted.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.core.client import Client
from broker.core.effects import Deliver, Disconnect, Effect
from broker.core.settings import Settings
from routing.messages import PublicationId

SLOW = "slow subscriber"
AWAY = "too many deliveries waiting"
EXPIRED = "expired"
FORBIDDEN = "forbidden"


class DeliveryQueues:
    def __init__(
        self,
        settings: Settings,
        drop: Callable[[str, PublicationId, str], None],
        done: Callable[[Deliver], None],
    ) -> None:
        """`drop` counts what is lost, by reason; `done` hears of each delivery that need not be kept any more."""
        self._settings = settings
        self._drop = drop
        self._done = done

    def offer(self, client: Client, delivery: Deliver, now: int, effects: list[Effect]) -> None:
        """Sends the delivery, or lets it wait for its turn."""
        if client.waiting or not client.can_send or client.undelivered_bytes >= self._settings.outbox_bytes:
            self._wait(client, delivery, now, effects)
        else:
            self._send(client, delivery, effects)

    def _send(self, client: Client, delivery: Deliver, effects: list[Effect]) -> None:
        client.mark_sent(delivery)
        effects.append(delivery)
        if delivery.number and not client.is_reliable:
            # Kept for an earlier session of the client: this one acknowledges nothing.
            self._done(delivery)

    def _wait(self, client: Client, delivery: Deliver, now: int, effects: list[Effect]) -> None:
        while self._is_full(client, delivery):
            if client.is_connected and self._settings.disconnects_slow:
                effects.append(Disconnect(client.name, SLOW))
                client.disconnect(now)
            reason = SLOW if client.is_connected else AWAY
            if not client.waiting:
                self._drop(reason, delivery.publication, f"for {client.name}")
                self._done(delivery)
                return
            self._discard(client, client.pop_waiting(), reason)
        client.enqueue(delivery)

    def _is_full(self, client: Client, delivery: Deliver) -> bool:
        size = len(delivery.attributes) + len(delivery.payload)
        return (
            len(client.waiting) + len(client.in_flight) >= self._settings.deliveries_for_absent
            or client.undelivered_bytes + size > self._settings.outbox_bytes
        )

    def _discard(self, client: Client, delivery: Deliver, reason: str) -> None:
        self._drop(reason, delivery.publication, f"for {client.name}")
        self._done(delivery)

    def revoke(self, client: Client, publications: frozenset[PublicationId]) -> None:
        """Those that wait do not come, and those on their way do not come again."""
        for held in (client.in_flight, client.waiting):
            for _ in range(len(held)):
                delivery = held.popleft()
                if delivery.publication in publications:
                    client.undelivered_bytes -= len(delivery.attributes) + len(delivery.payload)
                    self._discard(client, delivery, FORBIDDEN)
                else:
                    held.append(delivery)

    def send_waiting(self, client: Client, now: int, effects: list[Effect]) -> None:
        """Sends of what waits as much as the client takes at present."""
        while client.waiting and client.can_send:
            delivery = client.pop_waiting()
            if delivery.expires is not None and delivery.expires <= now:
                self._discard(client, delivery, EXPIRED)
            else:
                self._send(client, delivery, effects)

    def acknowledge(self, client: Client, through: int, now: int, effects: list[Effect]) -> None:
        taken = client.acknowledge(through)
        if self._settings.is_durable:
            for delivery in taken:
                self._done(delivery)
        if client.waiting:
            self.send_waiting(client, now, effects)

"""Queues of deliveries to a broker's clients: ordered, bounded, and for reliable sessions kept until acknowledged.

A slow client never delays another: its deliveries wait here, up to a limit. Beyond the limit the broker drops the
oldest waiting delivery. With `disconnects_slow` it also disconnects the client. Both are counted.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.core.client import Client
from broker.core.effects import Deliver, Disconnect, Effect
from broker.core.settings import Settings
from broker.core.stored_arrivals import StoredArrivals
from routing.messages import PublicationId

SLOW = "slow subscriber"
TOO_MANY_WAITING = "too many deliveries waiting"
EXPIRED = "expired"
FORBIDDEN = "forbidden"


class DeliveryQueues:
    def __init__(
        self,
        settings: Settings,
        drop: Callable[[str, PublicationId, str], None],
        arrivals: StoredArrivals,
    ) -> None:
        """`drop` counts a lost delivery by its reason; `arrivals` has the records of deliveries."""
        self._settings = settings
        self._drop = drop
        self._arrivals = arrivals

    def offer(self, client: Client, delivery: Deliver, now: int, effects: list[Effect]) -> None:
        """Sends the delivery, or queues it."""
        if client.waiting or not _can_send(client) or client.undelivered_bytes >= self._settings.outbox_bytes:
            self._enqueue(client, delivery, now, effects)
        else:
            self._send(client, delivery, effects)

    def _send(self, client: Client, delivery: Deliver, effects: list[Effect]) -> None:
        effects.append(delivery)
        if client.is_reliable:
            client.in_flight.append(delivery)
            client.undelivered_bytes += len(delivery.attributes) + len(delivery.payload)
        elif delivery.number:
            # It was queued for an earlier, reliable session of the client. This session acknowledges nothing.
            self._arrivals.forget_delivery(delivery)

    def restore(self, client: Client, delivery: Deliver) -> None:
        """Queues a delivery from the store."""
        _append_waiting(client, delivery)

    def _enqueue(self, client: Client, delivery: Deliver, now: int, effects: list[Effect]) -> None:
        while self._is_full(client, delivery):
            if client.is_connected and self._settings.disconnects_slow:
                effects.append(Disconnect(client.name, SLOW))
                client.disconnect(now)
            reason = SLOW if client.is_connected else TOO_MANY_WAITING
            if not client.waiting:
                self._discard(client, delivery, reason)
                return
            self._discard(client, _pop_waiting(client), reason)
        _append_waiting(client, delivery)

    def _is_full(self, client: Client, delivery: Deliver) -> bool:
        size = len(delivery.attributes) + len(delivery.payload)
        return (
            len(client.waiting) + len(client.in_flight) >= self._settings.deliveries_for_absent
            or client.undelivered_bytes + size > self._settings.outbox_bytes
        )

    def _discard(self, client: Client, delivery: Deliver, reason: str) -> None:
        self._drop(reason, delivery.publication, f"for {client.name}")
        self._arrivals.drop_delivery(delivery)

    def revoke(self, client: Client, publications: frozenset[PublicationId]) -> None:
        """Drops the client's deliveries of these publications. Those in flight are not sent again."""
        for queue in (client.in_flight, client.waiting):
            for _ in range(len(queue)):
                delivery = queue.popleft()
                if delivery.publication in publications:
                    client.undelivered_bytes -= len(delivery.attributes) + len(delivery.payload)
                    self._discard(client, delivery, FORBIDDEN)
                else:
                    queue.append(delivery)

    def send_waiting(self, client: Client, now: int, effects: list[Effect]) -> None:
        """Sends waiting deliveries while the client can receive more. Drops expired ones."""
        while client.waiting and _can_send(client):
            delivery = _pop_waiting(client)
            if delivery.expires is not None and delivery.expires <= now:
                self._discard(client, delivery, EXPIRED)
            else:
                self._send(client, delivery, effects)

    def acknowledge(self, client: Client, through: int, now: int, effects: list[Effect]) -> None:
        """Ends the deliveries in flight up to and including this number, and sends waiting ones."""
        size = 0
        in_flight = client.in_flight
        while in_flight and in_flight[0].number <= through:
            delivery = in_flight.popleft()
            size += len(delivery.attributes) + len(delivery.payload)
            if self._settings.is_durable:
                self._arrivals.forget_delivery(delivery)
        client.undelivered_bytes -= size
        if client.waiting:
            self.send_waiting(client, now, effects)


def _can_send(client: Client) -> bool:
    return client.is_connected and client.has_room and len(client.in_flight) < client.window and not client.is_held


def _append_waiting(client: Client, delivery: Deliver) -> None:
    client.waiting.append(delivery)
    client.undelivered_bytes += len(delivery.attributes) + len(delivery.payload)


def _pop_waiting(client: Client) -> Deliver:
    delivery = client.waiting.popleft()
    client.undelivered_bytes -= len(delivery.attributes) + len(delivery.payload)
    return delivery

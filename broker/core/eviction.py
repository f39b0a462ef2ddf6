"""The end of retention: publications leave it when they are too old or too many.

A publication is dropped by name when it leaves and a broker that may want it could not say so in time.
"""

from __future__ import annotations

from broker.core.context import CoreContext
from broker.core.effects import Forget
from broker.core.retention import AdvertisementUse, RetainedPublication, Retention
from routing.router import UnknownInterest

MOST_NAMED = 5
"""Brokers in the text of a drop."""


class Eviction:
    def __init__(self, context: CoreContext, retention: Retention, advertisements: AdvertisementUse) -> None:
        self._context = context
        self._settings = context.settings
        self._router = context.router
        self._retention = retention
        self._advertisements = advertisements

    def evict(self) -> None:
        """Removes the publications that retention has no more time or room for, and drops those of unknown interest."""
        known: dict[tuple[object, ...], UnknownInterest] = {}
        for retained in self._retention.evict(self._context.now, is_settling=self._router.is_converging):
            message = retained.message
            key = (retained.peer, message.domain, message.crossed, message.tree)
            if key not in known:
                known[key] = self._router.unknown_interest(message, retained.peer)
            brokers = self._brokers_of_unknown_interest(retained, known[key]) if any(known[key]) else []
            if brokers:
                more = f" and {len(brokers) - MOST_NAMED} more" if len(brokers) > MOST_NAMED else ""
                self._context.drop("unknown interest", retained.id, f"of {', '.join(brokers[:MOST_NAMED])}{more}")
            if retained.peer is None:
                if self._settings.is_durable:
                    self._context.effects.append(Forget(("publication", *map(str, retained.id))))
                self._advertisements.release(retained.advertisement)

    def brokers_of_unknown_interest(self, retained: RetainedPublication) -> list[str]:
        """Brokers that may want the publication, were not sent it, and could not say whether they want it."""
        return self._brokers_of_unknown_interest(
            retained, self._router.unknown_interest(retained.message, retained.peer)
        )

    def _brokers_of_unknown_interest(self, retained: RetainedPublication, unknown: UnknownInterest) -> list[str]:
        passed_to = {broker: incarnation for (_, broker), incarnation in retained.passed.items()}
        unreachable = {**unknown.own, **unknown.behind}

        def is_responsible(broker: str) -> bool:
            """Whether the broker received the duty to pass the publication on, in its present incarnation. Then it
            looks after the brokers behind it. In durable mode this is not enough, because the broker may still
            crash."""
            if self._settings.is_durable or broker in unreachable:
                return False
            return passed_to.get(broker) == self._router.incarnation_of(broker)

        # A subscription that was confirmed before a broker became unreachable was announced in time. A broker that
        # became unreachable soon after it received the publication may not have known yet which brokers want it.
        age = (self._context.now - retained.arrived_at - self._settings.detection_time) // self._settings.tick
        return sorted(
            {
                *(broker for broker, ticks in unknown.own.items() if ticks >= age and broker not in retained.served),
                *(
                    broker
                    for broker, ticks in unknown.behind.items()
                    if ticks >= age and broker not in retained.given_up
                ),
                *(broker for broker, ticks in unknown.gaps.items() if ticks >= age and not is_responsible(broker)),
            }
        )

"""Records the steps of traced publications at this broker. Clients query them with `TraceQuery`."""

from __future__ import annotations

import time
from collections.abc import Callable

from broker.core.effects import Accept, Deliver, DroppedRow, Effect, MatchedRow, Record, Send
from broker.wire.client_frames import TraceStep
from routing.messages import PublicationId, Publish
from routing.multicast import destinations_of

MAX_PUBLICATIONS = 64
MAX_STEPS = 256
RETAINED_NS = 60_000_000_000


class PublicationTracer:
    """The steps of the latest traced publications, oldest first. Costs nothing while no publication is traced."""

    def __init__(self, address_of: Callable[[str], str]) -> None:
        self._address_of = address_of
        self.steps: dict[PublicationId, list[TraceStep]] = {}
        """By publication. Empty while no publication is traced."""

    def steps_of(self, publication: PublicationId) -> tuple[TraceStep, ...]:
        return tuple(self.steps.get(publication, ()))

    def received(self, message: Publish, peer: str) -> None:
        if message.is_traced:
            self._start(message.id)
            text = f"for {', '.join(destinations_of(message))}"
            self._add(message.id, "received", text, peer, self._address_of(peer))

    def accepted(self, effect: Accept) -> None:
        if effect.publication is not None:
            self._start(effect.publication)
            self._add(effect.publication, "accepted", f"published by {effect.client}", effect.client)

    def _start(self, publication: PublicationId) -> None:
        if publication not in self.steps:
            if len(self.steps) >= MAX_PUBLICATIONS:
                del self.steps[next(iter(self.steps))]
            self.steps[publication] = []

    def remove_expired(self) -> None:
        now = time.time_ns()
        for publication in [id for id, steps in self.steps.items() if steps and now - steps[-1].at_ns > RETAINED_NS]:
            del self.steps[publication]

    def add_effects(self, effects: list[Effect]) -> None:
        """Adds a step for each effect of a traced publication."""
        for effect in effects:
            match effect:
                case Send(peer, Publish() as message) if message.id in self.steps:
                    self._add(message.id, "sent", _destinations(message), peer, self._address_of(peer))
                case Deliver() if effect.publication in self.steps:
                    text = f"for {', '.join(effect.subscriptions)}"
                    self._add(effect.publication, "delivered", text, effect.client)
                case Record(MatchedRow(publication, work)) if publication in self.steps:
                    text = f"{work.table}: {work.matched} of {work.stored} match, {work.candidates} candidates"
                    self._add(publication, "matched", text)
                case Record(DroppedRow(reason, publication, detail)) if publication in self.steps:
                    assert publication is not None
                    self._add(publication, "dropped", f"{reason}, {detail}")

    def _add(self, publication: PublicationId, kind: str, text: str, peer: str = "", address: str = "") -> None:
        steps = self.steps[publication]
        if len(steps) < MAX_STEPS:
            steps.append(TraceStep(time.time_ns(), kind, text, peer, address))


def _destinations(message: Publish) -> str:
    parts = []
    if message.local:
        parts.append(f"clients at {', '.join(message.local)}")
    if message.transit:
        parts.append(f"others behind {', '.join(message.transit)}")
    return f"for {' and '.join(parts)}"

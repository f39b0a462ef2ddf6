"""The path of one publication through a run, read from its trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from broker.trace.files import iter_rows
from broker.trace.schema import DeliveryRow, DropRow, ExpectationRow, HopRow, MatchRow, PublicationRow, TraceError
from experiments.simulate.drop_reasons import TERMINAL_DROPS


@dataclass(frozen=True, slots=True)
class PublicationTrace:
    published: PublicationRow
    hops: tuple[HopRow, ...]
    matches: tuple[MatchRow, ...]
    deliveries: tuple[DeliveryRow, ...]
    expectations: tuple[ExpectationRow, ...]
    drops: tuple[DropRow, ...]

    @classmethod
    def read(cls, run: Path, publication: str) -> PublicationTrace:
        published = next((row for row in iter_rows(run, PublicationRow) if row.publication == publication), None)
        if published is None:
            first = next((row.publication for row in iter_rows(run, PublicationRow)), None)
            hint = f"; the first is {first}" if first is not None else "; it has none"
            raise TraceError(f"{run} has no publication {publication}{hint}")
        return cls(
            published,
            tuple(row for row in iter_rows(run, HopRow) if row.message == publication),
            tuple(row for row in iter_rows(run, MatchRow) if row.message == publication),
            tuple(row for row in iter_rows(run, DeliveryRow) if row.publication == publication),
            tuple(row for row in iter_rows(run, ExpectationRow) if row.publication == publication),
            tuple(row for row in iter_rows(run, DropRow) if row.publication == publication),
        )

    def lines(self) -> Iterator[str]:
        """The steps of the publication, by time since it was published. At equal times, causes come first."""
        start = self.published.published_s
        depth: dict[str, int] = {}
        for hop in self.hops:
            depth[hop.receiver] = min(hop.hop, depth.get(hop.receiver, hop.hop))
        depth[self.published.broker] = 0
        steps: list[tuple[tuple[float, int, int], str]] = []

        def add(at: float, hops: int, order: int, text: str) -> None:
            steps.append(((at, hops, order), text))

        add(start, 0, 0, f"{self.published.client} publishes at {self.published.broker}")
        for hop in self.hops:
            text = f"{hop.sender} -> {hop.receiver}, for {hop.destinations} broker{'s' * (hop.destinations != 1)}"
            add(hop.received_s, hop.hop, 1, text)
        for match in self.matches:
            text = f"{match.broker} asks its {match.table}: {match.matched} of {match.stored} match"
            add(match.started_s, depth.get(match.broker, 0), 2, f"{text}, {match.cost_s * 1e3:.2f} ms of work")
        for delivery in self.deliveries:
            add(delivery.delivered_s, delivery.hops, 3, f"{delivery.broker} delivers to {delivery.client}")
        for drop in self.drops:
            text = f"{drop.broker} drops it: {drop.reason} ({drop.detail})"
            add(drop.at_s, depth.get(drop.broker, 0), 4, text)
        for (at, _, _), text in sorted(steps, key=lambda each: each[0]):
            yield f"{(at - start) * 1e3:10.3f} ms  {text}"

    def verdict(self, client: str) -> str:
        """The reason why a client received the publication, or did not."""
        delivery = next((row for row in self.deliveries if row.client == client), None)
        expectation = next((row for row in self.expectations if row.client == client), None)
        if delivery is not None:
            took = (delivery.delivered_s - delivery.published_s) * 1e3
            return f"{client} got it after {took:.3f} ms and {delivery.hops} hops, at {delivery.broker}"
        if expectation is None:
            return f"{client} did not get it: none of its subscriptions matched when it was accepted"
        if not expectation.owed:
            reasons = sorted({row.reason for row in self.drops if row.reason in TERMINAL_DROPS})
            why = f"it was dropped ({', '.join(reasons)})" if reasons else "the client left, or a broker was killed"
            return f"{client} did not get it and was not owed it: its subscription matches, but {why}"
        return f"{client} did not get it although it was owed; {len(self.drops)} drops are recorded"


def has_client(run: Path, client: str) -> bool:
    """Whether a client of that name published, received or expected a publication. The trace names no other clients."""
    return (
        any(row.client == client for row in iter_rows(run, ExpectationRow))
        or any(row.client == client for row in iter_rows(run, DeliveryRow))
        or any(row.client == client for row in iter_rows(run, PublicationRow))
    )

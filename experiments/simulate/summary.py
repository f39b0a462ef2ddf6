"""The summary of a run, computed from its rows while they are recorded."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from broker.percentile import percentile
from broker.trace.schema import (
    BrokerRow,
    DeliveryRow,
    DropRow,
    ExpectationRow,
    HopRow,
    MatchRow,
    PublicationRow,
    Row,
    Trace,
)
from experiments.simulate.drop_reasons import TERMINAL_DROPS
from experiments.simulate.oracle import Fate


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The numbers of a run. `summary.json` has these fields as keys."""

    scenario: str
    protocol: str
    seed: int
    matcher: str
    published: int
    refused: int
    expected: int
    """Pairs of publication and client with an active matching subscription when the publication was accepted."""
    withdrawn: int
    """Expected pairs whose client left before the publication arrived."""
    lost_with_broker: int
    """Expected pairs whose subscriber's broker was killed, or the only broker responsible for the publication."""
    dropped: int
    """Expected pairs whose publication is named by a drop that ends it."""
    owed: int
    """The other expected pairs."""
    is_weak: bool
    """Whether fewer than half of the expected pairs were owed: such a run says little about delivery."""
    delivered: int
    """Distinct pairs that were delivered, expected or not."""
    missed: int
    """Pairs that were owed and not delivered."""
    duplicated: int
    unexpected: int
    """Delivered pairs whose client had no active matching subscription when the publication was accepted."""
    held: int
    """Publications that brokers are still responsible for at the end of the run."""
    unsettled: int
    """Publications of brokers' own clients that are not settled everywhere at the end of the run."""
    latency_ms_mean: float
    latency_ms_p50: float
    latency_ms_p95: float
    latency_ms_p99: float
    hops_mean: float
    destinations_mean: float
    """Destinations in a message of a publication, over all hops."""
    destinations_at_source_mean: float
    matches_mean: float
    """The number of brokers that match a publication."""
    stored_subscriptions_mean: float
    """Subscriptions stored at a broker: those of its own clients and of other brokers."""
    routing_table_bytes_max: int
    duplicate_advertisements: int
    busy_share_max: float
    """Share of the publishing time that the busiest broker works, over all its cores."""
    messages: Mapping[str, int]
    drops: Mapping[str, int]
    digest: str

    @property
    def failure(self) -> str | None:
        """Text that counts the missed and the repeated deliveries. None if there are none."""
        if not self.missed and not self.duplicated:
            return None
        return f"{self.protocol} missed {self.missed} and repeated {self.duplicated} of {self.owed}"


class SummaryBuilder:
    """A trace that passes rows to another trace and computes the summary from them.

    Data of a publication is kept until the publication is evaluated. So memory grows with the run only by the
    latencies, which take eight bytes each.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._published = 0
        self._latencies = array("d")
        self._clients: dict[str, Counter[str]] = {}
        """Deliveries of each publication, by client."""
        self._matching: dict[str, set[str]] = {}
        """The brokers that matched a publication."""
        self._dropped: set[str] = set()
        """Publications that are named by a drop that ends them."""
        self._pairs: Counter[str] = Counter()
        self._fates: Counter[Fate] = Counter()
        self._delivery_hops = 0
        self._destinations = [0, 0]
        self._source_destinations = [0, 0]
        self._drops: Counter[str] = Counter()
        self._brokers: dict[str, BrokerRow] = {}

    def record(self, row: Row) -> None:
        self._trace.record(row)
        if isinstance(row, HopRow):
            if row.kind == "publish":
                _add(self._destinations, row.destinations)
                if row.hop == 1:
                    _add(self._source_destinations, row.destinations)
        elif isinstance(row, MatchRow):
            self._matching.setdefault(row.message, set()).add(row.broker)
        elif isinstance(row, DeliveryRow):
            self._clients.setdefault(row.publication, Counter())[row.client] += 1
            self._latencies.append(row.delivered_s - row.published_s)
            self._delivery_hops += row.hops
        elif isinstance(row, PublicationRow):
            self._published += 1
        elif isinstance(row, DropRow):
            self._drops[row.reason] += 1
            if row.publication is not None and row.reason in TERMINAL_DROPS:
                self._dropped.add(row.publication)
        elif isinstance(row, BrokerRow):
            self._brokers[row.broker] = row

    def receivers(self, publication: str) -> Collection[str]:
        """The clients that received a publication. For publications that were not evaluated."""
        return self._clients.get(publication, ())

    def is_dropped(self, publication: str) -> bool:
        """Whether a drop that ends the publication names it. For publications that were not evaluated."""
        return publication in self._dropped

    def evaluate(self, publication: str, fates: Mapping[str, Fate]) -> None:
        """Records the fate of each expected pair of the publication, by client, and removes the publication."""
        delivered = self._clients.pop(publication, Counter())
        self._dropped.discard(publication)
        for client, fate in fates.items():
            self.record(ExpectationRow(publication, client, expected=True, owed=fate.is_owed))
            self._fates[fate] += 1
        self._pairs["delivered"] += len(delivered)
        self._pairs["duplicated"] += delivered.total() - len(delivered)
        self._pairs["unexpected"] += len(delivered.keys() - fates.keys())
        self._pairs["matching brokers"] += len(self._matching.pop(publication, ()))

    def summary(
        self,
        *,
        scenario: str,
        protocol: str,
        seed: int,
        matcher: str,
        refused: int,
        held: int,
        unsettled: int,
        duplicate_advertisements: int,
        busy_share_max: float,
        messages: Mapping[str, int],
        digest: str,
    ) -> RunSummary:
        """The summary. Call it after all publications were evaluated."""
        for publication in [*self._clients, *self._matching]:
            # A delivery that arrived after its publication was evaluated, or of a publication that was never accepted.
            self.evaluate(publication, {})
        expected = self._fates.total()
        owed = sum(count for fate, count in self._fates.items() if fate.is_owed)
        latencies = sorted(self._latencies)
        stored = [row.local_subscriptions + row.remote_subscriptions for row in self._brokers.values()]
        return RunSummary(
            scenario=scenario,
            protocol=protocol,
            seed=seed,
            matcher=matcher,
            published=self._published,
            refused=refused,
            expected=expected,
            withdrawn=self._fates[Fate.WITHDRAWN],
            lost_with_broker=self._fates[Fate.LOST],
            dropped=self._fates[Fate.DROPPED],
            owed=owed,
            is_weak=2 * owed < expected,
            delivered=self._pairs["delivered"],
            missed=self._fates[Fate.MISSED],
            duplicated=self._pairs["duplicated"],
            unexpected=self._pairs["unexpected"],
            held=held,
            unsettled=unsettled,
            latency_ms_mean=_mean(sum(latencies), len(latencies)) * 1e3,
            latency_ms_p50=percentile(latencies, 0.50) * 1e3,
            latency_ms_p95=percentile(latencies, 0.95) * 1e3,
            latency_ms_p99=percentile(latencies, 0.99) * 1e3,
            hops_mean=_mean(self._delivery_hops, len(latencies)),
            destinations_mean=_mean(*self._destinations),
            destinations_at_source_mean=_mean(*self._source_destinations),
            matches_mean=_mean(self._pairs["matching brokers"], self._published),
            stored_subscriptions_mean=_mean(sum(stored), len(stored)),
            routing_table_bytes_max=max((row.routing_table_bytes for row in self._brokers.values()), default=0),
            duplicate_advertisements=duplicate_advertisements,
            busy_share_max=busy_share_max,
            messages=dict(sorted(messages.items())),
            drops=dict(sorted(self._drops.items())),
            digest=digest,
        )


def _add(total: list[int], value: int) -> None:
    total[0] += value
    total[1] += 1


def _mean(total: float, count: int) -> float:
    return total / count if count else 0.0

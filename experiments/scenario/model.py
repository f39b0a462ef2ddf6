"""A scenario as frozen values: everything that a simulation needs to be repeated.

Each section of a scenario file is a struct, and each of its keys a field with its type, limits and default. Times are
seconds of virtual time from the start of the run, unless a name says otherwise. Publishing starts at `run.settle_s`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta
from msgspec.structs import asdict

from experiments.workloads.be_gen import BeGenParameters
from experiments.workloads.stock_quotes import StockQuoteParameters
from routing.registry import info
from topologies.broker_and_link import Metric
from topologies.files.typed_tables import Count, Number, Positive, Share, Table, Whole

Ends: TypeAlias = tuple[str, str]
ModelValue: TypeAlias = int | float | str | tuple[int | float, ...]


class Clusters(Table, frozen=True, kw_only=True):
    """How MERC's clusters are formed. Exactly one key is given."""

    by: Literal["domain"] | None = None
    """The domains of a transit-stub overlay or of a hierarchy."""
    size: Count | None = None
    """The approximate number of brokers in each connected cluster."""
    count: Count | None = None
    """The number of connected clusters; at most the number of brokers."""


class OverlayKeys(Table, frozen=True, kw_only=True):
    """[overlay]: the keys of every overlay."""

    model: str | None = None
    file: str | None = None
    """An overlay file, in place of a model."""
    clusters: Clusters | None = None
    latency_ms: Number | None = None
    """Latency of every link; None keeps the latency of the model or the file."""
    bandwidth_mbit: Positive | None = None
    metric: Metric | None = None
    """The length that shortest paths minimise; None keeps the metric of the file, or counts hops."""


class OverlaySetup(OverlayKeys, frozen=True, kw_only=True):
    """[overlay]: a generated overlay or one from a file. Only MERC uses its clusters."""

    parameters: Mapping[str, ModelValue] = msgspec.field(default_factory=dict)
    """The model's own keys. In the file they are in the same section as `model`."""


class BrokerSetup(Table, frozen=True, kw_only=True):
    """[brokers]: the simulated machine of each broker."""

    cores: Count = 1
    edge_cores: Count | None = None
    """Cores of MERC's edge brokers; None for the same number as the others."""
    queue_frames: Count = 100_000
    """The largest number of inputs that wait for a core. Further inputs are dropped and counted."""
    profile: Literal["padres-2015", "native"] = "padres-2015"
    """The costs of work."""
    costs_file: str | None = None
    """For the profile native: a file that `mercast calibrate` wrote; None for the shipped file."""
    start: Literal["known", "cold"] = "known"
    """Whether brokers know the overlay from the start, or flood link states to learn it."""


class Churn(Table, frozen=True, kw_only=True):
    """[clients.churn]: subscribers that arrive and leave during publishing, in addition to the permanent ones."""

    per_minute: Number = 0.0
    """Arrivals a minute, at random times."""
    mean_stay_s: Positive = 10.0
    """Mean of the exponential distribution of stays. Subscribers that are present when publishing ends stay to the end
    of the run."""


class ClientSetup(Table, frozen=True, kw_only=True):
    """[clients]: publishers and subscribers, and their brokers."""

    publishers: Count | Literal["each"] = "each"
    """The number of publishers, or one at each broker."""
    subscribers: Whole | Literal["each"] = "each"
    subscriptions_each: Count = 1
    placement: Literal["round-robin", "random"] = "round-robin"
    """The brokers of clients whose number is given: the brokers in turn, or a random one for each client."""
    publishers_at: tuple[str, ...] = ()
    """Brokers that publishers may be at, by id or as first and last; empty for all."""
    subscribers_at: tuple[str, ...] = ()
    advertised_share: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Share of the publishers' brokers whose advertisements match the subscriptions. Publishers at the other brokers
    have advertisements without subscribers, and publish nothing."""
    churn: Churn = Churn()


@dataclass(frozen=True, slots=True)
class EverythingParameters:
    """Every publication matches every subscription. There are no parameters."""


WorkloadParameters: TypeAlias = StockQuoteParameters | BeGenParameters | EverythingParameters
WORKLOAD_KINDS: dict[str, type[StockQuoteParameters] | type[BeGenParameters] | type[EverythingParameters]] = {
    "stock-quotes": StockQuoteParameters,
    "be-gen": BeGenParameters,
    "everything": EverythingParameters,
}


class WorkloadKeys(Table, frozen=True, kw_only=True):
    """[workload]: the keys of every kind of workload."""

    kind: Literal["stock-quotes", "be-gen", "everything"] = "stock-quotes"
    rate: Positive = 600.0
    """Publications a minute, of all publishers together."""
    arrivals: Literal["fixed", "poisson", "file"] = "fixed"
    """Times of publications. fixed: at equal intervals, by the publishers in turn. poisson: at random times, each by a
    random publisher. file: at the times of a file."""
    times_file: str | None = None
    """For arrivals from a file: a line for each publication, in seconds from the start of publishing, ascending."""
    publications: Count | None = None
    """The number of publications. duration_s replaces it; arrivals from a file need neither."""
    duration_s: Positive | None = None
    payload_bytes: Whole = 0
    """Size of the payload, without the attributes."""


class WorkloadSetup(WorkloadKeys, frozen=True, kw_only=True):
    """[workload]: content and rate of publications, and content of subscriptions."""

    parameters: WorkloadParameters = StockQuoteParameters()
    """The kind's own keys. In the file they are in the same section as the others."""


class Reorganise(Table, frozen=True, kw_only=True):
    """[reorganise]: self-reorganisation by gain and loss."""

    period_s: Number = 0.0
    """Time between reorganisations; 0 keeps the links as they are."""
    max_degree: Count = 8
    """The largest number of links of a broker in a domain."""


FaultKind: TypeAlias = Literal["crash", "restart", "cut", "repair", "partition", "delay", "loss"]


class Fault(Table, frozen=True, kw_only=True):
    """[[fault]]: a fault at a given time."""

    at_s: Number
    kind: FaultKind
    brokers: tuple[str, ...] = ()
    """Brokers that crash or restart; for a partition, the brokers of one side."""
    links: tuple[Ends, ...] = ()
    """Links that are cut, repaired, delayed or lossy. For delay and loss, empty means all links."""
    until_s: Number | None = None
    """The end of the fault; None for never."""
    delay_ms: Number = 0.0
    """For a delay: added to the latency."""
    loss: Share = 0.0
    """For loss: the share of frames that are lost."""


class FilterRouting(Table, frozen=True, kw_only=True):
    """[fbr]: options of filter-based routing beyond the thesis."""

    covering: bool = False
    """Whether brokers do not forward a subscription that another forwarded one covers."""
    readvertise: bool = False
    """Whether a tree that lost its path to its home takes another path."""


class FaultRates(Table, frozen=True, kw_only=True):
    """[fault_rates]: random faults.

    Faults with rates occur during publishing and end with it at the latest. Shares fail at one time and stay down.
    """

    crashes_per_minute: Number = 0.0
    cuts_per_minute: Number = 0.0
    mean_outage_s: Positive = 5.0
    """Mean of the exponential distribution of outages caused by rates."""
    share_of_brokers: Share = 0.0
    share_of_links: Share = 0.0
    share_at_s: Number = 0.0
    """The time at which these shares fail."""


class RunPlan(Table, frozen=True, kw_only=True):
    """[run]: the time before and after publishing."""

    settle_s: Number = 10.0
    """Time for advertisements and subscriptions to arrive, before publishing starts."""
    drain_s: Number = 120.0
    """The longest time for the last publications to arrive. The run ends as soon as no publication is in flight."""


class CommonKeys(Table, frozen=True, kw_only=True):
    """The keys and sections that a scenario has as its file states them."""

    name: str
    title: str = ""
    protocols: tuple[str, ...] = ("fbr", "d-dbr", "merc")
    """The protocols that are compared by default."""
    matcher: str = "auto"
    advertise: Literal["strict", "open"] = "strict"
    """strict: publishers advertise. open: every broker counts as a publisher of everything."""
    seed: Whole = 1
    brokers: BrokerSetup = BrokerSetup()
    clients: ClientSetup = ClientSetup()
    reorganise: Reorganise = Reorganise()
    fbr: FilterRouting = FilterRouting()
    fault_rates: FaultRates = FaultRates()
    run: RunPlan = RunPlan()


class ScenarioFile(CommonKeys, frozen=True, kw_only=True):
    """The keys and sections of a scenario file. The keys of [overlay] and [workload] depend on the model and kind."""

    overlay: dict[str, Any] = msgspec.field(default_factory=dict)
    workload: dict[str, Any] = msgspec.field(default_factory=dict)
    fault: tuple[Fault, ...] = ()


class Scenario(CommonKeys, frozen=True, kw_only=True, eq=False):
    """A whole scenario. Its fields are the sections of the file."""

    overlay: OverlaySetup
    workload: WorkloadSetup
    overlay_by_protocol: Mapping[str, OverlaySetup]
    """[overlay.merc] and similar sections: overlays that replace `overlay` under one protocol."""
    faults: tuple[Fault, ...] = ()
    source: str
    """The file of the scenario, for error messages. Equal scenarios may have different files."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and asdict(self) | {"source": ""} == asdict(other) | {"source": ""}

    def options_for(self, protocol: str) -> dict[str, object]:
        """The router's own options that are on."""
        known = info(protocol).options
        return {name: True for name, is_on in asdict(self.fbr).items() if is_on and name in known}

    def overlay_for(self, protocol: str) -> OverlaySetup:
        """The overlay for a protocol: its own, or the one that all share."""
        return self.overlay_by_protocol.get(protocol, self.overlay)

"""What a scenario is: all that a simulation needs to be repeated, as plain frozen values.

A section of a scenario file is a class here, and a key of it a field: the file is read by these classes' types, limits
and defaults (see `scenario_table`), so nothing about a key is said twice. Times are seconds of virtual time from the
start of the run, unless a name says otherwise; publishing starts at `run.settle_s`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Literal, TypeAlias

from experiments.scenario.limits import ABOVE_ZERO, AT_LEAST_ONE, AT_LEAST_ZERO, POSITIVE_SHARE, SHARE
from experiments.workloads.be_gen import BeGenParameters
from experiments.workloads.stock_quotes import StockQuoteParameters
from topologies.broker_and_link import Metric

Number: TypeAlias = Annotated[float, AT_LEAST_ZERO]
Positive: TypeAlias = Annotated[float, ABOVE_ZERO]
Count: TypeAlias = Annotated[int, AT_LEAST_ONE]
Share: TypeAlias = Annotated[float, SHARE]
Ends: TypeAlias = tuple[str, str]
ModelValue: TypeAlias = int | float | str | tuple[int | float, ...]


@dataclass(frozen=True, slots=True)
class Clusters:
    """How MERC's clusters are found; exactly one way is given."""

    by: Literal["domain"] | None = None
    """The domains of a transit-stub overlay or of a hierarchy."""
    size: Count | None = None
    """Connected clusters of about so many brokers."""
    count: Count | None = None
    """So many connected clusters, or as many as there are brokers if these are fewer."""


@dataclass(frozen=True, slots=True)
class OverlaySetup:
    """[overlay]: a generated overlay or one from a file. All but MERC run without its clusters."""

    model: str | None = None
    parameters: Mapping[str, ModelValue] = field(default_factory=dict)
    """The model's own keys; in the file they stand beside `model`."""
    file: str | None = None
    """An overlay file, in place of a model."""
    clusters: Clusters | None = None
    latency_ms: Number | None = None
    """Of every link; None leaves what the model or the file says."""
    bandwidth_mbit: Positive | None = None
    metric: Metric | None = None
    """What the shortest path is the shortest of; None leaves what the file says, or counts hops."""


@dataclass(frozen=True, slots=True)
class BrokerSetup:
    """[brokers]: what each broker runs on."""

    cores: Count = 1
    edge_cores: Count | None = None
    """Cores of MERC's edge brokers; None for as many as the others have."""
    queue_frames: Count = 100_000
    """Inputs that may wait for a core; what comes on top is dropped and counted."""
    profile: Literal["padres-2015", "native"] = "padres-2015"
    """What work costs."""
    costs_file: str | None = None
    """For the profile native: a file that `mercast calibrate` wrote; None for the one that ships."""
    start: Literal["known", "cold"] = "known"
    """Whether brokers know the overlay from the start, or flood link states to learn it."""


@dataclass(frozen=True, slots=True)
class Churn:
    """[clients.churn]: subscribers that come and go while publishing goes on, beside those that stay."""

    per_minute: Number = 0.0
    """How many come, at random times."""
    mean_stay_s: Positive = 10.0
    """Stays are distributed exponentially; whoever is there at the end of publishing stays to the end of the run."""


@dataclass(frozen=True, slots=True)
class ClientSetup:
    """[clients]: who publishes and subscribes, and where."""

    publishers: Count | Literal["each"] = "each"
    """How many, or one at each broker."""
    subscribers: Annotated[int, AT_LEAST_ZERO] | Literal["each"] = "each"
    subscriptions_each: Count = 1
    placement: Literal["round-robin", "random"] = "round-robin"
    """Where clients are when their number is given: at the brokers in turn, or each at a random one."""
    publishers_at: tuple[str, ...] = ()
    """Brokers to choose from, by id or as first and last; empty for all."""
    subscribers_at: tuple[str, ...] = ()
    advertised_share: Annotated[float, POSITIVE_SHARE] = 1.0
    """Share of the publishers' brokers whose advertisements match the subscriptions. Publishers at the others advertise
    what nobody subscribes to, and publish nothing."""
    churn: Churn = Churn()


@dataclass(frozen=True, slots=True)
class EverythingParameters:
    """Every publication matches every subscription: there is nothing to set."""


WorkloadParameters: TypeAlias = StockQuoteParameters | BeGenParameters | EverythingParameters
WORKLOAD_KINDS: dict[str, type[StockQuoteParameters] | type[BeGenParameters] | type[EverythingParameters]] = {
    "stock-quotes": StockQuoteParameters,
    "be-gen": BeGenParameters,
    "everything": EverythingParameters,
}


@dataclass(frozen=True, slots=True)
class WorkloadSetup:
    """[workload]: what is published, how often, and what subscriptions ask for."""

    kind: Literal["stock-quotes", "be-gen", "everything"] = "stock-quotes"
    rate: Positive = 600.0
    """Publications a minute, of all publishers together."""
    arrivals: Literal["fixed", "poisson", "file"] = "fixed"
    """At equal distances, the publishers in turn; at random, each by a random publisher; or at the times of a file."""
    times_file: str | None = None
    """For arrivals from a file: a line for each publication, in seconds from the start of publishing, ascending."""
    publications: Count | None = None
    """How many; or give duration_s. Arrivals from a file need neither."""
    duration_s: Positive | None = None
    payload_bytes: Annotated[int, AT_LEAST_ZERO] = 0
    """Beside the attributes."""
    parameters: WorkloadParameters = field(default_factory=StockQuoteParameters)
    """The kind's own keys; in the file they stand beside the others."""


@dataclass(frozen=True, slots=True)
class Reorganise:
    """[reorganise]: self-reorganisation by gain and loss."""

    period_s: Number = 0.0
    """The cycle; 0 leaves the links as they are."""
    max_degree: Count = 8
    """Links that a broker may have in a domain."""


FaultKind: TypeAlias = Literal["crash", "restart", "cut", "repair", "partition", "delay", "loss"]


@dataclass(frozen=True, slots=True)
class Fault:
    """[[fault]]: something that happens at a given time."""

    at_s: Number
    kind: FaultKind
    brokers: tuple[str, ...] = ()
    """Who crashes or restarts; of a partition, one side."""
    links: tuple[Ends, ...] = ()
    """What is cut, repaired, delayed or loses frames; for delay and loss, empty for all links."""
    until_s: Number | None = None
    """When it is over; None for never."""
    delay_ms: Number = 0.0
    """Of a delay: what is added to the latency."""
    loss: Share = 0.0
    """Of loss: the share of frames that are lost."""


@dataclass(frozen=True, slots=True)
class FilterRouting:
    """[fbr]: what filter-based routing may do beyond the thesis."""

    covering: bool = False
    """A subscription that another covers is not passed on beside it."""
    readvertise: bool = False
    """A tree whose way to its home is lost takes another."""


@dataclass(frozen=True, slots=True)
class FaultRates:
    """[fault_rates]: random faults. Those with rates happen while publishing goes on and end with it at the latest;
    shares fail at one time and stay down."""

    crashes_per_minute: Number = 0.0
    cuts_per_minute: Number = 0.0
    mean_outage_s: Positive = 5.0
    """Of brokers that crashed and links that were cut by rates; distributed exponentially."""
    share_of_brokers: Share = 0.0
    share_of_links: Share = 0.0
    share_at_s: Number = 0.0
    """When these shares fail."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """[run]: what comes before publishing and after it."""

    settle_s: Number = 10.0
    """Time for advertisements and subscriptions to arrive, before publishing starts."""
    drain_s: Number = 120.0
    """Most time that the last publications get to arrive; the run ends as soon as nothing is under way."""


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    overlay: OverlaySetup
    workload: WorkloadSetup
    title: str = ""
    protocols: tuple[str, ...] = ("fbr", "d-dbr", "merc")
    """What is compared when no protocol is asked for."""
    matcher: str = "auto"
    advertise: Literal["strict", "open"] = "strict"
    """Whether publishers advertise, or every broker stands for everything."""
    seed: Annotated[int, AT_LEAST_ZERO] = 1
    overlay_by_protocol: Mapping[str, OverlaySetup] = field(default_factory=dict)
    """[overlay.merc] and the like: overlays that stand in for `overlay` under one protocol."""
    brokers: BrokerSetup = BrokerSetup()
    clients: ClientSetup = ClientSetup()
    reorganise: Reorganise = Reorganise()
    fbr: FilterRouting = FilterRouting()
    faults: tuple[Fault, ...] = ()
    fault_rates: FaultRates = FaultRates()
    run: RunPlan = RunPlan()
    source: str = field(default="scenario", compare=False)
    """Where it was read from, for messages."""

    def options_for(self, protocol: str) -> dict[str, object]:
        """The router's own options that are switched on."""
        return {name: True for name, is_on in asdict(self.fbr).items() if is_on} if protocol == "fbr" else {}

    def overlay_for(self, protocol: str) -> OverlaySetup:
        return self.overlay_by_protocol.get(protocol, self.overlay)

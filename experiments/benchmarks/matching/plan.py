"""Plan and result of a comparison of matching indexes, and checks of the plan."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from experiments.errors import BenchPlanError
from experiments.workloads import registry as workloads
from matching import registry
from matching.errors import BackendMissingError
from matching.matcher import Matcher
from matching.registry import Accepts

BASELINE = "scan"
OPTION_KINDS: tuple[tuple[type, tuple[type, ...], str], ...] = (
    (bool, (bool,), "true or false"),
    (int, (int,), "a whole number"),
    (float, (int, float), "a number"),
    (str, (str,), "a word"),
)


@dataclass(frozen=True, slots=True)
class IndexChoice:
    """An index of the comparison, with its options."""

    name: str
    options: Mapping[str, object] = field(default_factory=dict)

    def create(self, backend: str | None = None) -> Matcher:
        self._check_options(backend)
        try:
            return registry.create(self.name, backend=backend, **self.options)
        except (TypeError, ValueError) as error:
            if not self.options:
                raise
            raise BenchPlanError(f"{self.name} refuses its options: {error}") from None

    def _check_options(self, backend: str | None) -> None:
        """Refuses a value of another type than the option's default. An index would fail much later, or not at all."""
        index = registry.info(self.name)
        backend = backend or index.backends[0]
        if not self.options or backend not in index.available_backends:
            return
        parameters = inspect.signature(index.load(backend)).parameters
        for option, value in self.options.items():
            if option not in parameters:
                # The registry refuses it and lists the options.
                continue
            default = type(parameters[option].default)
            wanted = next(((types, words) for kind, types, words in OPTION_KINDS if kind is default), None)
            if wanted is not None and type(value) not in wanted[0]:
                raise BenchPlanError(f"--option {self.name}.{option}={value}: it must be {wanted[1]}")
            if wanted is None and isinstance(value, int | float | str):
                raise BenchPlanError(f"--option {self.name}.{option}={value}: it cannot be set here, only in Python")


@dataclass(frozen=True, slots=True)
class BenchPlan:
    parameters: workloads.Parameters
    """Parameters of the workload. Their type determines the workload."""
    subscriptions: int
    publications: int
    indexes: tuple[IndexChoice, ...]
    seed: int = 0
    warm_up: int = 100
    """Publications that are matched before timing starts."""
    rounds: int = 3
    scan_publications: int | None = None
    """The number of publications that the scan matches, rounded up to whole blocks; None for about ten seconds."""
    scaling: tuple[int, ...] = ()
    """Further numbers of subscriptions at which construction is timed."""
    backend: str | None = None
    """None for the first backend that all indexes have."""

    @property
    def workload(self) -> str:
        return workloads.info_of(self.parameters).name


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    subscriptions: int
    construction_us: float
    """Time for each subscription."""


@dataclass(frozen=True, slots=True)
class IndexResult:
    """The measurements of one index. Times are CPU time for each subscription or publication, unless said otherwise."""

    index: str
    options: Mapping[str, object]
    construction_us: float
    construction_s: float
    """Time for all subscriptions."""
    matching_us: float
    ratio_to_scan: float
    """Matching time over the scan's, on the publications that both matched."""
    candidates: float
    evaluated: float
    matched: float
    bytes: int
    nodes: int
    levels: int
    removal_us: float
    publications: int
    """The number of publications that this index matched."""
    checksum: str
    """Checksum of all publications that this index matched."""
    checksum_with_scan: str
    """Checksum of the publications that the scan matched too. It is the same for all indexes."""
    scaling: tuple[ScalingPoint, ...]


@dataclass(frozen=True, slots=True)
class BenchResult:
    plan: BenchPlan
    backend: str
    python: str
    notice: str
    scan_publications: int
    results: tuple[IndexResult, ...]
    """The result of the scan first, then those of the plan in its order."""


def check_plan(plan: BenchPlan) -> str:
    """Checks the plan and returns the backend of all indexes. Raises an error if they cannot be compared."""
    counts = {"subscriptions": plan.subscriptions, "publications": plan.publications, "rounds": plan.rounds}
    if plan.scan_publications is not None:
        counts["scan publications"] = plan.scan_publications
    for name, count in counts.items():
        if count < 1:
            raise BenchPlanError(f"{name}: {count}; at least 1 is needed")
    if plan.warm_up < 0:
        raise BenchPlanError(f"warm-up: {plan.warm_up}; it cannot be negative")
    for size in plan.scaling:
        if not 1 <= size <= plan.subscriptions:
            raise BenchPlanError(f"scaling: {size} does not lie between 1 and the {plan.subscriptions} subscriptions")
    _check_indexes_hold_workload(plan)
    return common_backend(plan.indexes, plan.backend)


def _check_indexes_hold_workload(plan: BenchPlan) -> None:
    makes = workloads.info(plan.workload).makes
    for name in (choice.name for choice in plan.indexes):
        if makes is Accepts.ANY_EXPRESSION and registry.info(name).accepts is not Accepts.ANY_EXPRESSION:
            raise BenchPlanError(
                f"{name} holds {registry.info(name).accepts} only and cannot hold {plan.workload}'s expressions; "
                f"use {' or '.join(indexes_for(plan.workload))}"
            )


def indexes_for(workload: str, backend: str | None = None) -> tuple[str, ...]:
    """The names of the indexes that can store the workload's subscriptions, in Python unless a backend is given."""
    makes = workloads.info(workload).makes
    return tuple(
        name
        for name in registry.names(backend or registry.PYTHON)
        if makes is Accepts.CONJUNCTIONS or registry.info(name).accepts is Accepts.ANY_EXPRESSION
    )


def common_backend(choices: Sequence[IndexChoice], wanted: str | None) -> str:
    """The wanted backend, or by default the first that all indexes and the scan have. Raises if one lacks it."""
    names = [choice.name for choice in with_baseline(choices)]
    for name in names:
        if names.count(name) > 1:
            raise BenchPlanError(f"{name} is named twice; name each index once")
    is_native = wanted == registry.NATIVE and all(registry.NATIVE in registry.info(name).backends for name in names)
    if is_native and not registry.has_native_module():
        raise BackendMissingError(names[-1])
    offered = {name: registry.info(name).available_backends for name in names}
    offers_text = "; ".join(f"{name}: {', '.join(backends)}" for name, backends in offered.items())
    common = [backend for backend in offered[names[-1]] if all(backend in backends for backends in offered.values())]
    if wanted is not None:
        common = [backend for backend in common if backend == wanted]
    if not common:
        missing = f"backend {wanted!r}" if wanted is not None else "a backend"
        raise BenchPlanError(f"the indexes do not all have {missing} ({offers_text}); backends are never mixed")
    return common[0]


def with_baseline(choices: Sequence[IndexChoice]) -> list[IndexChoice]:
    """The indexes with the baseline first. Adds the baseline if it is missing."""
    baseline = [choice for choice in choices if choice.name == BASELINE] or [IndexChoice(BASELINE)]
    return baseline + [choice for choice in choices if choice.name != BASELINE]

"""[[fault]] and [fault_rates]: reads and checks them, and combines them into one list of steps.

Faults may overlap. A link that two faults cut comes back when both are over, and the longer of two delays applies. So a
step states the new condition of a broker or link at a time, not the effect of a single fault.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from experiments.errors import ScenarioError
from experiments.scenario.arrival_times import at_random, exponential, nanoseconds
from experiments.scenario.model import Ends, Fault, Scenario
from experiments.scenario.workload import publishing_window_ns
from topologies.errors import nearest
from topologies.files.typed_tables import TableReader
from topologies.overlay import Overlay
from topologies.random_streams import stream

_FOREVER = 1 << 62
_ABOUT_BROKERS = ("crash", "restart", "partition")
_ABOUT_LINKS = ("cut", "repair")
_ENDINGS = ("restart", "repair")


class FaultAction(StrEnum):
    CRASH = "crash"
    RESTART = "restart"
    CUT = "cut"
    REPAIR = "repair"
    DELAY = "delay"
    LOSS = "loss"


@dataclass(frozen=True, slots=True)
class FaultStep:
    """The new condition of a broker or a link at a time."""

    at_ns: int
    action: FaultAction
    broker: str | None = None
    """The broker that crashes or restarts."""
    link: Ends | None = None
    """The link that is cut, repaired, delayed or made lossy; the smaller id first."""
    delay_ns: int = 0
    """The delay from now on, in addition to the link's latency; 0 ends a delay."""
    loss: float = 0.0
    """The share of frames that are lost from now on; 0 ends the loss."""


def check_fault(fault: Fault, key: str, reader: TableReader) -> None:
    """Checks conditions on several keys of a [[fault]]."""
    for name, is_wanted, subjects in (
        ("brokers", fault.kind in _ABOUT_BROKERS, fault.brokers),
        ("links", fault.kind in _ABOUT_LINKS, fault.links),
    ):
        if is_wanted and not subjects:
            raise reader.refusal(f"{key}.{name}", f"is missing; {fault.kind!r} must say which {name} it is about")
    if fault.kind in _ABOUT_BROKERS and fault.links:
        raise reader.refusal(f"{key}.links", f"is given, and {fault.kind!r} is about brokers")
    if fault.kind not in _ABOUT_BROKERS and fault.brokers:
        raise reader.refusal(f"{key}.brokers", f"is given, and {fault.kind!r} is about links")
    if fault.until_s is not None and fault.kind in _ENDINGS:
        raise reader.refusal(f"{key}.until_s", f"is given, and {fault.kind!r} has no end")
    if fault.until_s is not None and fault.until_s <= fault.at_s:
        raise reader.refusal(f"{key}.until_s", f"is {fault.until_s:g}; it must be after at_s, {fault.at_s:g}")
    for name, kind, value in (("delay_ms", "delay", fault.delay_ms), ("loss", "loss", fault.loss)):
        if fault.kind == kind and not value:
            raise reader.refusal(f"{key}.{name}", f"must be above 0 for a fault of the kind {kind!r}")
        if fault.kind != kind and value:
            raise reader.refusal(f"{key}.{name}", f"is given, and the kind is {fault.kind!r}")


def fault_steps(scenario: Scenario, overlay: Overlay) -> tuple[FaultStep, ...]:
    """All changes of brokers and links in a run on this overlay, by time."""
    intervals = [
        *_intervals_of_shares(scenario, overlay),
        *_intervals_of_rates(scenario, overlay),
        *_listed_intervals(scenario, overlay),
    ]
    for subject, moment in _endings(scenario, overlay):
        intervals = [
            dataclasses.replace(interval, end=moment)
            if interval.subject == subject and interval.start <= moment < interval.end
            else interval
            for interval in intervals
        ]
    by_subject: dict[_Subject, list[_FaultInterval]] = {}
    for interval in intervals:
        by_subject.setdefault(interval.subject, []).append(interval)
    steps = [step for subject in sorted(by_subject) for step in _steps(subject, by_subject[subject])]
    return tuple(sorted(steps, key=lambda step: step.at_ns))


@dataclass(frozen=True, slots=True, order=True)
class _Subject:
    """A broker or a link, and one of its conditions."""

    what: str
    """down, delay or loss"""
    one: str
    other: str = ""


@dataclass(frozen=True, slots=True)
class _FaultInterval:
    """A fault of a broker or a link, with its start and end."""

    subject: _Subject
    start: int
    end: int = _FOREVER
    level: float = 1.0


def _steps(subject: _Subject, intervals: Sequence[_FaultInterval]) -> Iterator[FaultStep]:
    """The steps of one subject. At any time its condition is the worst of all intervals."""
    link = (subject.one, subject.other)
    level = 0.0
    for moment in sorted(
        {moment for interval in intervals for moment in (interval.start, interval.end) if moment != _FOREVER}
    ):
        worst = max((interval.level for interval in intervals if interval.start <= moment < interval.end), default=0.0)
        if worst == level:
            continue
        level = worst
        if subject.what == "delay":
            yield FaultStep(moment, FaultAction.DELAY, link=link, delay_ns=round(level))
        elif subject.what == "loss":
            yield FaultStep(moment, FaultAction.LOSS, link=link, loss=level)
        elif subject.other:
            yield FaultStep(moment, FaultAction.CUT if level else FaultAction.REPAIR, link=link)
        else:
            yield FaultStep(moment, FaultAction.CRASH if level else FaultAction.RESTART, broker=subject.one)


def _intervals_of_shares(scenario: Scenario, overlay: Overlay) -> Iterator[_FaultInterval]:
    rates = scenario.fault_rates
    moment = nanoseconds(rates.share_at_s)
    for name, share, subjects in (
        ("brokers", rates.share_of_brokers, _brokers(overlay)),
        ("links", rates.share_of_links, _links(overlay)),
    ):
        rng = stream(scenario.seed, f"faults/share of {name}")
        # The order does not depend on the share, so a larger share includes the smaller one.
        in_order = rng.sample(subjects, len(subjects))
        yield from (_FaultInterval(subject, moment) for subject in in_order[: round(share * len(subjects))])


def _intervals_of_rates(scenario: Scenario, overlay: Overlay) -> Iterator[_FaultInterval]:
    rates = scenario.fault_rates
    for name, per_minute, subjects in (
        ("crashes", rates.crashes_per_minute, _brokers(overlay)),
        ("cuts", rates.cuts_per_minute, _links(overlay)),
    ):
        if not (per_minute and subjects):
            continue
        rng = stream(scenario.seed, f"faults/{name}")
        begin, end = publishing_window_ns(scenario)
        down_until = dict.fromkeys(subjects, 0)
        for moment in at_random(rng, per_minute, begin, end):
            up = [subject for subject in subjects if down_until[subject] <= moment]
            if up:
                subject = rng.choice(up)
                down_until[subject] = min(end, moment + exponential(rng, rates.mean_outage_s))
                yield _FaultInterval(subject, moment, down_until[subject])


def _listed_intervals(scenario: Scenario, overlay: Overlay) -> Iterator[_FaultInterval]:
    for number, fault in enumerate(scenario.faults, start=1):
        if fault.kind in _ENDINGS:
            continue
        start = nanoseconds(fault.at_s)
        end = _FOREVER if fault.until_s is None else nanoseconds(fault.until_s)
        level = {"delay": fault.delay_ms * 1_000_000, "loss": fault.loss}.get(fault.kind, 1.0)
        for subject in _subjects(scenario, number, fault, overlay):
            yield _FaultInterval(subject, start, end, level)


def _endings(scenario: Scenario, overlay: Overlay) -> Iterator[tuple[_Subject, int]]:
    """Restarts and repairs. Each ends all faults of the broker or link at that time."""
    for number, fault in enumerate(scenario.faults, start=1):
        if fault.kind in _ENDINGS:
            for subject in _subjects(scenario, number, fault, overlay):
                yield subject, nanoseconds(fault.at_s)


def _subjects(scenario: Scenario, number: int, fault: Fault, overlay: Overlay) -> list[_Subject]:
    key = f"{scenario.source}: fault.{number}"
    for broker in fault.brokers:
        if broker not in overlay.ids:
            raise ScenarioError(f"{key}.brokers names {broker!r}; {nearest(broker, overlay.ids)}")
    for ends in fault.links:
        if not overlay.has_link(*ends):
            raise ScenarioError(f"{key}.links names {'-'.join(ends)}, which is no link of overlay {overlay.name!r}")
    if fault.kind in ("crash", "restart"):
        return [_Subject("down", broker) for broker in fault.brokers]
    if fault.kind == "partition":
        inside = set(fault.brokers)
        parted = [link.ends for link in overlay.links if len(inside.intersection(link.ends)) == 1]
        if not parted:
            raise ScenarioError(f"{key}.brokers names all brokers; a partition needs some on the other side")
        return [_Subject("down", *ends) for ends in parted]
    what = fault.kind if fault.kind in ("delay", "loss") else "down"
    concerned = [(min(ends), max(ends)) for ends in fault.links] or [link.ends for link in overlay.links]
    return [_Subject(what, *ends) for ends in concerned]


def _brokers(overlay: Overlay) -> list[_Subject]:
    return [_Subject("down", broker) for broker in overlay.ids]


def _links(overlay: Overlay) -> list[_Subject]:
    return [_Subject("down", *link.ends) for link in overlay.links]

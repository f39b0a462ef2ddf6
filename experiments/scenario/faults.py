"""[[fault]] and [fault_rates]: read, checked, and put on one agenda.

Faults may overlap: a link that two faults hold down comes back when both are over, and of two delays the longer
counts. So the agenda tells what becomes of each broker and link when, not what each fault does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from experiments.errors import ScenarioError
from experiments.scenario.arrival_times import at_random, exponential, nanoseconds
from experiments.scenario.model import Ends, Fault, Scenario
from experiments.scenario.table import Table
from experiments.scenario.workload import publishing_window_ns
from topologies.errors import nearest
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
    """What becomes of a broker or a link at a moment."""

    at_ns: int
    action: FaultAction
    broker: str | None = None
    """Who crashes or restarts."""
    link: Ends | None = None
    """What is cut, repaired, delayed or made lossy; the smaller id first."""
    delay_ns: int = 0
    """From now on, on top of the link's latency; 0 ends a delay."""
    loss: float = 0.0
    """From now on, the share of frames that are lost; 0 ends it."""


def read_fault(table: Table) -> Fault:
    fault = table.read(Fault)
    for name, is_wanted, subjects in (
        ("brokers", fault.kind in _ABOUT_BROKERS, fault.brokers),
        ("links", fault.kind in _ABOUT_LINKS, fault.links),
    ):
        if is_wanted and not subjects:
            raise table.refusal(name, f"is missing; {fault.kind!r} must say which {name} it is about")
    if fault.kind in _ABOUT_BROKERS and fault.links:
        raise table.refusal("links", f"is given, and {fault.kind!r} is about brokers")
    if fault.kind not in _ABOUT_BROKERS and fault.brokers:
        raise table.refusal("brokers", f"is given, and {fault.kind!r} is about links")
    if fault.until_s is not None and fault.kind in _ENDINGS:
        raise table.refusal("until_s", f"is given, and {fault.kind!r} has no end")
    if fault.until_s is not None and fault.until_s <= fault.at_s:
        raise table.refusal("until_s", f"is {fault.until_s:g}; it must be after at_s, {fault.at_s:g}")
    for name, kind, value in (("delay_ms", "delay", fault.delay_ms), ("loss", "loss", fault.loss)):
        if fault.kind == kind and not value:
            raise table.refusal(name, f"must be above 0 for a fault of the kind {kind!r}")
        if fault.kind != kind and value:
            raise table.refusal(name, f"is given, and the kind is {fault.kind!r}")
    return fault


def fault_agenda(scenario: Scenario, overlay: Overlay) -> tuple[FaultStep, ...]:
    """All that goes wrong in a run on this overlay, and right again, by time."""
    spells = [
        *_spells_of_shares(scenario, overlay),
        *_spells_of_rates(scenario, overlay),
        *_listed_spells(scenario, overlay),
    ]
    for subject, moment in _endings(scenario, overlay):
        spells = [
            dataclasses.replace(spell, end=moment)
            if spell.subject == subject and spell.start <= moment < spell.end
            else spell
            for spell in spells
        ]
    by_subject: dict[_Subject, list[_Spell]] = {}
    for spell in spells:
        by_subject.setdefault(spell.subject, []).append(spell)
    steps = [step for subject in sorted(by_subject) for step in _steps(subject, by_subject[subject])]
    return tuple(sorted(steps, key=lambda step: step.at_ns))


@dataclass(frozen=True, slots=True, order=True)
class _Subject:
    """A broker, or the link between two, and what can be wrong with it."""

    what: str
    """down, delay or loss"""
    one: str
    other: str = ""


@dataclass(frozen=True, slots=True)
class _Spell:
    """Something is wrong with a broker or a link for a while."""

    subject: _Subject
    start: int
    end: int = _FOREVER
    level: float = 1.0


def _steps(subject: _Subject, spells: Sequence[_Spell]) -> Iterator[FaultStep]:
    """The changes of the worst that any spell does to the subject."""
    link = (subject.one, subject.other)
    level = 0.0
    for moment in sorted({moment for spell in spells for moment in (spell.start, spell.end) if moment != _FOREVER}):
        worst = max((spell.level for spell in spells if spell.start <= moment < spell.end), default=0.0)
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


def _spells_of_shares(scenario: Scenario, overlay: Overlay) -> Iterator[_Spell]:
    rates = scenario.fault_rates
    moment = nanoseconds(rates.share_at_s)
    for name, share, subjects in (
        ("brokers", rates.share_of_brokers, _brokers(overlay)),
        ("links", rates.share_of_links, _links(overlay)),
    ):
        rng = stream(scenario.seed, f"faults/share of {name}")
        # The order does not depend on the share, so a larger share holds the smaller one.
        in_order = rng.sample(subjects, len(subjects))
        yield from (_Spell(subject, moment) for subject in in_order[: round(share * len(subjects))])


def _spells_of_rates(scenario: Scenario, overlay: Overlay) -> Iterator[_Spell]:
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
                yield _Spell(subject, moment, down_until[subject])


def _listed_spells(scenario: Scenario, overlay: Overlay) -> Iterator[_Spell]:
    for number, fault in enumerate(scenario.faults, start=1):
        if fault.kind in _ENDINGS:
            continue
        start = nanoseconds(fault.at_s)
        end = _FOREVER if fault.until_s is None else nanoseconds(fault.until_s)
        level = {"delay": fault.delay_ms * 1_000_000, "loss": fault.loss}.get(fault.kind, 1.0)
        for subject in _subjects(scenario, number, fault, overlay):
            yield _Spell(subject, start, end, level)


def _endings(scenario: Scenario, overlay: Overlay) -> Iterator[tuple[_Subject, int]]:
    """Restarts and repairs: whatever holds the broker or the link down at that moment is over."""
    for number, fault in enumerate(scenario.faults, start=1):
        if fault.kind in _ENDINGS:
            for subject in _subjects(scenario, number, fault, overlay):
                yield subject, nanoseconds(fault.at_s)


def _subjects(scenario: Scenario, number: int, fault: Fault, overlay: Overlay) -> list[_Subject]:
    place = f"{scenario.source}: fault.{number}"
    for broker in fault.brokers:
        if broker not in overlay.ids:
            raise ScenarioError(f"{place}.brokers names {broker!r}; {nearest(broker, overlay.ids)}")
    for ends in fault.links:
        if not overlay.has_link(*ends):
            raise ScenarioError(f"{place}.links names {'-'.join(ends)}, which is no link of overlay {overlay.name!r}")
    if fault.kind in ("crash", "restart"):
        return [_Subject("down", broker) for broker in fault.brokers]
    if fault.kind == "partition":
        inside = set(fault.brokers)
        parted = [link.ends for link in overlay.links if len(inside.intersection(link.ends)) == 1]
        if not parted:
            raise ScenarioError(f"{place}.brokers names all brokers; a partition needs some on the other side")
        return [_Subject("down", *ends) for ends in parted]
    what = fault.kind if fault.kind in ("delay", "loss") else "down"
    concerned = [(min(ends), max(ends)) for ends in fault.links] or [link.ends for link in overlay.links]
    return [_Subject(what, *ends) for ends in concerned]


def _brokers(overlay: Overlay) -> list[_Subject]:
    return [_Subject("down", broker) for broker in overlay.ids]


def _links(overlay: Overlay) -> list[_Subject]:
    return [_Subject("down", *link.ends) for link in overlay.links]

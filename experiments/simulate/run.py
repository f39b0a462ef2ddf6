"""Runs a scenario under one protocol, and keeps what came of it.

A run's folder holds the resolved scenario, where it came from, the trace and the summary. It appears under its name
when the run is complete: a run that fails leaves nothing behind.
"""

from __future__ import annotations

import dataclasses
import json
import platform
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import msgpack

from broker.core.broker import Broker
from broker.core.effects import Refuse
from broker.core.inputs import Advertised, ClientConnected, ClientLeft, Published, Subscribed
from broker.core.settings import SECOND, Settings
from broker.simulation.cost_file import NATIVE, CostFileError, read_costs
from broker.simulation.costs import PADRES_2015, CostProfile
from broker.simulation.simulated_overlay import SimulatedOverlay
from broker.trace.code_version import code_version
from broker.trace.files import TraceWriter
from broker.trace.schema import Digest, DropRow, FaultRow, Trace, seconds
from experiments.cpu_timing import collecting_rarely
from experiments.errors import OutputError, ScenarioError
from experiments.scenario.load import (
    ClientPlan,
    FaultAction,
    FaultStep,
    Scenario,
    Subscriber,
    TimedPublication,
    build_overlay,
    cores_of,
    fault_agenda,
    metric_of,
    place_clients,
    publications,
    publishing_window_ns,
    to_toml,
)
from experiments.simulate.drop_reasons import RUN_ENDED
from experiments.simulate.oracle import Accepted, Oracle
from experiments.simulate.summary import RunSummary, SummaryBuilder
from matching.languages.sql import parse
from matching.registry import backend_in_words
from routing.messages import PublicationId
from topologies.random_streams import stream

Progress: TypeAlias = Callable[[str, int, int], None]

PATIENCE = 60 * SECOND
"""Longer than a publication takes at saturated brokers, or what is merely late would be sent again."""
PATIENCE_WITH_LOSS = 15 * SECOND
"""Where links lose frames, nobody notices before that; a broken link is noticed at once."""
OVER_AFTER = 60 * SECOND
"""A publication that is so old is judged, if no broker answers for it and no delivery is lacking. One that lacks a
delivery is judged at the end of the run, because it may still come. A broker keeps a publication for 30 s for whom it
cannot reach, and a broker that it passed it on to keeps it for 30 s more."""
SLICE = SECOND


def simulate(scenario: Scenario, protocol: str, progress: Progress, out: Path | None = None) -> RunSummary:
    """Runs the scenario. With `out`, that folder holds the run afterwards."""
    if out is None:
        digest = Digest()
        with collecting_rarely():
            return Run(scenario, protocol, digest, progress).complete(digest.hexdigest)
    with _folder(out) as folder, collecting_rarely():
        with TraceWriter(folder, f"{scenario.name}/{protocol}/{scenario.seed}") as writer:
            summary = Run(scenario, protocol, writer, progress).complete(lambda: writer.digest.hexdigest())
        (folder / "scenario.toml").write_text(to_toml(scenario), encoding="utf-8")
        _write_json(folder / "provenance.json", provenance(scenario, protocol))
        _write_json(folder / "summary.json", dataclasses.asdict(summary))
    return summary


def check_absent(out: Path) -> None:
    """A run is never written over another."""
    try:
        is_there = out.exists()
    except OSError as error:
        raise OutputError(out, error.strerror or str(error)) from error
    if is_there:
        raise ScenarioError(f"{out} exists; give another folder, or remove it first")


@contextmanager
def _folder(out: Path) -> Iterator[Path]:
    """A folder that gets its name when all is in it, or goes."""
    check_absent(out)
    missing = [folder for folder in out.parents if not folder.exists()]
    unfinished = out.with_name(f".{out.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
    except OSError as error:
        raise OutputError(Path(error.filename or out), error.strerror or str(error)) from error
    try:
        yield unfinished
        unfinished.rename(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        for folder in missing:
            # Those that hold nothing; a complete run stays in its place.
            with suppress(OSError):
                folder.rmdir()


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def cost_profile(scenario: Scenario) -> CostProfile:
    """What work costs in this scenario, with its index."""
    if scenario.brokers.profile != NATIVE:
        return PADRES_2015
    file = scenario.brokers.costs_file
    try:
        return read_costs(Path(file) if file is not None else None).profile(scenario.matcher)
    except CostFileError as error:
        raise ScenarioError(f"{scenario.source}: brokers.costs_file: {error}") from error


def provenance(scenario: Scenario, protocol: str) -> dict[str, str | int | dict[str, str | float] | None]:
    code = code_version()
    return {
        "scenario": scenario.name,
        "protocol": protocol,
        "seed": scenario.seed,
        "mercast": code.version,
        "commit": code.commit,
        "is_changed": code.is_changed,
        "simpy": version("simpy"),
        "python": platform.python_version(),
        "backend": backend_in_words(),
        "costs_ns": dataclasses.asdict(cost_profile(scenario)),
    }


class Run:
    """One scenario under one protocol."""

    def __init__(self, scenario: Scenario, protocol: str, trace: Trace, progress: Progress) -> None:
        self._scenario = scenario
        self._protocol = protocol
        self._progress = progress
        self._overlay = build_overlay(scenario, protocol)
        self._plan: ClientPlan = place_clients(scenario, self._overlay)
        self._gatherer = SummaryBuilder(trace)
        self._refused = 0
        self._published: dict[tuple[str, int], TimedPublication] = {}
        self._references = 0
        self._cores = cores_of(scenario, protocol, self._overlay)
        self._oracle = Oracle()
        self._world = SimulatedOverlay(
            self._overlay,
            protocol,
            matcher=scenario.matcher,
            settings=self._settings(),
            profile=cost_profile(scenario),
            trace=self._gatherer,
            random=stream(scenario.seed, "simulation/loss"),
            cores=self._cores,
            queue_frames=scenario.brokers.queue_frames,
            metric=metric_of(scenario, protocol),
            starts_known=scenario.brokers.start == "known",
            options=scenario.options_for(protocol),
        )
        self._world.on_accepted = self._accepted
        self._world.on_refused = self._was_refused
        self._world.on_confirmed = self._oracle.confirmed

    def _settings(self) -> Settings:
        scenario = self._scenario
        # Only routers that know the overlay can change it.
        period_s = scenario.reorganise.period_s if self._protocol in ("d-dbr", "merc") else 0.0
        loses_frames = any(fault.kind == "loss" for fault in scenario.faults)
        return Settings(
            is_open=scenario.advertise == "open",
            tick=5 * SECOND,
            dead_after=20 * SECOND,
            patience=PATIENCE_WITH_LOSS if loses_frames else PATIENCE,
            reorganise_every=round(period_s * SECOND),
            most_links=scenario.reorganise.max_degree,
        )

    def complete(self, digest: Callable[[], str]) -> RunSummary:
        """`digest` is asked when all rows are recorded."""
        self._schedule()
        begin, end = publishing_window_ns(self._scenario)
        last = end + round(self._scenario.run.drain_s * SECOND)
        self._run_until(begin, last)
        # Rows before and after publishing: what a broker worked in between is the difference.
        self._world.record_brokers()
        busy_before = {name: node.busy_ns for name, node in self._world.nodes.items()}
        self._run_until(end, last)
        self._world.record_brokers()
        busy = max(
            (node.busy_ns - busy_before[name]) / (self._cores[name] * max(1, end - begin))
            for name, node in self._world.nodes.items()
        )
        is_behind = self._drain(last)
        self._world.finish()
        brokers = self._living()
        for publication in self._oracle.take_rest():
            self._judge(publication, is_under_way=is_behind and _is_answered_for(publication.id, brokers))
        return self._gatherer.summary(
            scenario=self._scenario.name,
            protocol=self._protocol,
            seed=self._scenario.seed,
            matcher=self._scenario.matcher,
            refused=self._refused,
            held=sum(broker.in_custody for broker in brokers),
            unsettled=sum(broker.unsettled for broker in brokers),
            duplicate_advertisements=sum(broker.router.counts().duplicate_advertisements for broker in brokers),
            busy_share_max=busy,
            messages=self._world.sent,
            digest=digest(),
        )

    def _drain(self, last: int) -> bool:
        """Waits until nothing is under way. True if brokers or links were busy all the time: only that excuses what has
        not arrived. A publication that hangs while all are idle is lost."""
        is_behind = self._world.has_backlog
        while self._world.now < last and not self._is_done():
            self._run_until(min(last, self._world.now + SLICE), last)
            is_behind = is_behind and self._world.has_backlog
        return is_behind

    def _run_until(self, until: int, last: int) -> None:
        """In slices, so that the progress bar moves."""
        while self._world.now < until:
            self._world.run_until(min(until, self._world.now + SLICE))
            self._judge_settled()
            self._progress(f"{self._protocol}: simulated seconds", self._world.now // SECOND, last // SECOND)

    @property
    def unjudged(self) -> int:
        """Publications that the run still holds, with what arrived of them."""
        return len(self._oracle)

    def _living(self) -> list[Broker]:
        return [node.broker for node in self._world.nodes.values() if node.broker is not None]

    def _judge_settled(self) -> None:
        """Publications that are over, in their order, so that a long run does not hold them all."""
        brokers = self._living()
        while (oldest := self._oracle.oldest) is not None:
            if self._world.now < oldest.at + OVER_AFTER or _is_answered_for(oldest.id, brokers):
                return
            if self._is_accounted_for(oldest):
                self._judge(oldest)
                self._oracle.forget_oldest()
            else:
                self._oracle.put_oldest_aside()

    def _is_accounted_for(self, publication: Accepted) -> bool:
        id = str(publication.id)
        return publication.is_accounted_for(self._gatherer.got(id), is_dropped=self._gatherer.is_dropped(id))

    def _judge(self, publication: Accepted, *, is_under_way: bool = False) -> None:
        """`is_under_way`: the run ends before the publication is settled, because brokers had too much to do."""
        id = str(publication.id)
        if is_under_way:
            self._gatherer.record(DropRow(seconds(self._world.now), publication.id.broker, RUN_ENDED, id, ""))
        is_dropped = self._gatherer.is_dropped(id)
        self._gatherer.judge(id, publication.fates(self._gatherer.got(id), is_dropped=is_dropped))
        self._world.forget_publication(publication.id)

    def _is_done(self) -> bool:
        """Whether nothing is under way any more, and no delivery is lacking."""
        nodes = self._world.nodes.values()
        return all(
            not node.working and not node.queue and (node.broker is None or node.broker.in_custody == 0)
            for node in nodes
        ) and all(map(self._is_accounted_for, self._oracle))

    def _schedule(self) -> None:
        for publisher in self._plan.publishers:
            if publisher.advertisement is not None:
                self._world.submit(publisher.broker, Advertised(publisher.name, "all", publisher.advertisement))
        for subscriber in self._plan.subscribers:
            self._world.later(subscriber.arrives_ns, lambda each=subscriber: self._arrive(each))  # type: ignore[misc]
        for step in fault_agenda(self._scenario, self._overlay):
            self._world.later(step.at_ns, lambda each=step: self._fault(each))  # type: ignore[misc]
        self._publish_next(publications(self._scenario, self._plan))

    def _arrive(self, subscriber: Subscriber) -> None:
        self._world.submit(subscriber.broker, ClientConnected(subscriber.name))
        for number, text in enumerate(subscriber.subscriptions):
            # First, because the answer may come at once.
            self._oracle.requested(subscriber.name, f"n{number}", subscriber.broker, parse(text))
            self._world.submit(subscriber.broker, Subscribed(subscriber.name, f"n{number}", text))
        if subscriber.leaves_ns is not None:
            self._world.later(subscriber.leaves_ns, lambda: self._depart(subscriber))

    def _depart(self, subscriber: Subscriber) -> None:
        self._oracle.left(subscriber.name)
        self._world.submit(subscriber.broker, ClientLeft(subscriber.name))

    def _publish_next(self, coming: Iterator[TimedPublication]) -> None:
        """One at a time, so that a long run's publications are not all in memory."""
        publication = next(coming, None)
        if publication is None:
            return

        def publish() -> None:
            reference, self._references = self._references, self._references + 1
            self._published[publication.publisher, reference] = publication
            attributes = msgpack.packb(publication.attributes)
            request = Published(publication.publisher, reference, attributes, bytes(publication.payload_bytes))
            self._world.submit(publication.broker, request)
            self._publish_next(coming)

        self._world.later(publication.at_ns, publish)

    def _accepted(self, id: PublicationId, request: Published, at: int) -> None:
        publication = self._published.pop((request.client, request.reference))
        self._oracle.published(id, publication.attributes, at)

    def _was_refused(self, refusal: Refuse) -> None:
        if isinstance(refusal.reference, int):
            self._refused += 1
            self._published.pop((refusal.client, refusal.reference), None)

    def _fault(self, step: FaultStep) -> None:
        now = self._world.now
        subject = step.broker or "-".join(step.link or ())
        self._gatherer.record(FaultRow(seconds(now), step.action.value, subject, None))
        if step.broker is not None:
            if step.action is FaultAction.RESTART:
                self._world.restart(step.broker)
            else:
                self._kill(step.broker)
        elif step.link is not None:
            self._fault_of_link(step, *step.link)

    def _kill(self, name: str) -> None:
        dying = self._world.nodes[name].broker
        if dying is None:
            return
        others = [broker for broker in self._living() if broker is not dying]
        self._oracle.killed(name, lambda each, home: _alone_answered(dying, others, each, home))
        self._world.crash(name)

    def _fault_of_link(self, step: FaultStep, first: str, second: str) -> None:
        link = self._world.links[first, second]
        match step.action:
            case FaultAction.CUT:
                link.is_broken = True
                self._world.cut(first, second)
            case FaultAction.REPAIR:
                link.is_broken = False
                self._world.connect(first, second)
            case FaultAction.DELAY:
                link.extra_delay = step.delay_ns
            case _:
                link.loss = step.loss


def _is_answered_for(id: PublicationId, brokers: list[Broker]) -> bool:
    return any(broker.answers_for(id) for broker in brokers)


def _alone_answered(dying: Broker, others: list[Broker], id: PublicationId, home: str) -> bool:
    """Whether a publication is lost for a subscriber's broker when `dying` is killed and `others` live on."""
    waiting = {other.me: other.awaits(id) for other in others if other.answers_for(id)}
    if any(dying.me in each for each in waiting.values()):
        # Another will send it to the broker again.
        return False
    if dying.unknown_interest(id):
        # It alone kept the publication for brokers out of reach.
        return True
    if not dying.answers_for(id):
        return dying.retains(id) and not any(other.answers_for(id) or other.retains(id) for other in others)
    if waiting and dying.awaits(id) <= waiting.keys():
        # Whoever got it from the broker answers for it now.
        return False
    return not any(home in each for each in waiting.values())

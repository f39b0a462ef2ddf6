"""Runs a scenario under one protocol, and writes its trace and summary.

A run's folder has the resolved scenario, the provenance, the trace and the summary. The folder gets its name when the
run is complete. A run that fails leaves no folder.
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

import msgpack

from broker.core.broker import Broker
from broker.core.effects import Refuse
from broker.core.inputs import Advertised, ClientConnected, ClientLeft, Published, Subscribed
from broker.core.settings import SECOND, Settings
from broker.progress import ShowProgress
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
    fault_steps,
    metric_of,
    place_clients,
    publications,
    publishing_window_ns,
    to_toml,
)
from experiments.simulate.drop_reasons import RUN_ENDED
from experiments.simulate.oracle import AcceptedPublication, Oracle, is_lost_for
from experiments.simulate.summary import RunSummary, SummaryBuilder
from matching.languages.sql import parse
from matching.registry import describe_backend
from routing.messages import PublicationId
from routing.registry import info
from topologies.random_streams import stream

PATIENCE = 60 * SECOND
"""Longer than a publication takes at saturated brokers. A shorter time would send late publications again."""
PATIENCE_WITH_LOSS = 15 * SECOND
"""For links that lose frames: brokers notice a lost frame only after this time. They notice a broken link at once."""
EVALUATE_AFTER = 60 * SECOND
"""The age at which a publication is evaluated, if no broker is responsible for it and no delivery is missing. If one is
missing, the publication is evaluated at the end of the run, because the delivery may still arrive. A broker keeps a
publication for 30 s for unreachable brokers. A broker that receives it from there keeps it for another 30 s."""
SLICE = SECOND


def simulate(scenario: Scenario, protocol: str, progress: ShowProgress, out: Path | None = None) -> RunSummary:
    """Runs the scenario. If `out` is given, writes the run to that folder."""
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
    """Raises ScenarioError if the folder exists: a run never overwrites another."""
    try:
        is_there = out.exists()
    except OSError as error:
        raise OutputError(out, error.strerror or str(error)) from error
    if is_there:
        raise ScenarioError(f"{out} exists; give another folder, or remove it first")


@contextmanager
def _folder(out: Path) -> Iterator[Path]:
    """A temporary folder that is renamed to `out` when the block completes, and deleted if it fails."""
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
            # rmdir removes empty folders only, so a complete run stays.
            with suppress(OSError):
                folder.rmdir()


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def cost_profile(scenario: Scenario) -> CostProfile:
    """The costs of the brokers' work in this scenario, with its matching index."""
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
        "backend": describe_backend(),
        "costs_ns": dataclasses.asdict(cost_profile(scenario)),
    }


class Run:
    """A run of one scenario under one protocol."""

    def __init__(self, scenario: Scenario, protocol: str, trace: Trace, progress: ShowProgress) -> None:
        self._scenario = scenario
        self._protocol = protocol
        self._progress = progress
        self._overlay = build_overlay(scenario, protocol)
        self._plan: ClientPlan = place_clients(scenario, self._overlay)
        self._summary = SummaryBuilder(trace)
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
            trace=self._summary,
            random=stream(scenario.seed, "simulation/loss"),
            cores=self._cores,
            queue_frames=scenario.brokers.queue_frames,
            metric=metric_of(scenario, protocol),
            starts_known=scenario.brokers.start == "known",
            options=scenario.options_for(protocol),
        )
        self._world.on_accepted = self._on_accepted
        self._world.on_refused = self._on_refused
        self._world.on_confirmed = self._oracle.confirm

    def _settings(self) -> Settings:
        scenario = self._scenario
        # Only routers that know the overlay can change it.
        period_s = scenario.reorganise.period_s if info(self._protocol).can_reorganise else 0.0
        loses_frames = any(fault.kind == "loss" for fault in scenario.faults)
        return Settings(
            is_open=scenario.advertise == "open",
            clock_skew=self._longest_answer(),
            tick=5 * SECOND,
            dead_after=20 * SECOND,
            patience=PATIENCE_WITH_LOSS if loses_frames else PATIENCE,
            reorganise_every=round(period_s * SECOND),
            most_links=scenario.reorganise.max_degree,
        )

    def _longest_answer(self) -> int:
        """An upper bound of the time from an input to its answer. A broker's work takes so long at most."""
        subscriptions = sum(len(each.subscriptions) for each in self._plan.subscribers)
        brokers = self._overlay.brokers
        # A local table, and a table of each cluster.
        tables = 1 + max(max(1, len(each.clusters)) for each in brokers)
        return cost_profile(self._scenario).longest_answer(subscriptions, tables, len(brokers))

    def complete(self, digest: Callable[[], str]) -> RunSummary:
        """Runs to the end and returns the summary. Calls `digest` after all rows are recorded."""
        self._schedule()
        begin, end = publishing_window_ns(self._scenario)
        last = end + round(self._scenario.run.drain_s * SECOND)
        self._run_until(begin, last)
        # Rows before and after publishing: the difference is a broker's work while publications arrive.
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
        brokers = self._live_brokers()
        for publication in self._oracle.remove_all():
            self._evaluate(publication, is_unfinished=is_behind and _is_answered_for(publication.id, brokers))
        return self._summary.summary(
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
        """Runs until no publication is in flight, at most until `last`.

        Returns whether brokers or links were busy all the time. Only then is a publication that has not arrived
        excused. A publication that stays in flight while all brokers are idle is lost.
        """
        is_behind = self._world.has_backlog
        while self._world.now < last and not self._is_done():
            self._run_until(min(last, self._world.now + SLICE), last)
            is_behind = is_behind and self._world.has_backlog
        return is_behind

    def _run_until(self, until: int, last: int) -> None:
        """Runs in slices of simulated time, and reports progress after each."""
        while self._world.now < until:
            self._world.run_until(min(until, self._world.now + SLICE))
            self._evaluate_finished()
            self._progress(f"{self._protocol}: simulated seconds", self._world.now // SECOND, last // SECOND)

    @property
    def unevaluated(self) -> int:
        """The number of publications that the run keeps in memory with their deliveries."""
        return len(self._oracle)

    def _live_brokers(self) -> list[Broker]:
        return [node.broker for node in self._world.nodes.values() if node.broker is not None]

    def _evaluate_finished(self) -> None:
        """Evaluates publications that are finished, in their order, so that a long run does not keep them in memory."""
        brokers = self._live_brokers()
        while (oldest := self._oracle.oldest) is not None:
            if self._world.now < oldest.at + EVALUATE_AFTER or _is_answered_for(oldest.id, brokers):
                return
            if self._is_accounted_for(oldest):
                self._evaluate(oldest)
                self._oracle.remove_oldest()
            else:
                self._oracle.defer_oldest()

    def _is_accounted_for(self, publication: AcceptedPublication) -> bool:
        id = str(publication.id)
        return publication.is_accounted_for(self._summary.receivers(id), is_dropped=self._summary.is_dropped(id))

    def _evaluate(self, publication: AcceptedPublication, *, is_unfinished: bool = False) -> None:
        """Decides the fates of the publication's pairs and removes the publication.

        `is_unfinished`: the run ends before the publication is settled, because brokers were overloaded.
        """
        id = str(publication.id)
        if is_unfinished:
            self._summary.record(DropRow(seconds(self._world.now), publication.id.broker, RUN_ENDED, id, ""))
        is_dropped = self._summary.is_dropped(id)
        self._summary.evaluate(id, publication.fates(self._summary.receivers(id), is_dropped=is_dropped))
        self._world.forget_publication(publication.id)

    def _is_done(self) -> bool:
        """Whether no publication is in flight, and no delivery is missing."""
        nodes = self._world.nodes.values()
        return all(
            not node.busy_cores and not node.queue and (node.broker is None or node.broker.in_custody == 0)
            for node in nodes
        ) and all(map(self._is_accounted_for, self._oracle))

    def _schedule(self) -> None:
        for publisher in self._plan.publishers:
            if publisher.advertisement is not None:
                self._world.submit(publisher.broker, Advertised(publisher.name, "all", publisher.advertisement))
        for subscriber in self._plan.subscribers:
            self._world.schedule(subscriber.arrives_ns, lambda each=subscriber: self._arrive(each))  # type: ignore[misc]
        for step in fault_steps(self._scenario, self._overlay):
            self._world.schedule(step.at_ns, lambda each=step: self._apply_fault(each))  # type: ignore[misc]
        self._publish_next(publications(self._scenario, self._plan))

    def _arrive(self, subscriber: Subscriber) -> None:
        self._world.submit(subscriber.broker, ClientConnected(subscriber.name))
        for number, text in enumerate(subscriber.subscriptions):
            # Before the request is submitted, because the answer may follow at once.
            self._oracle.add_request(subscriber.name, f"n{number}", subscriber.broker, parse(text))
            self._world.submit(subscriber.broker, Subscribed(subscriber.name, f"n{number}", text))
        if subscriber.leaves_ns is not None:
            self._world.schedule(subscriber.leaves_ns, lambda: self._leave(subscriber))

    def _leave(self, subscriber: Subscriber) -> None:
        self._oracle.remove_client(subscriber.name)
        self._world.submit(subscriber.broker, ClientLeft(subscriber.name))

    def _publish_next(self, remaining: Iterator[TimedPublication]) -> None:
        """Schedules one publication at a time, so that a long run does not keep all of them in memory."""
        publication = next(remaining, None)
        if publication is None:
            return

        def publish() -> None:
            reference, self._references = self._references, self._references + 1
            self._published[publication.publisher, reference] = publication
            attributes = msgpack.packb(publication.attributes)
            request = Published(publication.publisher, reference, attributes, bytes(publication.payload_bytes))
            self._world.submit(publication.broker, request)
            self._publish_next(remaining)

        self._world.schedule(publication.at_ns, publish)

    def _on_accepted(self, id: PublicationId, client: str, reference: int, at: int) -> None:
        publication = self._published.pop((client, reference))
        self._oracle.add_publication(id, publication.attributes, at)

    def _on_refused(self, refusal: Refuse) -> None:
        if isinstance(refusal.reference, int):
            self._refused += 1
            self._published.pop((refusal.client, refusal.reference), None)

    def _apply_fault(self, step: FaultStep) -> None:
        now = self._world.now
        subject = step.broker or "-".join(step.link or ())
        self._summary.record(FaultRow(seconds(now), step.action.value, subject, None))
        if step.broker is not None:
            if step.action is FaultAction.RESTART:
                self._world.restart(step.broker)
            else:
                self._kill(step.broker)
        elif step.link is not None:
            self._apply_link_fault(step, *step.link)

    def _kill(self, name: str) -> None:
        killed = self._world.nodes[name].broker
        if killed is None:
            return
        others = [broker for broker in self._live_brokers() if broker is not killed]
        self._oracle.kill_broker(name, lambda each, home: is_lost_for(home, each, killed, others))
        self._world.crash(name)

    def _apply_link_fault(self, step: FaultStep, first: str, second: str) -> None:
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

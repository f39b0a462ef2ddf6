"""`mercast simulate` and `mercast trace`: run scenarios, and follow one publication through a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from experiments.scenario.load import Scenario
    from experiments.simulate.summary import RunSummary


def simulate(
    scenario: Annotated[str, typer.Argument(help="A shipped scenario's name, or a TOML file. `list` shows the names.")],
    protocol: Annotated[
        list[str] | None, typer.Option("--protocol", "-p", help="fbr, d-dbr, merc or flooding; repeat to compare.")
    ] = None,
    matcher: Annotated[str | None, typer.Option(help="The brokers' matching index.")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same run, byte for byte.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Keep each run in a folder below this one: trace and summary.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A key of the scenario, as workload.rate=3000; repeat for more.")
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(help="Work costs what this file of `mercast calibrate` says, instead of the scenario's profile."),
    ] = None,
    check_determinism: Annotated[
        bool, typer.Option("--check-determinism", help="Run everything twice and compare the traces' digests.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The summaries instead of a table.")] = False,
) -> None:
    """Run a scenario in virtual time, under one or more protocols, and compare them.

    What a run owes comes from an oracle that knows every subscription and every broker that was killed.
    A run that misses or repeats something owed ends with exit code 1.
    A run that owes less than half of what was expected is called weak.

    \b
    Examples:
      mercast simulate list
      mercast simulate gtitm-20
      mercast simulate line -p d-dbr -p merc --set clients.subscriptions_each=20
      mercast simulate ./my.toml --seed 7 --out runs/my
      mercast simulate gtitm-20 --matcher pst-bloom --set brokers.profile=native
    """
    from broker.progress import remaining_time_bar
    from experiments.errors import SimulationError
    from experiments.optional_packages import SIMULATION, TRACES, check_packages
    from experiments.output_paths import check_folder
    from experiments.scenario.load import load

    if scenario == "list":
        _list_scenarios()
        return
    check_packages("simulations", "sim", SIMULATION)
    if out is not None:
        check_packages("traces", "sim", TRACES)
    from experiments.simulate.run import check_absent
    from experiments.simulate.run import simulate as run

    loaded = load(scenario, _overrides(protocol, matcher, seed, settings or (), costs))
    if out is not None:
        for name in loaded.protocols:
            check_absent(out / name)
        check_folder(out)
    summaries: list[RunSummary] = []
    with remaining_time_bar() as progress:
        for name in loaded.protocols:
            summaries.append(run(loaded, name, progress, out / name if out is not None else None))
            if check_determinism:
                again = run(loaded, name, progress)
                if again.digest != summaries[-1].digest:
                    raise SimulationError(f"{name}: two runs with seed {loaded.seed} differ: a bug, please report it")
    _print(loaded, summaries, as_json=as_json)
    for summary in summaries:
        if summary.is_weak:
            typer.echo(_weakness(summary), err=True)
    for summary in summaries:
        if summary.failure is not None:
            raise SimulationError(f"{summary.failure} owed")


def _weakness(run: RunSummary) -> str:
    return (
        f"{run.protocol}: a weak run; of {run.expected:,} expected deliveries {run.owed:,} are owed, "
        f"{run.withdrawn:,} withdrawn, {run.lost_with_broker:,} lost with a broker, {run.dropped:,} dropped"
    )


def _overrides(
    protocols: list[str] | None,
    matcher: str | None,
    seed: int | None,
    settings: list[str] | tuple[()],
    costs: Path | None,
) -> dict[str, str]:
    from experiments.errors import ScenarioError

    overrides: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ScenarioError(f"--set {setting}: write key=value, as workload.rate=3000")
        overrides[key] = value
    if protocols:
        overrides["protocols"] = "[" + ", ".join(f'"{name}"' for name in protocols) + "]"
    if matcher is not None:
        overrides["matcher"] = f'"{matcher}"'
    if seed is not None:
        overrides["seed"] = str(seed)
    if costs is not None:
        overrides |= {"brokers.profile": "native", "brokers.costs_file": str(costs)}
    return overrides


def _list_scenarios() -> None:
    from experiments.scenario.load import load, shipped_names

    for name in shipped_names():
        print(f"{name:18} {load(name).title}")


ROWS: tuple[tuple[str, Callable[[RunSummary], str]], ...] = (
    ("published", lambda run: f"{run.published:,}"),
    ("refused", lambda run: f"{run.refused:,}"),
    ("expected deliveries", lambda run: f"{run.expected:,}"),
    ("  withdrawn before they came", lambda run: f"{run.withdrawn:,}"),
    ("  lost with a broker", lambda run: f"{run.lost_with_broker:,}"),
    ("  dropped by name", lambda run: f"{run.dropped:,}"),
    ("  owed", lambda run: f"{run.owed:,}"),
    ("delivered", lambda run: f"{run.delivered:,}"),
    ("owed and missed", lambda run: f"{run.missed:,}"),
    ("delivered twice", lambda run: f"{run.duplicated:,}"),
    ("latency ms, mean", lambda run: f"{run.latency_ms_mean:,.1f}"),
    ("latency ms, median", lambda run: f"{run.latency_ms_p50:,.1f}"),
    ("latency ms, 99%", lambda run: f"{run.latency_ms_p99:,.1f}"),
    ("hops", lambda run: f"{run.hops_mean:.2f}"),
    ("destinations in a message", lambda run: f"{run.destinations_mean:.2f}"),
    ("  at the source", lambda run: f"{run.destinations_at_source_mean:.2f}"),
    ("brokers that match", lambda run: f"{run.matches_mean:.2f}"),
    ("subscriptions stored at a broker", lambda run: f"{run.stored_subscriptions_mean:,.0f}"),
    ("busiest broker, share of its time", lambda run: f"{run.busy_share_max:.0%}"),
    ("routing table bytes, most", lambda run: f"{run.routing_table_bytes_max:,}"),
    ("advertisements that came twice", lambda run: f"{run.duplicate_advertisements:,}"),
    ("messages of publications", lambda run: f"{run.messages.get('Publish', 0):,}"),
    ("messages of changes", lambda run: f"{run.messages.get('Update', 0):,}"),
    ("drops", lambda run: ", ".join(f"{reason}: {count:,}" for reason, count in run.drops.items()) or "none"),
    ("publications held at the end", lambda run: f"{run.held:,}"),
    ("digest of the trace", lambda run: run.digest[:12]),
)


def _print(scenario: Scenario, summaries: list[RunSummary], *, as_json: bool) -> None:
    if as_json:
        import dataclasses
        import json

        print(json.dumps([dataclasses.asdict(summary) for summary in summaries], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    title = f"{scenario.name}, seed {scenario.seed}: {scenario.title}" if scenario.title else scenario.name
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for summary in summaries:
        table.add_column(summary.protocol, justify="right")
    for name, figure in ROWS:
        table.add_row(name, *(figure(summary) for summary in summaries))
    Console().print(table)


def trace(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN ID | PUBLICATION",
            help="A run's folder and a publication's id, as b001/1/17; or a publication, to be sent and followed live.",
        ),
    ],
    server: Annotated[
        str | None,
        typer.Option("--server", "-s", metavar="URL", help="Live: mercast://host:port. Default: $MERCAST_SERVER."),
    ] = None,
    subscriber: Annotated[str | None, typer.Option(help="Say why this client got it, or did not.")] = None,
    payload: Annotated[str, typer.Option(help="Live: text that goes with it.")] = "",
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="Live: how long to follow it at most.")] = "5s",
    as_json: Annotated[bool, typer.Option("--json", help="Live: the steps as JSON.")] = False,
) -> None:
    """Show one publication's way, hop by hop: where it was matched, and who got it.

    In a simulated run, or live: a marked publication is sent to a running
    overlay, and every broker on its way tells what it did with it.

    \b
    Examples:
      mercast trace runs/my/d-dbr b001/1/17
      mercast trace runs/my/d-dbr b001/1/17 --subscriber s003
      mercast trace -s mercast://127.0.0.1:7001 'symbol=IBM price=92.5'
    """
    is_run = server is None and len(what) == 2 and Path(what[0]).is_dir()
    if is_run:
        _trace_run(Path(what[0]), what[1], subscriber)
    elif server is not None or all("=" in word or word.startswith("{") for word in what):
        _trace_live(" ".join(what), server, subscriber, payload, timeout, is_json=as_json)
    else:
        from experiments.errors import SimulationError

        raise SimulationError(
            f"{' '.join(what)!r} is neither a run's folder with a publication's id nor a publication as symbol=IBM"
        )


def _trace_run(run: Path, publication: str, subscriber: str | None) -> None:
    from experiments.simulate.publication_trace import PublicationTrace, has_client

    found = PublicationTrace.read(run, publication)
    for line in found.lines():
        print(line)
    if subscriber is None:
        return
    if has_client(run, subscriber):
        print(found.verdict(subscriber))
    else:
        print(f"no client {subscriber} is in this run's trace: the name is wrong, or nothing in the run was for it")


def _trace_live(
    publication: str, server: str | None, subscriber: str | None, payload: str, timeout: str, *, is_json: bool
) -> None:
    import asyncio

    from broker.client.cli.live_trace import trace_live
    from broker.client.options import chosen_servers
    from broker.config.duration import parse_duration
    from matching.languages.publication import parse_publication

    attributes = parse_publication(publication)
    within_s = parse_duration(timeout) / 1e9
    found = asyncio.run(trace_live(chosen_servers(server), attributes, payload.encode(), within_s))
    if is_json:
        print(found.as_json())
        return
    for line in found.lines():
        print(line)
    print(found.verdict(subscriber) if subscriber is not None else found.summary())


COMMANDS: dict[str, Callable[..., None]] = {"simulate": simulate, "trace": trace}

"""`mercast demo`: one workload on 100 brokers under FBR, D-DBR and MERC, analysed with Spark; one table, one page.

The overlay and its brokers are those of [THESIS 10.1.1]. The workload is smaller, so that the demo takes minutes: it
has 240 publications and a tenth of the subscriptions. The rate is ten times higher, so brokers are as busy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from experiments.errors import SimulationError
from experiments.figures.figure import PROTOCOLS, Figure, Panel, Point, Row, Rows, Scale, Shape
from experiments.figures.points import simulation_point
from experiments.sweeps.sweep import LocalProcesses, RunOutcome

NAME = "demo"
SCENARIO = "gtitm-100"
LATENCY, BUSY, LISTS, STORED = "latency", "busy", "lists", "stored"


def points(_: Scale) -> list[Point]:
    return [simulation_point(SCENARIO, protocol, 0, {}) for protocol in PROTOCOLS]


def rows(of: Point, outcome: RunOutcome) -> Iterable[Row]:
    for measure, column, factor in (
        (LATENCY, "latency_by_broker.latency_ms_mean", 1),
        (BUSY, "broker_load.busy_share", 100),
        (STORED, "broker_state.stored_subscriptions", 1),
    ):
        values = sorted(factor * float(value) for value in outcome.lists[column])
        for rank, value in enumerate(values, start=1):
            yield Row(measure, of.series, rank, value)
    places = outcome.lists["destination_distribution.place"]
    sizes = outcome.lists["destination_distribution.destinations"]
    shares = outcome.lists["destination_distribution.share_at_most"]
    for place, size, share in zip(places, sizes, shares, strict=True):
        if place == "all":
            yield Row(LISTS, of.series, size, 100 * float(share))


def _median(results: Rows, measure: str, series: str) -> float:
    values = sorted(results.values(measure, series))
    return values[len(values) // 2] if values else 0.0


DEMO = Figure(
    name=NAME,
    title="One workload on 100 brokers under three protocols",
    reference="As [THESIS 10.1.1, Figs. 10.1.9 to 10.1.12], smaller",
    claim="D-DBR and MERC deliver the same as FBR in less time, with less work and fewer copies of subscriptions.",
    setting=(
        "100 brokers of degree 6 (MERC: transit-stub, 10 edge brokers with 8 cores), a publisher and a subscriber at "
        "each, 60% with matching advertisements. The paper's 30 subscriptions each are 3 here, at ten times the rate, "
        "20,000 a minute, so that brokers are as busy; 240 publications."
    ),
    points=points,
    rows=rows,
    tables=(
        "delivery",
        "latency",
        "latency_by_broker",
        "hops",
        "destinations",
        "destination_distribution",
        "matching_work",
        "stored_subscriptions",
        "broker_state",
        "broker_load",
        "messages_by_kind",
    ),
    panels=(
        Panel(LATENCY, "Latency at each broker", "brokers, sorted", "milliseconds, mean", is_log=True),
        Panel(BUSY, "Work of each broker", "brokers, sorted", "% of publishing time, one core"),
        Panel(LISTS, "Destination lists", "at most so many destinations", "% of messages"),
        Panel(STORED, "Subscriptions stored", "brokers, sorted", "subscriptions, with copies"),
    ),
    claims=(),
    shapes=tuple(
        Shape(
            f"{series} is better than FBR in {what}",
            lambda results, series=series, measure=measure: (  # type: ignore[misc]
                _median(results, measure, series) < _median(results, measure, "FBR")
            ),
        )
        for series in ("D-DBR", "MERC")
        for what, measure in (("latency", LATENCY), ("work", BUSY), ("subscriptions stored", STORED))
    ),
    minutes={"quick": 1.5, "paper": 1.5},
    has_generated_quotes=True,
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table: a column of the analysis. If a run has several values, the line shows the largest."""

    title: str
    column: str
    form: str = ",.0f"
    factor: float = 1.0


TABLE = (
    Line("publications", "delivery.published"),
    Line("deliveries owed", "delivery.owed"),
    Line("owed and missed", "delivery.missed"),
    Line("delivered twice", "delivery.duplicated"),
    Line("latency, mean ms", "latency.latency_ms_mean", ",.1f"),
    Line("latency, 99% ms", "latency.latency_ms_p99", ",.1f"),
    Line("hops of a delivery", "hops.hops_mean", ".2f"),
    Line("destinations in a message", "destinations.destinations_mean", ".2f"),
    Line("brokers that match a publication", "matching_work.matches_mean", ".1f"),
    Line("subscriptions stored at a broker", "stored_subscriptions.stored_subscriptions_mean"),
    Line("copies of a subscription", "stored_subscriptions.copies_mean", ".1f"),
    Line("work of the busiest broker, % of one core", "broker_load.busy_share", ".0f", 100),
)


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where runs, tables and the page go.")] = Path("runs/demo"),
    jobs: Annotated[int, typer.Option(min=1, help="Simulations at a time.")] = 2,
    force: Annotated[bool, typer.Option("--force", help="Simulate again what is there already.")] = False,
) -> None:
    """Simulate 100 brokers under FBR, D-DBR and MERC, analyse the traces with Spark, and show the difference.

    Takes two to three minutes on two cores. Needs Java for Spark. The runs stay in the folder: look further with
    `mercast analyse` and `mercast trace`.

    \b
    Examples:
      mercast demo
      mercast demo --out /tmp/demo --force
    """
    from experiments.analysis.spark_session import check_programs
    from experiments.optional_packages import FIGURES, PAGES, SIMULATION, TRACES, check_packages

    check_packages("the demo's simulations", "sim,spark", SIMULATION + TRACES)
    check_packages("the demo's figures", "sim,spark", FIGURES)
    check_packages("the demo's pages", "sim,spark", PAGES)
    check_programs()
    from broker.progress import remaining_time_bar
    from experiments.figures.run_figure import evaluate_runs, run_points
    from experiments.figures.spark_columns import with_spark_columns
    from experiments.output_paths import check_file, check_folder
    from experiments.report.page import write_demo_page

    for name in ("runs", "results"):
        check_folder(out / name)
    check_file(out / "index.html")
    typer.echo("1 of 3: simulating 100 brokers under FBR, D-DBR and MERC, about a minute", err=True)
    with remaining_time_bar() as progress, LocalProcesses(out / "runs", jobs) as workers:
        run_outcomes = run_points(
            DEMO, "quick", runs=out / "runs", submit=workers.submit, progress=progress, force=force
        )
    for outcome in run_outcomes.outcomes.values():
        if outcome.error:
            raise SimulationError(f"the demo's simulation failed: {outcome.error}")
    typer.echo("2 of 3: analysing the traces with Spark, about half a minute", err=True)
    outcomes = with_spark_columns(run_outcomes.outcomes, DEMO.tables, DEMO.step_s)
    figure_run = evaluate_runs(DEMO, "quick", run_outcomes, out / "results")
    typer.echo("3 of 3: the table and the page", err=True)
    by_series = {each.series: outcomes[each.spec.folder_name] for each in run_outcomes.points}
    _show(by_series)
    page = write_demo_page(DEMO, figure_run, lines_of(by_series), tuple(by_series), out / "results", out / "index.html")
    typer.echo(f"The page: {page.absolute().as_uri()}")


def lines_of(by_series: dict[str, RunOutcome]) -> list[tuple[str, ...]]:
    """The table's lines: a title and a value for each protocol."""
    return [(line.title, *(_value(line, outcome) for outcome in by_series.values())) for line in TABLE]


def _value(line: Line, outcome: RunOutcome) -> str:
    return format(line.factor * max(float(value) for value in outcome.lists[line.column]), line.form)


def _show(by_series: dict[str, RunOutcome]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="100 brokers, one workload, three protocols (times are virtual)", title_justify="left")
    table.add_column("")
    for series in by_series:
        table.add_column(series, justify="right")
    for line in lines_of(by_series):
        table.add_row(*line)
    Console().print(table)


COMMANDS: dict[str, Callable[..., None]] = {"demo": demo}

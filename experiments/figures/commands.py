"""`mercast experiment list` and `run`: the papers' figures, run and compared."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from experiments.figures.figure import Figure
    from experiments.figures.run_figure import FigureRun
    from experiments.sweeps.spark import SparkTasks
    from experiments.sweeps.sweep import LocalProcesses

RUNS = Path("runs/experiments")


class ScaleChoice(StrEnum):
    QUICK = "quick"
    PAPER = "paper"


def experiment_list(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON instead of a table.")] = False,
) -> None:
    """List the experiments: what the paper claims, and about how many minutes the runs take on one core.

    \b
    Examples:
      mercast experiment list
      mercast experiment list --json
    """
    from experiments.figures.registry import find, names

    figures = [find(name) for name in names()]
    if as_json:
        import json

        shown = [
            {
                "entry": each.name,
                "title": each.title,
                "claim": each.claim,
                "minutes": {str(scale): time for scale, time in each.minutes.items()},
            }
            for each in figures
        ]
        print(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Minutes are for one core, at quick and at the paper's scale", title_justify="left")
    table.add_column("entry", no_wrap=True)
    table.add_column("title")
    table.add_column("the paper's claim")
    table.add_column("quick", justify="right")
    table.add_column("paper", justify="right")
    for each in figures:
        table.add_row(each.name, each.title, each.claim, f"{each.minutes['quick']:g}", f"{each.minutes['paper']:g}")
    Console().print(table)


def experiment_run(
    entries: Annotated[list[str], typer.Argument(help="Names as fig-10.1.9, or all. `experiment list` shows them.")],
    scale: Annotated[ScaleChoice, typer.Option(help="quick: small, for a look. paper: the paper's parameters.")] = (
        ScaleChoice.QUICK
    ),
    jobs: Annotated[int | None, typer.Option(help="Processes on this machine; by default as many as cores.")] = None,
    master: Annotated[
        str | None, typer.Option(help="Run as tasks of a Spark cluster, as spark://host:7077 or local[2].")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Where runs are kept; what is there is not run again.")] = RUNS,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where rows and figures go.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Run everything again.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The comparison as JSON.")] = False,
) -> None:
    """Run experiments, and compare what comes out with what the paper says.

    A run's folder is named after its parameters: finished runs are not repeated.
    A run that fails is a row with its error; the command then ends with exit code 1.

    \b
    Examples:
      mercast experiment run fig-10.1.13
      mercast experiment run fig-10.1.9 --scale paper --jobs 2
      mercast experiment run all --dry-run
      mercast experiment run fig-10.1.13 --scale paper --master spark://127.0.0.1:7077
    """
    from broker.progress import remaining_time_bar
    from experiments.analysis.spark_session import check_programs
    from experiments.errors import FigureError
    from experiments.figures.registry import select
    from experiments.figures.run_figure import evaluate_runs, needs_spark, run_points
    from experiments.optional_packages import FIGURES, SIMULATION, TRACES, check_packages
    from experiments.output_paths import check_folder

    wanted = select(entries)
    if jobs is not None and (jobs < 1 or master is not None):
        raise FigureError(f"--jobs {jobs}: give 1 or more, and not together with --master")
    if dry_run:
        _show_plan(wanted, scale, runs, force=force)
        return
    check_packages("the experiments' runs", "sim,spark", SIMULATION + TRACES)
    check_packages("the experiments' figures", "sim,spark", FIGURES)
    if any(needs_spark(figure, scale.value, runs, force=force) for figure in wanted):
        check_programs()
    results = out if out is not None else RUNS.parent / "results" / scale.value
    for folder in (runs, results):
        check_folder(folder)
    figure_runs: list[FigureRun] = []
    batches = [wanted] if master is not None else [[figure] for figure in wanted]
    with remaining_time_bar() as progress:
        # The session of a cluster must end before the analysis starts its own: traces are here, not on the cluster.
        for batch in batches:
            with _workers(runs, jobs, master) as workers:
                outcomes = [
                    run_points(figure, scale.value, runs=runs, submit=workers.submit, progress=progress, force=force)
                    for figure in batch
                ]
            for figure, each in zip(batch, outcomes, strict=True):
                figure_runs.append(evaluate_runs(figure, scale.value, each, results))
                if not as_json:
                    _show(figure, figure_runs[-1])
    if as_json:
        _show_json(figure_runs)
    typer.echo(
        f"rows and figures are in {results}; `mercast experiment report --results {results}` makes a page", err=True
    )
    if failed := sum(each.provenance.failed for each in figure_runs):
        raise FigureError(f"{failed} of {sum(each.provenance.runs for each in figure_runs)} runs failed; see {results}")


def _workers(runs: Path, jobs: int | None, master: str | None) -> LocalProcesses | SparkTasks:
    import os

    if master is not None:
        from experiments.sweeps.spark import SparkTasks

        return SparkTasks(runs, master)
    from experiments.sweeps.sweep import LocalProcesses

    return LocalProcesses(runs, jobs or os.cpu_count() or 1)


def _show_plan(figures: list[Figure], scale: ScaleChoice, runs: Path, *, force: bool) -> None:
    from experiments.sweeps.sweep import read_outcome

    for figure in figures:
        specs = {point.spec.folder_name: point.spec for point in figure.points(scale.value)}
        done = {name for name, spec in specs.items() if not force and read_outcome(spec, runs) is not None}
        print(
            f"{figure.name}: {len(specs)} runs, {len(done)} finished, about {figure.minutes[scale.value]:g} min in all"
        )
        for name, spec in specs.items():
            print(f"  {'done' if name in done else 'run '}  {name}  {spec}")


def _show(figure: Figure, done: FigureRun) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"{figure.name}, {done.provenance.scale} scale: {figure.title}. {done.overall.capitalize()}."
    table = Table(title=title, title_justify="left")
    table.add_column("claim")
    table.add_column("paper", justify="right")
    table.add_column("ours", justify="right")
    table.add_column("")
    for verdict in done.verdicts:
        mark = {True: "agrees", False: "differs", None: "other scale"}[verdict.agrees]
        table.add_row(verdict.what, verdict.paper, verdict.ours, mark)
    for row in done.rows.errors:
        table.add_row(f"{row.series} at {row.x} failed: {row.error}", "", "", "failed")
    Console().print(table)


def _show_json(figure_runs: list[FigureRun]) -> None:
    import dataclasses
    import json

    shown = [
        {
            "provenance": dataclasses.asdict(each.provenance),
            "overall": each.overall,
            "verdicts": [dataclasses.asdict(verdict) for verdict in each.verdicts],
            "rows": [dataclasses.asdict(row) for row in each.rows.all],
        }
        for each in figure_runs
    ]
    print(json.dumps(shown, indent=2, ensure_ascii=False))


COMMANDS: dict[str, Callable[..., None]] = {
    "experiment list": experiment_list,
    "experiment run": experiment_run,
}

"""`mercast experiment list` and `run`: the papers' figures, run and compared."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from experiments.figures.figure import Figure
    from experiments.figures.run_figure import Performed
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

    entries = [find(name) for name in names()]
    if as_json:
        import json

        shown = [
            {
                "entry": each.name,
                "title": each.title,
                "claim": each.claim,
                "minutes": {str(scale): time for scale, time in each.minutes.items()},
            }
            for each in entries
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
    for each in entries:
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
    from experiments.analysis.spark_session import check_programs
    from experiments.errors import FigureError
    from experiments.figures.registry import chosen
    from experiments.figures.run_figure import conclude, needs_spark, run_entry
    from experiments.optional_packages import FIGURES, SIMULATION, TRACES, check_packages
    from experiments.output_paths import check_folder
    from experiments.progress_bar import progress_bar

    wanted = chosen(entries)
    if jobs is not None and (jobs < 1 or master is not None):
        raise FigureError(f"--jobs {jobs}: give 1 or more, and not together with --master")
    if dry_run:
        _show_plan(wanted, scale, runs, force=force)
        return
    check_packages("the experiments' runs", "sim,spark", SIMULATION + TRACES)
    check_packages("the experiments' figures", "sim,spark", FIGURES)
    if any(needs_spark(entry, scale.value, runs, force=force) for entry in wanted):
        check_programs()
    place = out if out is not None else RUNS.parent / "results" / scale.value
    for folder in (runs, place):
        check_folder(folder)
    performed: list[Performed] = []
    waiting = [wanted] if master is not None else [[entry] for entry in wanted]
    with progress_bar() as progress:
        # A cluster's session ends before the analysis of traces, which are here and not on the cluster, begins its own.
        for together in waiting:
            with _workers(runs, jobs, master) as workers:
                ran = [
                    run_entry(entry, scale.value, runs=runs, submit=workers.submit, progress=progress, force=force)
                    for entry in together
                ]
            for entry, each in zip(together, ran, strict=True):
                performed.append(conclude(entry, scale.value, each, place))
                if not as_json:
                    _show(entry, performed[-1])
    if as_json:
        _show_json(performed)
    typer.echo(f"rows and figures are in {place}; `mercast experiment report --results {place}` makes a page", err=True)
    if failed := sum(each.provenance.failed for each in performed):
        raise FigureError(f"{failed} of {sum(each.provenance.runs for each in performed)} runs failed; see {place}")


def _workers(runs: Path, jobs: int | None, master: str | None) -> LocalProcesses | SparkTasks:
    import os

    if master is not None:
        from experiments.sweeps.spark import SparkTasks

        return SparkTasks(runs, master)
    from experiments.sweeps.sweep import LocalProcesses

    return LocalProcesses(runs, jobs or os.cpu_count() or 1)


def _show_plan(entries: list[Figure], scale: ScaleChoice, runs: Path, *, force: bool) -> None:
    from experiments.sweeps.sweep import finished

    for entry in entries:
        specs = {point.spec.folder_name: point.spec for point in entry.points(scale.value)}
        done = {name for name, spec in specs.items() if not force and finished(spec, runs) is not None}
        print(f"{entry.name}: {len(specs)} runs, {len(done)} finished, about {entry.minutes[scale.value]:g} min in all")
        for name, spec in specs.items():
            print(f"  {'done' if name in done else 'run '}  {name}  {spec}")


def _show(entry: Figure, done: Performed) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"{entry.name}, {done.provenance.scale} scale: {entry.title}. {done.overall.capitalize()}."
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


def _show_json(performed: list[Performed]) -> None:
    import dataclasses
    import json

    shown = [
        {
            "provenance": dataclasses.asdict(each.provenance),
            "overall": each.overall,
            "verdicts": [dataclasses.asdict(verdict) for verdict in each.verdicts],
            "rows": [dataclasses.asdict(row) for row in each.rows.all],
        }
        for each in performed
    ]
    print(json.dumps(shown, indent=2, ensure_ascii=False))


COMMANDS: dict[str, Callable[..., None]] = {
    "experiment list": experiment_list,
    "experiment run": experiment_run,
}

"""`mercast analyse` and `mercast analyse-bench`: traces on Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from threading import Event

    from experiments.analysis.benchmark import SizeResult, Timing
    from experiments.analysis.results import Result


def analyse(
    runs: Annotated[
        list[Path] | None, typer.Argument(help="Folders of runs, or folders that have runs below them.")
    ] = None,
    master: Annotated[
        str, typer.Option(help="Where Spark runs: local[2], local[*] (all cores) or spark://host:7077.")
    ] = "local[*]",
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for tables, figures and the page.")] = Path(
        "analysis"
    ),
    memory: Annotated[str, typer.Option(help="Memory of Spark's Java process, as 2g or 512m.")] = "2g",
    follow: Annotated[
        Path | None, typer.Option(help="Follow the trace folder of a running deployment instead, until Ctrl-C.")
    ] = None,
    every_s: Annotated[
        float, typer.Option("--every", min=0.1, help="With --follow: seconds between refreshes.")
    ] = 10.0,
    refreshes: Annotated[int, typer.Option(min=0, help="With --follow: stop after so many; 0 is never.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON instead of a table.")] = False,
) -> None:
    """Analyse the traces of runs with Spark: tables, figures and one HTML page.

    Reads what `mercast simulate --out` and brokers with a trace folder record.
    Other runs are compared with the first one given.

    With --follow, tables are refreshed from the files that come: latency, hops,
    destinations, messages, links, brokers and drops. Started again with the same
    --out, it goes on where it was.

    \b
    Examples:
      mercast analyse runs/my
      mercast analyse runs/my/fbr runs/my/d-dbr --out compared
      mercast analyse runs/my --master spark://host:7077
      mercast analyse --follow /var/lib/mercast/trace --out live --every 5
    """
    if follow is not None:
        if runs:
            raise typer.BadParameter("give folders of runs, or --follow DIR")
        _follow(follow, master, out, memory, every_s, refreshes)
        return
    from broker.progress import remaining_time_bar
    from experiments.analysis import start_session
    from experiments.analysis.signals import Interrupts
    from experiments.analysis.spark_session import check_memory, check_programs
    from experiments.optional_packages import FIGURES, PAGES, check_packages
    from experiments.output_paths import check_file, check_folder

    check_memory(memory)
    check_programs()
    check_packages("the analysis's figures and pages", "spark", FIGURES + PAGES)
    for name in ("tables", "figures"):
        check_folder(out / name)
    check_file(out / "index.html")
    from experiments.analysis.runs import are_short, differences, find_runs

    folders = find_runs(runs or [])
    if differing := differences(folders):
        typer.echo(f"warning: these runs differ in more than their protocol: {differing}", err=True)
    with Interrupts() as interrupts, remaining_time_bar() as progress:
        progress("starting Spark", 0, 1)
        spark = start_session(master, memory=memory, is_short=are_short(folders))
        try:
            interrupts.attach(spark)
            from experiments.analysis.analyse import analyse as analyse_runs

            done = analyse_runs(spark, folders, out, progress)
        finally:
            spark.stop()
    _print(done.results["summary"], as_json=as_json)
    for result in done.results.values():
        if result.is_cut:
            typer.echo(f"{result.name} has more than {result.rows.num_rows:,} rows; the others were left out", err=True)
    typer.echo(f"page: {done.page}; tables: {out / 'tables'}; figures: {out / 'figures'}", err=True)


def _follow(folder: Path, master: str, out: Path, memory: str, every_s: float, refreshes: int) -> None:
    import time

    from experiments.analysis import start_session
    from experiments.analysis.signals import Interrupts
    from experiments.analysis.spark_session import check_memory, check_programs
    from experiments.output_paths import check_folder

    check_memory(memory)
    check_programs()
    check_folder(out / "tables")
    from experiments.analysis.follow import Follower, check_trace_folder

    check_trace_folder(folder)
    typer.echo("starting Spark; the first tables take about half a minute", err=True)
    with Interrupts() as interrupts:
        spark = start_session(master, memory=memory, is_short=True)
        interrupts.attach(spark)
    try:
        stopping = _stop_event()
        follower = Follower(spark, folder, out)
        done = 0
        while not stopping.is_set():
            refreshed = follower.refresh()
            done += 1
            for problem in refreshed.waiting:
                typer.echo(f"not complete yet: {problem}", err=True)
            if not follower.has_trace:
                typer.echo(f"no broker records in {folder} yet; start them with --trace {folder}", err=True)
            changed = f"{len(refreshed.tables)} tables changed" if refreshed.tables else "nothing is new"
            typer.echo(f"{time.strftime('%H:%M:%S')} {changed}: {refreshed.headline or 'empty so far'}", err=True)
            if done == refreshes:
                break
            stopping.wait(every_s)
        typer.echo(f"stopped; tables: {out / 'tables'}", err=True)
    finally:
        spark.stop()


def _stop_event() -> Event:
    """An event that Ctrl-C or SIGTERM sets, so that the current refresh completes. A second signal ends the process."""
    import signal
    import threading

    stop_event = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        stop_event.set()
        typer.echo("stopping after this refresh", err=True)
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)

    for number_text in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number_text, stop)
    return stop_event


def _print(summary: Result, *, as_json: bool) -> None:
    rows = summary.rows.to_pylist()
    if as_json:
        import json

        print(json.dumps(rows, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    from experiments.analysis.page import column_title, number_text

    table = Table()
    table.add_column("")
    for row in rows:
        table.add_column(row["run"], justify="right")
    for name in summary.rows.column_names:
        if name != "run":
            table.add_row(column_title(name), *(number_text(row[name]) for row in rows))
    Console().print(table)


def analyse_bench(
    rows: Annotated[str, typer.Option(help="Sizes of the generated traces in rows of hops.")] = "2000000,20000000",
    table: Annotated[
        list[str] | None, typer.Option("--table", "-t", help="A table of the analysis; repeat for more. Default: all.")
    ] = None,
    cores: Annotated[int, typer.Option(min=1, help="Cores for Spark, and threads for DuckDB.")] = 2,
    memory: Annotated[str, typer.Option(help="Java's heap, and DuckDB's limit.")] = "2g",
    keep: Annotated[
        Path | None, typer.Option(help="Keep the generated traces there, and use those that are there already.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A row for each table and size instead of a table.")] = False,
) -> None:
    """Show how the analysis scales: time of each table, memory, and DuckDB beside it.

    Traces are generated, with publications of 20 hops and 5 deliveries among 100
    brokers. CPU seconds are Java's, and hardly depend on what else the machine does.

    \b
    Examples:
      mercast analyse-bench
      mercast analyse-bench --rows 1000000,4000000 -t latency -t routing_accuracy
      mercast analyse-bench --keep /var/tmp/traces --json
    """
    import tempfile
    from contextlib import ExitStack

    from broker.progress import remaining_time_bar
    from experiments.analysis import start_session
    from experiments.analysis.signals import Interrupts
    from experiments.analysis.spark_session import check_memory, check_programs
    from experiments.errors import BenchPlanError
    from experiments.option_values import whole_numbers
    from experiments.output_paths import check_folder
    from topologies.errors import nearest

    sizes = whole_numbers("--rows", rows)
    if not sizes or min(sizes) < 1:
        raise BenchPlanError(f"--rows {rows}: write sizes of 1 or more with commas between, as 2000000,20000000")
    check_memory(memory)
    if keep is not None:
        check_folder(keep)
    check_programs()
    from experiments.analysis.benchmark import BenchmarkObserver, benchmark
    from experiments.analysis.tables import RESULTS

    for name in table or ():
        if name not in RESULTS:
            raise BenchPlanError(f"--table {name}: {nearest(name, RESULTS)}")
    with Interrupts() as interrupts, ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mercast-bench-")))
        spark = start_session(f"local[{cores}]", memory=memory)
        stack.callback(spark.stop)
        interrupts.attach(spark)
        progress = stack.enter_context(remaining_time_bar())
        chosen = table or list(RESULTS)
        observer = BenchmarkObserver(progress, _print_timing)
        measured = list(benchmark(spark, folder, sizes, chosen, cores=cores, memory=memory, observer=observer))
    _print_measured(measured, as_json=as_json)


def _print_timing(timing: Timing) -> None:
    duckdb = f", DuckDB {timing.duckdb_s:.1f} s" if timing.duckdb_s is not None else ""
    line = f"{timing.hop_rows:,} hops: {timing.table} {timing.wall_s:.1f} s, CPU {timing.cpu_s:.1f} s{duckdb}"
    typer.echo(line, err=True)


def _print_measured(measured: list[SizeResult], *, as_json: bool) -> None:
    if as_json:
        import dataclasses
        import json

        print(json.dumps([dataclasses.asdict(each) for each in measured], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    shown = Table(title="Seconds for each table: Spark's wall clock and CPU, DuckDB's wall clock", title_justify="left")
    shown.add_column("hops")
    for each in measured:
        for word in ("Spark", "CPU", "DuckDB"):
            shown.add_column(f"{each.hop_rows:,}\n{word}", justify="right")
    for timings in zip(*(each.timings for each in measured), strict=True):
        cells: list[str] = []
        for timing in timings:
            duckdb = f"{timing.duckdb_s:.1f}" if timing.duckdb_s is not None else ""
            cells += [f"{timing.wall_s:.1f}", f"{timing.cpu_s:.1f}", duckdb]
        shown.add_row(timings[0].table, *cells)
    sums = [(f"{each.wall_s:.0f}", f"{each.cpu_s:.0f}", "") for each in measured]
    shown.add_row("all", *(cell for cells in sums for cell in cells), style="bold")
    # A file without a width or a small terminal must not cut numbers off.
    needed = Console(width=1_000).measure(shown).maximum
    Console(width=max(Console().width, needed)).print(shown)
    for each in measured:
        per_million = each.cpu_s / (each.hop_rows / 1e6)
        memory = f"most memory {each.spark_peak_mb:,.0f} MB (Java and Python), DuckDB {each.duckdb_peak_mb:,.0f} MB"
        print(f"{each.hop_rows:,} hops: {per_million:.1f} CPU s for a million; {memory}")


COMMANDS: dict[str, Callable[..., None]] = {"analyse": analyse, "analyse-bench": analyse_bench}

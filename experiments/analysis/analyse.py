"""Runs the whole analysis of runs: writes all tables, figures and the page to a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from experiments.analysis.page import page
from experiments.analysis.plots import DrawnFigure, draw_all
from experiments.analysis.results import Result, collect, spark_errors, write
from experiments.analysis.runs import RunFolder, Runs, read
from experiments.analysis.summary import comparison, summary
from experiments.analysis.tables import RESULTS, step_for

AT_ONCE = 3
"""Queries in parallel. The time of small tables is mostly planning, in one thread for each query; more threads only
wait for each other."""


@dataclass(frozen=True, slots=True)
class Analysis:
    results: dict[str, Result]
    """Results by name: those of `RESULTS`, the `summary`, and the `comparison` of each run with the first."""
    figures: tuple[DrawnFigure, ...]
    page: Path


def analyse(
    session: SparkSession, folders: Sequence[RunFolder], out: Path, progress: Callable[[str, int, int], None]
) -> Analysis:
    with spark_errors():
        runs = read(session, folders)
        results = all_tables(runs, progress)
        progress("summary", 0, 1)
        frames = {name: session.createDataFrame(result.rows) for name, result in results.items()}
        results["summary"] = collect("summary", summary(frames), ())
        whole = session.createDataFrame(results["summary"].rows)
        results["comparison"] = collect("comparison", comparison(whole, folders[0].label), ("figure",))
    for result in results.values():
        write(result, out / "tables")
    progress("figures", 0, 1)
    figures = draw_all(results, [folder.label for folder in folders], out / "figures")
    path = out / "index.html"
    path.write_text(page(folders, results, figures, session.version), encoding="utf-8")
    return Analysis(results, tuple(figures), path)


def all_tables(runs: Runs, progress: Callable[[str, int, int], None]) -> dict[str, Result]:
    progress("tables", 0, len(RESULTS))
    step_s = step_for(runs.publications)
    made: dict[str, Result] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tasks = [
            pool.submit(lambda name, table: collect(name, table.make(runs, step_s), table.order), name, table)
            for name, table in RESULTS.items()
        ]
        try:
            for task in as_completed(tasks):
                made[task.result().name] = task.result()
                progress("tables", len(made), len(RESULTS))
        finally:
            for task in tasks:
                task.cancel()
    return {name: made[name] for name in RESULTS}

"""Tables of the Spark analysis as columns of a run's outcome.

The runs of an experiment are analysed together, in one go. What is found is kept beside each run, in `tables.json`, so
that rows can be made again without Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from experiments.sweeps.sweep import RunOutcome, Value

KEPT = "tables.json"
MASTER = "local[2]"

Columns = dict[str, dict[str, list[Value]]]
"""Of each table, its columns; rows are sorted as the analysis sorts the table."""


def with_tables(outcomes: Mapping[str, RunOutcome], tables: Sequence[str], step_s: float) -> dict[str, RunOutcome]:
    """The outcomes with the tables' columns among their lists, as `broker_load.busy_share`."""
    if not tables:
        return dict(outcomes)
    names = _names(tables, step_s)
    found = {key: _kept(Path(each.folder)) for key, each in outcomes.items() if not each.error}
    lacking = {key: Path(outcomes[key].folder) for key, kept in found.items() if not names.keys() <= kept.keys()}
    if lacking:
        for key, made in _analysed(lacking, names, step_s).items():
            found[key] |= made
            _keep(lacking[key], found[key])
    return {
        key: replace(each, lists={**each.lists, **_as_lists(found[key], names)}) if key in found else each
        for key, each in outcomes.items()
    }


def are_kept(folder: Path, tables: Sequence[str], step_s: float) -> bool:
    """Whether the tables of the run in this folder are there already, so that they need no Spark."""
    return _names(tables, step_s).keys() <= _kept(folder).keys()


def _names(tables: Sequence[str], step_s: float) -> dict[str, str]:
    """Tables by the names under which they are kept."""
    return {f"{table}@{step_s:g}" if table.endswith("over_time") else table: table for table in tables}


def _as_lists(kept: Columns, names: Mapping[str, str]) -> dict[str, tuple[Value, ...]]:
    return {
        f"{table}.{column}": tuple(values) for name, table in names.items() for column, values in kept[name].items()
    }


def _kept(folder: Path) -> Columns:
    path = folder / KEPT
    found: Columns = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def _keep(folder: Path, columns: Columns) -> None:
    unfinished = folder / f".{KEPT}"
    unfinished.write_text(json.dumps(columns) + "\n", encoding="utf-8")
    unfinished.rename(folder / KEPT)


def _analysed(folders: Mapping[str, Path], names: Mapping[str, str], step_s: float) -> dict[str, Columns]:
    from experiments import analysis
    from experiments.analysis.spark_session import check_programs

    check_programs()
    from experiments.analysis.runs import are_short, find_runs, read
    from experiments.analysis.tables import RESULTS

    found_runs = find_runs(folders.values())
    runs = read(analysis.session(MASTER, is_short=are_short(found_runs)), found_runs)
    key_of = {run.label: key for run in runs.folders for key, path in folders.items() if run.path == path.resolve()}
    found: dict[str, Columns] = {key: {} for key in folders}
    for name, table in names.items():
        made = RESULTS[table].make(runs, step_s).sort("run", *RESULTS[table].order)
        columns = [column for column in made.columns if column not in ("run", "protocol")]
        for key in folders:
            found[key][name] = {column: [] for column in columns}
        for row in made.toArrow().to_pylist():
            for column in columns:
                found[key_of[row["run"]]][name][column].append(row[column])
    return found

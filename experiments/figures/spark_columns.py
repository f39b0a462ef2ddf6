"""Tables of the Spark analysis as columns of a run's outcome.

Spark analyses all runs of a figure together. The columns are written to `tables.json` in each run's folder, so that
rows can be made again without Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from experiments.sweeps.sweep import RunOutcome, Value

COLUMNS_FILE = "tables.json"
MASTER = "local[2]"

Columns = dict[str, dict[str, list[Value]]]
"""Columns of each table. Values are in the order in which the analysis sorts the table."""


def with_spark_columns(
    outcomes: Mapping[str, RunOutcome], tables: Sequence[str], step_s: float
) -> dict[str, RunOutcome]:
    """Adds the tables' columns to the outcomes' lists, under names such as `broker_load.busy_share`.

    Starts Spark if a run's folder lacks a table.
    """
    if not tables:
        return dict(outcomes)
    names = _stored_names(tables, step_s)
    columns_of = {key: _read_columns(Path(each.folder)) for key, each in outcomes.items() if not each.error}
    missing = {
        key: Path(outcomes[key].folder) for key, columns in columns_of.items() if not names.keys() <= columns.keys()
    }
    if missing:
        for key, made in _analyse(missing, names, step_s).items():
            columns_of[key] |= made
            _write_columns(missing[key], columns_of[key])
    return {
        key: replace(each, lists={**each.lists, **_as_lists(columns_of[key], names)}) if key in columns_of else each
        for key, each in outcomes.items()
    }


def has_spark_columns(folder: Path, tables: Sequence[str], step_s: float) -> bool:
    """Whether the run's folder has the columns of these tables, so that Spark is not needed."""
    return _stored_names(tables, step_s).keys() <= _read_columns(folder).keys()


def _stored_names(tables: Sequence[str], step_s: float) -> dict[str, str]:
    """Maps the name under which a table is stored to the table. Tables over time have their step in the name."""
    return {f"{table}@{step_s:g}" if table.endswith("over_time") else table: table for table in tables}


def _as_lists(columns: Columns, names: Mapping[str, str]) -> dict[str, tuple[Value, ...]]:
    return {
        f"{table}.{column}": tuple(values) for name, table in names.items() for column, values in columns[name].items()
    }


def _read_columns(folder: Path) -> Columns:
    path = folder / COLUMNS_FILE
    columns: Columns = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return columns


def _write_columns(folder: Path, columns: Columns) -> None:
    unfinished = folder / f".{COLUMNS_FILE}"
    unfinished.write_text(json.dumps(columns) + "\n", encoding="utf-8")
    unfinished.rename(folder / COLUMNS_FILE)


def _analyse(folders: Mapping[str, Path], names: Mapping[str, str], step_s: float) -> dict[str, Columns]:
    from experiments import analysis
    from experiments.analysis.spark_session import check_programs

    check_programs()
    from experiments.analysis.runs import are_short, find_runs, read
    from experiments.analysis.tables import RESULTS

    found_runs = find_runs(folders.values())
    runs = read(analysis.start_session(MASTER, is_short=are_short(found_runs)), found_runs)
    key_of = {run.label: key for run in runs.folders for key, path in folders.items() if run.path == path.resolve()}
    columns_of: dict[str, Columns] = {key: {} for key in folders}
    for name, table in names.items():
        made = RESULTS[table].make(runs, step_s).sort("run", *RESULTS[table].order)
        columns = [column for column in made.columns if column not in ("run", "protocol")]
        for key in folders:
            columns_of[key][name] = {column: [] for column in columns}
        for row in made.toArrow().to_pylist():
            for column in columns:
                columns_of[key_of[row["run"]]][name][column].append(row[column])
    return columns_of

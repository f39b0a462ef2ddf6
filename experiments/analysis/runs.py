"""Finds runs on disk, and reads their traces as DataFrames.

Each DataFrame has the columns of a table as `broker.trace` defines them, with two exceptions. `run` is a label that is
unique for each folder, because a sweep writes one scenario many times under one name. `protocol` is added.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from broker.trace.code_version import CodeVersion
from broker.trace.files import arrow_schema, complete_files
from broker.trace.schema import TABLES, TraceError, spark_ddl
from experiments.analysis.columns import RUN_COLUMNS
from experiments.analysis.errors import NoRunsError

UNKNOWN_PROTOCOL = "unknown"
NOT_RECORDED = "not recorded"
SHORT_BYTES = 30_000_000
DIFFERENCES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A folder with a trace, described by its provenance."""

    label: str
    path: Path
    parts: tuple[Path, ...]
    """Folders that have a `trace`: the run's folder, or one for each start of each broker of a deployment."""
    scenario: str
    protocol: str
    seed: int | None
    code: str
    """The version and commit that recorded the run, if recorded."""
    is_finished: bool
    """Whether the run is finished. A finished run has every table; a deployment has only tables with rows."""

    @property
    def trace_bytes(self) -> int:
        return sum(path.stat().st_size for part in self.parts for path in part.glob("trace/*/[!._]*.parquet"))


@dataclass(frozen=True, slots=True)
class Runs:
    """The tables of some runs."""

    folders: tuple[RunFolder, ...]
    hops: DataFrame
    matches: DataFrame
    deliveries: DataFrame
    brokers: DataFrame
    publications: DataFrame
    expectations: DataFrame
    drops: DataFrame
    faults: DataFrame
    links: DataFrame


def are_short(folders: Iterable[RunFolder]) -> bool:
    """Whether the runs are so small that the analysis ends before Java has optimised its code."""
    return sum(folder.trace_bytes for folder in folders) < SHORT_BYTES


def find_runs(paths: Iterable[Path]) -> tuple[RunFolder, ...]:
    """The runs in these folders, each once, in the order given and by name below a folder."""
    found: dict[Path, tuple[Path, ...]] = {}
    for path in paths:
        if not path.is_dir():
            raise NoRunsError(f"{path} is {'a file' if path.exists() else 'not there'}; give a run's folder")
        below = dict(_runs_below(path.resolve()))
        if not below:
            raise NoRunsError(
                f"{path} holds no run: no folder below it has a trace. One is made by: mercast simulate line --out DIR"
            )
        found |= below
    if not found:
        raise NoRunsError("no folder is given; one with runs is made by: mercast simulate line --out DIR")
    common = Path(os.path.commonpath([folder.parent for folder in found]))
    return tuple(describe_run(folder, parts, folder.relative_to(common).as_posix()) for folder, parts in found.items())


def differences(folders: Sequence[RunFolder]) -> str:
    """A text with the differences between runs except the protocol; empty if there are none."""
    found = {
        name: values
        for name, values in (
            ("scenario", list(dict.fromkeys(run.scenario for run in folders))),
            ("seed", list(dict.fromkeys(str(run.seed) for run in folders if run.seed is not None))),
        )
        if len(values) > 1
    }
    if "scenario" not in found:
        settings = [keys for run in folders if (keys := _settings(run.path))]
        for key in dict.fromkeys(key for keys in settings for key in keys):
            values = list(dict.fromkeys(keys.get(key, "not set") for keys in settings))
            if len(values) > 1:
                found[key] = values
    texts = [f"{name} ({_first_few(values)})" for name, values in found.items()]
    return _first_few(texts)


def _first_few(words: Sequence[str]) -> str:
    more = f" and {len(words) - DIFFERENCES_SHOWN} more" if len(words) > DIFFERENCES_SHOWN else ""
    return ", ".join(words[:DIFFERENCES_SHOWN]) + more


def _settings(folder: Path) -> dict[str, str]:
    """The keys of a simulated run's scenario as `section.key`; empty for a deployment."""
    path = folder / "scenario.toml"
    if not path.exists():
        return {}
    try:
        scenario = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TraceError(f"{path} is damaged: {error}; without it the run cannot be compared") from error
    flat: dict[str, str] = {}
    for key, value in scenario.items():
        if isinstance(value, dict):
            flat |= {f"{key}.{name}": str(each) for name, each in value.items()}
        elif key not in ("name", "title", "protocols", "seed"):
            flat[key] = str(value)
    return flat


def _runs_below(path: Path) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """The folders of runs below a path, each with its parts."""
    if (path / "trace").is_dir():
        yield path, (path,)
        return
    folders = [below for below in sorted(path.iterdir()) if below.is_dir() and not below.name.startswith(".")]
    brokers = tuple(folder for folder in folders if (folder / "trace").is_dir() and "broker" in _provenance(folder))
    if brokers:
        yield path, brokers
    for folder in folders:
        if folder not in brokers:
            yield from _runs_below(folder)


def _provenance(folder: Path) -> dict[str, object]:
    path = folder / "provenance.json"
    if not path.exists():
        return {}
    try:
        origin = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TraceError(f"{path} is damaged: {error}; without it the run's protocol is not known") from error
    if not isinstance(origin, dict):
        raise TraceError(f"{path} is damaged: it holds no object")
    return origin


def describe_run(folder: Path, parts: Sequence[Path], label: str) -> RunFolder:
    """Describes a run by its provenance. A deployment may have none."""
    origin = _provenance(parts[0]) if parts else {}
    seed = origin.get("seed")
    return RunFolder(
        label,
        folder,
        tuple(parts),
        scenario=str(origin.get("scenario") or origin.get("overlay") or folder.name),
        protocol=str(origin.get("protocol") or UNKNOWN_PROTOCOL),
        seed=seed if isinstance(seed, int) else None,
        code=_code(origin),
        is_finished=(folder / "summary.json").exists(),
    )


def _code(origin: Mapping[str, object]) -> str:
    if "commit" not in origin:
        return NOT_RECORDED
    is_changed = origin.get("is_changed")
    code = CodeVersion(str(origin.get("mercast")), str(origin["commit"]), is_changed if is_changed is True else None)
    return str(code)


def read(session: SparkSession, folders: Sequence[RunFolder]) -> Runs:
    """Reads the runs. Checks the end of every file first, so that a damaged file is named before the work starts."""
    files = {name: [(path, run) for run in folders for path in _files(run, name)] for name in TABLES}
    for run in folders:
        if not any(owner is run for owned in files.values() for _, owner in owned):
            raise TraceError(f"{run.path} has no complete file of a trace: nothing was recorded yet")
    return Runs(tuple(folders), **{name: _read(session, name, owned) for name, owned in files.items()})


def _files(run: RunFolder, table: str) -> list[Path]:
    has_files = [part for part in run.parts if any((part / "trace" / table).glob("[!._]*.parquet"))]
    parts = run.parts if run.is_finished else has_files
    return [path for part in parts for path in complete_files(part, table)]


def _read(session: SparkSession, table: str, files: Sequence[tuple[Path, RunFolder]]) -> DataFrame:
    names = [column.name for column in TABLES[table].row_columns]
    columns = [*RUN_COLUMNS, *names]
    if not files:
        stored = arrow_schema(TABLES[table])
        empty = pa.schema([*(pa.field(name, pa.string()) for name in RUN_COLUMNS), *list(stored)[1:]]).empty_table()
        return session.createDataFrame(empty)
    rows = session.read.schema(spark_ddl(TABLES[table])).parquet(*(str(path) for path, _ in files)).drop("run")
    owners = dict(files)
    if len({run.label for run in owners.values()}) == 1:
        run = files[0][1]
        return rows.select(f.lit(run.label).alias("run"), f.lit(run.protocol).alias("protocol"), *names)
    owned = [(uri, owners[path].label, owners[path].protocol) for uri, path in _by_uri(rows)]
    labels = session.createDataFrame(pa.table(dict(zip(("uri", *RUN_COLUMNS), zip(*owned, strict=True), strict=True))))
    uri = f.col("_metadata.file_path")
    labelled = rows.withColumn("uri", uri).join(f.broadcast(labels), "uri", "left")
    unknown = f.raise_error(f.concat(f.lit("no run is known for "), f.col("uri"))).cast("string")
    return labelled.withColumn("run", f.coalesce("run", unknown)).select(columns)


def _by_uri(rows: DataFrame) -> Iterator[tuple[str, Path]]:
    """Maps Spark's names of files, which quote some characters, to paths.

    Spark lists a local file as `file:///…` and calls it `file:/…` in the metadata of its rows.
    """
    for uri in rows.inputFiles():
        parts = urlparse(uri)
        path = Path(unquote(parts.path))
        for start in dict.fromkeys((uri.removesuffix(parts.path), f"{parts.scheme}:", f"{parts.scheme}://")):
            yield f"{start}{parts.path}", path

"""Results of figures as small files: rows (CSV), plots (PNG, SVG) and provenance (JSON)."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import platform
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from broker.trace.code_version import code_version
from experiments.errors import FigureError
from experiments.figures.figure import SCALES, Row, Rows, Scale, X
from experiments.sweeps.sweep import RunOutcome

COLUMNS = ("entry", "scale", "measure", "series", "x", "y", "error")
NOT_RECORDED = "not recorded"
PACKAGES = ("mercast", "simpy", "numpy", "pyarrow", "pyspark", "matplotlib")


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a figure's rows were made: command, seed, date, versions, machine and code."""

    entry: str
    scale: Scale
    command: str
    seed: int
    date: str
    runs: int
    failed: int
    seconds: float
    """CPU time of all runs together."""
    backend: str
    versions: Mapping[str, str]
    machine: str
    code: tuple[str, ...] = ()
    """The code that made the runs and the rows. Has one element if all is of one commit; old results have none."""


@dataclass(frozen=True, slots=True)
class FigureResult:
    """The rows of a figure as read from a folder of results."""

    provenance: Provenance
    rows: Rows


def provenance_of(name: str, scale: Scale, seed: int, outcomes: Collection[RunOutcome]) -> Provenance:
    from matching.registry import describe_backend

    successful = [outcome for outcome in outcomes if not outcome.error]
    return Provenance(
        entry=name,
        scale=scale,
        command=f"mercast experiment run {name} --scale {scale}",
        seed=seed,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        runs=len(outcomes),
        failed=len(outcomes) - len(successful),
        seconds=round(sum(outcome.seconds for outcome in successful), 1),
        backend=describe_backend(),
        versions={"python": platform.python_version(), **_versions()},
        machine=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        code=tuple(dict.fromkeys([*(outcome.code or NOT_RECORDED for outcome in successful), str(code_version())])),
    )


def _versions() -> dict[str, str]:
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            # Not every figure needs every package.
            continue
    return versions


def write_rows(provenance: Provenance, rows: Rows, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{provenance.entry}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows.all:
            y = "" if row.y is None else f"{row.y:.6g}"
            writer.writerow([provenance.entry, provenance.scale, row.measure, row.series, row.x, y, row.error])
    document = json.dumps(dataclasses.asdict(provenance), indent=1)
    (folder / f"{provenance.entry}.json").write_text(document + "\n", encoding="utf-8")


def read_result(name: str, folder: Path) -> FigureResult | None:
    """The figure's result in this folder; None if it has not been run."""
    document, table = (folder / f"{name}.{kind}" for kind in ("json", "csv"))
    if not document.is_file():
        return None
    if not table.is_file():
        raise FigureError(f"{table} is missing beside {document.name}; run the experiment again: {name}")
    try:
        content = json.loads(document.read_text(encoding="utf-8"))
        provenance = Provenance(**{**content, "code": tuple(content.get("code", ()))})
        rows = Rows(_read_rows(table))
    except (TypeError, ValueError, KeyError) as error:
        raise FigureError(f"{folder}: the results of {name} are damaged ({error}); run the experiment again") from error
    if provenance.scale not in SCALES:
        raise FigureError(f"{document}: scale is {provenance.scale!r}; it must be one of {', '.join(SCALES)}")
    return FigureResult(provenance, rows)


def _read_rows(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Row(row["measure"], row["series"], _x(row["x"]), float(row["y"]) if row["y"] else None, row["error"])
            for row in csv.DictReader(file)
        ]


def _x(text: str) -> X:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number == int(number) else number

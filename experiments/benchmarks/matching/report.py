"""Prints the result of a comparison of matching indexes as tables or as JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from broker.trace.code_version import code_version
from experiments.benchmarks.matching.plan import BenchResult, IndexResult

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = (
    "index",
    "add\nµs",
    "add all\ns",
    "match\nµs",
    "of\nscan",
    "candi-\ndates",
    "evalu-\nated",
    "memory",
    "remove\nµs",
)


def print_rows(result: BenchResult) -> None:
    print(as_json(result))


def print_tables(result: BenchResult) -> None:
    from rich.console import Console

    tables = [comparison(result), scaling(result)] if result.plan.scaling else [comparison(result)]
    # A file without a width or a small terminal must not cut numbers off.
    unlimited = Console(width=1_000)
    needed = max(unlimited.measure(table).maximum for table in tables)
    console = Console(width=max(Console().width, needed))
    for table in tables:
        console.print(table)


def as_json(result: BenchResult) -> str:
    """A list with one row for each index. Each row has all parameters of the run."""
    plan = result.plan
    provenance = {
        "workload": plan.workload,
        "notice": result.notice,
        "parameters": dataclasses.asdict(plan.parameters),
        "subscriptions": plan.subscriptions,
        "requested_publications": plan.publications,
        "scan_publications": result.scan_publications,
        "warm_up": plan.warm_up,
        "rounds": plan.rounds,
        "seed": plan.seed,
        "backend": result.backend,
        "python": result.python,
        "code": str(code_version()),
    }
    rows = [dataclasses.asdict(row) | provenance for row in result.results]
    return json.dumps(rows, indent=2)


def comparison(result: BenchResult) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(
        title=_title(result),
        caption=_caption(result),
        box=box.SIMPLE_HEAD,
        padding=(0, 0),
        title_justify="left",
        caption_justify="left",
    )
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column == "index" else "right", no_wrap=True)
    for row in result.results:
        table.add_row(*_cells(row))
    return table


def scaling(result: BenchResult) -> Table:
    """Time to add one subscription, by the number of subscriptions. It is constant if construction is linear."""
    from rich import box
    from rich.table import Table

    table = Table(title="µs to add a subscription, by their number", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("index", no_wrap=True)
    for size in result.plan.scaling:
        table.add_column(f"{size:,}", justify="right", no_wrap=True)
    table.add_column("last / first", justify="right", no_wrap=True)
    for row in result.results:
        if row.scaling:
            times = [point.construction_us for point in row.scaling]
            table.add_row(_label(row), *(f"{time:,.1f}" for time in times), f"{times[-1] / times[0]:.2f}")
    return table


def _title(result: BenchResult) -> str:
    plan = result.plan
    baseline = result.results[0]
    return (
        f"{plan.workload}, {plan.subscriptions:,} subscriptions, {plan.publications:,} publications, seed {plan.seed}: "
        f"a publication matches {baseline.matched:,.1f} ({baseline.matched / plan.subscriptions:.3%})"
    )


def _caption(result: BenchResult) -> str:
    rounds = result.plan.rounds
    baseline = result.results[0]
    is_part = baseline.publications < result.plan.publications
    compared = f" on {baseline.publications:,} of the publications" if is_part else ""
    return (
        f"CPU time, best of {rounds} round{'s' * (rounds != 1)}; {result.backend} backend, Python {result.python}. "
        f"All gave the scan's answers{compared}, checksum {baseline.checksum}."
    )


def _cells(row: IndexResult) -> tuple[str, ...]:
    return (
        _label(row),
        f"{row.construction_us:,.1f}",
        f"{row.construction_s:,.2f}",
        f"{row.matching_us:,.1f}",
        f"{row.ratio_to_scan:.4f}",
        f"{row.candidates:,.1f}",
        f"{row.evaluated:,.1f}",
        _in_bytes(row.bytes),
        f"{row.removal_us:,.1f}",
    )


def _label(row: IndexResult) -> str:
    options = ", ".join(f"{name}={value}" for name, value in row.options.items())
    return f"{row.index} ({options})" if options else row.index


def _in_bytes(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"

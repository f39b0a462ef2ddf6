"""The result of `mercast bench` as a table or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from broker.client.cli.bench import BenchResult


def print_result(result: BenchResult, *, is_json: bool) -> None:
    if is_json:
        figures = {
            **asdict(result),
            "published_per_s": result.published_per_s,
            "delivered_per_s": result.delivered_per_s,
            "missing": result.missing,
        }
        print(json.dumps(figures, indent=2))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    options = result.options
    title = (
        f"{options.publishers} publishing, {options.subscribers} subscribing with {options.subscriptions:,} "
        f"subscriptions, {options.matching:.2%} of them match, {options.size} bytes, {options.mode}"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_header=False)
    table.add_column("")
    table.add_column("", justify="right")
    for name, figure in (
        ("publications a second", f"{result.published_per_s:,.0f}"),
        ("deliveries a second", f"{result.delivered_per_s:,.0f}"),
        ("latency ms, mean", f"{result.latency_ms_mean:,.2f}"),
        ("latency ms, median", f"{result.latency_ms_p50:,.2f}"),
        ("latency ms, 90%", f"{result.latency_ms_p90:,.2f}"),
        ("latency ms, 99%", f"{result.latency_ms_p99:,.2f}"),
        ("latency ms, 99.9%", f"{result.latency_ms_p999:,.2f}"),
        ("latency ms, longest", f"{result.latency_ms_max:,.2f}"),
        ("deliveries due in the whole run", f"{result.expected_in_all:,}"),
        ("  that did not come", f"{result.missing:,}"),
        ("  that came again and were left out", f"{result.repeated:,}"),
        ("publications refused", f"{result.refused:,}"),
        ("subscriptions accepted within s", f"{result.accepting_s:.2f}"),
        ("  and routed within s", f"{result.setup_s:.2f}"),
        ("CPU of this process, of one core", f"{result.client_cpu_share:.0%}"),
    ):
        table.add_row(name, figure)
    Console().print(table)

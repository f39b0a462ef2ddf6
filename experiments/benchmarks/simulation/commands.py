"""`mercast simulate-bench` and `mercast calibrate`: the speed of simulations, and the costs of work on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from experiments.benchmarks.simulation.run import BenchResult


def simulate_bench(
    publications: Annotated[int, typer.Option(min=10, help="In each round.")] = 100,
    rounds: Annotated[int, typer.Option(min=1, help="The best round counts.")] = 20,
    set_up: Annotated[
        bool, typer.Option(help="Also set up MERC on 1,000 brokers with 10,000 subscriptions; takes a minute.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="The figures instead of tables.")] = False,
) -> None:
    """Measure how fast the simulation is in one process, with the trace written.

    Hops a second of pure D-DBR forwarding beside a bare heap loop in the same
    run; CPU time and memory to set up MERC on 1,000 brokers; and what a
    publication costs as destinations and brokers grow.

    \b
    Examples:
      mercast simulate-bench
      mercast simulate-bench --no-set-up --json
    """
    from broker.progress import remaining_time_bar
    from experiments.optional_packages import SIMULATION, TRACES, check_packages

    check_packages("simulations", "sim", SIMULATION + TRACES)
    from experiments.benchmarks.simulation.run import measure

    with remaining_time_bar() as progress:
        result = measure(publications, rounds, progress, with_set_up=set_up)
    if as_json:
        import dataclasses
        import json

        print(json.dumps(dataclasses.asdict(result), indent=2))
    else:
        _print(result)


def _print(result: BenchResult) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    speed = result.forwarding
    console.print(
        f"D-DBR along {speed.brokers} brokers: {speed.hops_per_s:,.0f} hops a second; "
        f"a bare heap loop: {speed.heap_hops_per_s:,.0f}, {1 / speed.share_of_heap:.0f} times as many"
    )
    if result.set_up is not None:
        large = result.set_up
        console.print(
            f"MERC on {large.brokers:,} brokers in {large.clusters} clusters, {large.advertisements} advertisements, "
            f"{large.subscriptions:,} subscriptions: set up in {large.seconds:.0f} s of CPU time, "
            f"{large.memory_bytes_max / 1e9:.2f} GB, {large.messages:,} messages"
        )
    table = Table(title="D-DBR, one publication", title_justify="left")
    for heading in ("destinations", "brokers", "hops", "inputs handled", "subscriptions evaluated", "CPU µs"):
        table.add_column(heading, justify="right")
    for cost in result.publications:
        table.add_row(
            f"{cost.destinations}",
            f"{cost.brokers}",
            f"{cost.hops:.1f}",
            f"{cost.inputs:.1f}",
            f"{cost.evaluated:.1f}",
            f"{cost.microseconds:,.0f}",
        )
    console.print(table)


def calibrate(
    file: Annotated[Path, typer.Argument(help="The TOML file to write.")],
    index: Annotated[
        list[str] | None, typer.Option("--index", "-i", help="An index to measure; repeat for more. Default: all.")
    ] = None,
    publications: Annotated[int, typer.Option(min=10, help="Publications matched at each size.")] = 60,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
) -> None:
    """Measure what matching and forwarding cost here, for simulations with the cost profile native.

    Runs read the file's coefficients and never a clock, so they stay the same
    from seed to seed and from machine to machine. Takes a minute or two.

    \b
    Examples:
      mercast calibrate costs.toml
      mercast simulate gtitm-20 --costs costs.toml
    """
    from broker.progress import remaining_time_bar
    from broker.simulation.cost_file import CostFileError
    from experiments.benchmarks.simulation.calibration import calibrate as measure
    from experiments.benchmarks.simulation.calibration import to_toml
    from experiments.output_paths import check_file
    from matching import registry

    check_file(file, makes_folder=False)
    if file.exists() and not force:
        raise CostFileError(f"{file} exists; give another name, or --force")
    indexes = [registry.info(name).name for name in index or registry.names()]
    with remaining_time_bar() as progress:
        costs = measure(indexes, progress, publications=publications)
    try:
        file.write_text(to_toml(costs), encoding="utf-8")
    except OSError as error:
        raise CostFileError(f"cannot write {file}: {error.strerror}") from error
    typer.echo(f"{len(indexes)} indexes measured; simulate with --costs {file}", err=True)


COMMANDS: dict[str, Callable[..., None]] = {"simulate-bench": simulate_bench, "calibrate": calibrate}

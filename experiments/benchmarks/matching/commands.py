"""`mercast match bench`: compare matching indexes on a generated workload."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from experiments.benchmarks.matching.plan import IndexChoice
    from experiments.workloads.registry import Parameters


def match_bench(
    index: Annotated[
        list[str] | None,
        typer.Option("--index", "-i", help="An index to compare; repeat for more. Default: all that can hold it."),
    ] = None,
    workload: Annotated[
        str, typer.Option("--workload", "-w", help="be-gen, abe-gen, query-log, ads, stock-quotes or shifting.")
    ] = "be-gen",
    subscriptions: Annotated[int, typer.Option(help="How many subscriptions the indexes hold.")] = 20_000,
    publications: Annotated[int, typer.Option(help="How many publications are matched and timed.")] = 1_000,
    dimensions: Annotated[int | None, typer.Option(help="Attributes there are.")] = None,
    cardinality: Annotated[int | None, typer.Option(help="Values of an attribute.")] = None,
    subscription_size: Annotated[float | None, typer.Option(help="Predicates of a subscription.")] = None,
    event_size: Annotated[int | None, typer.Option(help="Attributes of a publication.")] = None,
    matching_probability: Annotated[
        float | None, typer.Option(help="Share of subscriptions that a publication matches.")
    ] = None,
    equality: Annotated[float | None, typer.Option(help="Share of predicates that are equalities.")] = None,
    zipf: Annotated[float | None, typer.Option(help="Exponent of the attributes' distribution; 0 is uniform.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Any parameter of the workload, as key=value; repeat for more.")
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option("--option", help="An option of an index, as pst-hash.access_predicates=3; repeat for more."),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(help="python or native, for all indexes and the scan: backends are never mixed in one table."),
    ] = None,
    warm_up: Annotated[
        int | None, typer.Option(help="Publications matched before timing, so that indexes learn. Default: 100.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds of each block of work; the best counts. Default: 3.")
    ] = None,
    scan_publications: Annotated[
        int | None,
        typer.Option(help="Publications that the scan matches. Default: some ten seconds' worth a round."),
    ] = None,
    scaling: Annotated[
        str, typer.Option(help="Time construction at these numbers of subscriptions too, as 5000,10000,20000.")
    ] = "",
    seed: Annotated[int, typer.Option(help="The same seed gives the same workload.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Rows with all parameters instead of tables.")] = False,
) -> None:
    """Compare matching indexes on a generated workload.

    Shows for each index the time to add a subscription, to match a publication
    (also as a share of the linear scan's) and to remove a subscription, its
    candidates and evaluated subscriptions for each publication, and its memory
    without the expressions. A wrong answer ends the run with exit code 1.

    Times are CPU time. The indexes take turns in small blocks of the same work;
    each block is done in several rounds, and its best time counts. The cyclic
    garbage collector is off for all of them while time is taken.

    The workload `shifting` moves be-gen from a uniform to a Zipf distribution of
    attributes and back, and shows how each index's work per publication follows.

    \b
    Examples:
      mercast match bench --index pst-bloom --index pst-hash
      mercast match bench --workload ads --subscriptions 50000 --json
      mercast match bench -i pst-hash --option pst-hash.access_predicates=3
      mercast match bench --set operators=high --scaling 5000,10000,20000
      mercast match bench --workload shifting -i be-tree --subscriptions 5000
      mercast match bench --backend native -i flat --subscriptions 100000
    """
    from broker.progress import remaining_time_bar
    from experiments.benchmarks.matching.options import index_choices, workload_settings
    from experiments.benchmarks.matching.plan import BenchPlan, indexes_for
    from experiments.benchmarks.matching.report import print_rows, print_tables
    from experiments.benchmarks.matching.run import run
    from experiments.benchmarks.matching.shifting import NAME as SHIFTING
    from experiments.errors import BenchPlanError
    from experiments.option_values import whole_numbers
    from experiments.workloads.registry import names as workloads
    from experiments.workloads.registry import parameters_from_text
    from matching.nearest import nearest

    if workload not in (*workloads(), SHIFTING):
        there_are = ", ".join((*workloads(), SHIFTING))
        raise BenchPlanError(
            f"no workload is called {workload!r}{nearest(workload, (*workloads(), SHIFTING))}; there are {there_are}"
        )
    named = {
        "dimensions": dimensions,
        "cardinality": cardinality,
        "subscription_size": subscription_size,
        "event_size": event_size,
        "matching_probability": matching_probability,
        "equality": equality,
        "zipf": zipf,
    }
    if workload == SHIFTING:
        given = {
            "--warm-up": warm_up,
            "--rounds": rounds,
            "--scan-publications": scan_publications,
            "--scaling": scaling or None,
        }
        for option, value in given.items():
            if value is not None:
                raise BenchPlanError(f"{option} {value}: {SHIFTING} has no such option; each step is matched once")
        parameters = parameters_from_text("be-gen", workload_settings(named, settings or ()))
        choices = index_choices(index or indexes_for("be-gen", backend), options or ())
        _bench_shifting(parameters, choices, subscriptions, publications, seed, backend, as_json=as_json)
        return
    plan = BenchPlan(
        parameters=parameters_from_text(workload, workload_settings(named, settings or ())),
        subscriptions=subscriptions,
        publications=publications,
        indexes=index_choices(index or indexes_for(workload, backend), options or ()),
        seed=seed,
        warm_up=100 if warm_up is None else warm_up,
        rounds=3 if rounds is None else rounds,
        scan_publications=scan_publications,
        scaling=whole_numbers("--scaling", scaling),
        backend=backend,
    )
    with remaining_time_bar() as progress:
        result = run(plan, progress)
    if result.notice:
        typer.echo(result.notice, err=True)
    show = print_rows if as_json else print_tables
    show(result)


def _bench_shifting(
    parameters: Parameters,
    choices: tuple[IndexChoice, ...],
    subscriptions: int,
    publications: int,
    seed: int,
    backend: str | None,
    *,
    as_json: bool,
) -> None:
    from broker.progress import remaining_time_bar
    from experiments.benchmarks.matching.shifting import STEPS, ShiftingPlan, print_shifting, run_shifting
    from experiments.workloads.be_gen import BeGenParameters

    assert isinstance(parameters, BeGenParameters)
    each_step = max(1, publications // (6 * STEPS))
    plan = ShiftingPlan(choices, subscriptions, each_step, parameters, seed, backend)
    with remaining_time_bar() as progress:
        rows = run_shifting(plan, progress)
    print_shifting(rows, is_json=as_json)


COMMANDS: dict[str, Callable[..., None]] = {"match bench": match_bench}

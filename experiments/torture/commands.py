"""`mercast torture`: random schedules of faults on broker cores in memory."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from experiments.torture.run import Failure, Tally

ENDLESS = 10**12
"""Seeds of a run that only a duration ends."""
SPARK_TASKS_MAX = 64


class ModeChoice(StrEnum):
    MEMORY = "memory"
    DURABLE = "durable"


def torture(
    seeds: Annotated[str | None, typer.Option(help="First and last seed, as 0:1000. The last is left out.")] = None,
    seed: Annotated[int | None, typer.Option(help="One seed.")] = None,
    protocol: Annotated[
        list[str] | None, typer.Option("--protocol", "-p", help="fbr, d-dbr, merc or flooding; repeat for several.")
    ] = None,
    mode: Annotated[ModeChoice | None, typer.Option(help="By default each seed chooses.")] = None,
    faults: Annotated[
        bool | None, typer.Option("--faults/--no-faults", help="All kinds of faults, or none. By default mostly all.")
    ] = None,
    fault: Annotated[list[str] | None, typer.Option(metavar="KIND", help="Only this kind; repeat for several.")] = None,
    loss: Annotated[float | None, typer.Option(help="The share of frames that links lose.", min=0, max=0.5)] = None,
    strict: Annotated[bool | None, typer.Option("--strict/--open", help="Whether publishers must advertise.")] = None,
    reorganise: Annotated[bool | None, typer.Option(help="Whether brokers change their links.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="An option of the router that is on, or none.")] = None,
    matcher: Annotated[str, typer.Option(help="The brokers' matching index.")] = "auto",
    steps: Annotated[str | None, typer.Option(help="The steps of the schedule, instead of those of the seed.")] = None,
    steps_file: Annotated[Path | None, typer.Option(help="A file with the steps.")] = None,
    duration: Annotated[str | None, typer.Option(metavar="DURATION", help="Stop after this time, as 10m.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; by default as many as cores.")] = None,
    master: Annotated[
        str | None, typer.Option(help="Run as tasks of a Spark cluster, as spark://host:7077 or local[2].")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Run random schedules of faults in virtual time, and check every delivery.

    A schedule is a small overlay, its clients and about ten faults that overlap. It depends on its seed only.
    Each failure is shortened to the fewest steps and printed with the command that replays it.
    If a schedule fails, the exit code is 1. Ctrl-C ends the run and prints what was done so far.

    \b
    Kinds of faults:
      cut, repair, crash, restart, bounce, partition, half-open, slow, clock,
      join, leave, narrow, move, failed-commit

    \b
    Examples:
      mercast torture --seeds 0:1000
      mercast torture --duration 10m --protocol merc --mode durable
      mercast torture --seed 17 --protocol fbr --mode memory --fault crash --fault restart
      mercast torture --seeds 0:1000000 --master spark://host:7077
    """
    import os

    from broker.config.duration import parse_duration
    from broker.progress import ignore_progress, remaining_time_bar
    from experiments.torture.run import Plan, Tally, run_seeds
    from experiments.torture.schedule import read_steps
    from experiments.torture.workers import BATCH, WAITING, local_processes, run_all, spark_tasks

    plan = Plan(
        protocols=_protocols(protocol or []),
        is_durable=None if mode is None else mode is ModeChoice.DURABLE,
        is_open=None if strict is None else not strict,
        matcher=matcher,
        faults=_faults(faults, fault or []),
        loss=loss,
        reorganises=reorganise,
        options=None if option is None else tuple(each for each in option if each != "none"),
    )
    chosen = _seeds(seeds, seed, is_endless=duration is not None)
    if steps_file is not None:
        steps = steps_file.read_text(encoding="utf-8")
    given = None if steps is None else read_steps(steps)
    duration_s = None if duration is None else parse_duration(duration, "--duration") / 1e9
    tally = Tally()

    def report(some: Tally) -> None:
        tally.add(some)
        if not as_json:
            for failure in some.failures:
                print(_text_of(failure), flush=True)

    try:
        if given is not None or (len(chosen) <= BATCH and master is None):
            report(run_seeds(plan, chosen, given))
        else:
            workers = jobs or os.cpu_count() or 1
            given_out = SPARK_TASKS_MAX if master is not None else WAITING * workers
            tasks = spark_tasks(plan, master) if master is not None else local_processes(plan, workers)
            with tasks as submit, remaining_time_bar() as show:
                shown = ignore_progress if as_json else show
                run_all(submit, chosen, given_out, duration_s, report, shown)
    except KeyboardInterrupt:
        pass
    _print(tally, as_json=as_json)
    raise typer.Exit(bool(tally.failures))


def _protocols(chosen: list[str]) -> tuple[str, ...]:
    from experiments.errors import ScheduleError
    from routing.registry import names

    for each in chosen:
        if each not in names():
            raise ScheduleError(f"--protocol {each}: no protocol is called so; there are {', '.join(names())}")
    return tuple(chosen)


def _faults(all_or_none: bool | None, chosen: list[str]) -> tuple[str, ...] | None:
    from experiments.errors import ScheduleError
    from experiments.torture.schedule import FAULTS

    for each in chosen:
        if each not in FAULTS:
            raise ScheduleError(f"--fault {each}: no fault is called so; there are {', '.join(FAULTS)}")
    if chosen:
        return tuple(chosen)
    if all_or_none is None:
        return None
    return FAULTS if all_or_none else ()


def _seeds(text: str | None, one: int | None, *, is_endless: bool) -> range:
    from experiments.errors import ScheduleError

    if one is not None:
        return range(one, one + 1)
    if text is None:
        return range(ENDLESS if is_endless else 1000)
    first, colon, last = text.partition(":")
    try:
        chosen = range(int(first), int(last) if colon else int(first) + 1)
    except ValueError:
        raise ScheduleError(f"--seeds {text}: write the first and the last seed, as 0:1000") from None
    if not chosen:
        raise ScheduleError(f"--seeds {text}: the first seed must be below the last one")
    return chosen


def _print(tally: Tally, *, as_json: bool) -> None:
    if as_json:
        import json
        from dataclasses import asdict

        shown = {
            "schedules": {f"{protocol} {mode}": count for (protocol, mode), count in sorted(tally.schedules.items())},
            "publications": tally.publications,
            "pairs": dict(tally.pairs),
            "weak": tally.weak,
            "cpu_seconds": round(tally.cpu_seconds, 2),
            "virtual_seconds": round(tally.virtual_seconds),
            "failures": [asdict(each) for each in tally.failures],
        }
        print(json.dumps(shown, indent=2))
        return
    for (protocol, mode), count in sorted(tally.schedules.items()):
        print(f"{protocol:10} {mode:8} {count:10,} schedules")
    pairs = ", ".join(f"{count:,} {result}" for result, count in tally.pairs.most_common())
    rate = tally.count / tally.cpu_seconds if tally.cpu_seconds else 0.0
    print(f"{tally.publications:,} publications; pairs: {pairs or 'none'}")
    print(
        f"{tally.count:,} schedules, {len(tally.failures)} failed, {tally.weak} weak; "
        f"{tally.cpu_seconds:,.1f} CPU seconds, {rate:.1f} schedules each; {tally.virtual_seconds:,.0f} virtual seconds"
    )


def _text_of(failure: Failure) -> str:
    return f"seed {failure.seed}, {failure.protocol}, {failure.steps} steps: {failure.message}\n  {failure.replay}\n"


COMMANDS = {"torture": torture}

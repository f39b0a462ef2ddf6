"""Spreads schedules over processes of this machine, or over tasks of Spark.

Seeds are given out in batches, a few for each worker at a time, so that a run may end at any moment.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

from broker.progress import ShowProgress
from experiments.torture.run import Plan, Tally, batches, run_seeds

BATCH = 20
"""Schedules of one task: about a second of work."""
WAITING = 2
"""Batches that are given out for each worker."""

SubmitSeeds: TypeAlias = Callable[[range], "Future[Tally]"]


@contextmanager
def local_processes(plan: Plan, jobs: int) -> Iterator[SubmitSeeds]:
    """Runs batches in processes of this machine."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_ignore_interrupts) as pool:
        try:
            yield lambda seeds: pool.submit(run_seeds, plan, seeds)
        finally:
            pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leaves Ctrl-C to the process that gives out the batches. It prints what was done so far."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def spark_tasks(plan: Plan, master: str) -> Iterator[SubmitSeeds]:
    """Runs batches as tasks of a Spark cluster, or of Spark on this machine."""
    from experiments.sweeps.spark import SparkCalls

    with SparkCalls(master) as calls:
        yield lambda seeds: calls.submit_call(partial(run_seeds, plan), seeds)


def run_all(
    submit: SubmitSeeds,
    seeds: range,
    given_out_max: int,
    duration_s: float | None,
    report: Callable[[Tally], None],
    show: ShowProgress,
) -> None:
    """Runs the schedules of all seeds, or gives out batches for so many seconds. Reports the results of each batch."""
    start = time.monotonic()
    done_seeds = 0
    waiting = batches(seeds, BATCH)
    given_out: set[Future[Tally]] = set()
    while True:
        while len(given_out) < given_out_max and (duration_s is None or time.monotonic() - start < duration_s):
            batch = next(waiting, None)
            if batch is None:
                break
            given_out.add(submit(batch))
        if not given_out:
            return
        done, given_out = wait(given_out, return_when=FIRST_COMPLETED)
        for each in done:
            report(each.result())
            done_seeds += each.result().count
        if duration_s is None:
            show("schedules", done_seeds, len(seeds))
        else:
            show("seconds", round(time.monotonic() - start), round(duration_s))

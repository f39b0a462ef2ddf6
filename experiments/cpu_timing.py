"""CPU time of blocks of work: the best of several rounds of each block.

On a shared machine, wall-clock time includes the work of other processes. CPU time mostly does not. The remaining
influence of others (caches, clock rates) only adds time. So a block is repeated and its best time counts.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class BestTimes:
    """CPU seconds by the number of a block."""

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        self._clock = clock
        self._seconds: dict[int, float] = {}

    def measure(
        self, block: int, work: Callable[Arguments, Result], *arguments: Arguments.args, **options: Arguments.kwargs
    ) -> Result:
        started = self._clock()
        result = work(*arguments, **options)
        seconds = self._clock() - started
        self._seconds[block] = min(seconds, self._seconds.get(block, seconds))
        return result

    def total(self, blocks: Iterable[int] | None = None) -> float:
        """Seconds of the given blocks, or of all measured blocks."""
        return sum(self._seconds.values()) if blocks is None else sum(self._seconds[block] for block in blocks)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Prevents the cyclic garbage collector from running during measurements.

    Its passes over all live objects happen at arbitrary allocations, and their cost grows with the objects of other
    indexes. Call `gc.collect()` between measurements: objects from before the pause are frozen and cost no time.
    """
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Makes garbage collection rarer, for work with many short-lived objects and few cycles, such as a simulation.

    At a collection of the youngest objects, most live ones are messages in flight, so frequent collections gain little.
    Memory stays bounded: cycles are collected later.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)

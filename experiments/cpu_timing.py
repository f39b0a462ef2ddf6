"""CPU time of blocks of work, each with the best of its rounds.

On a shared machine the wall clock measures the neighbours; CPU time mostly does not, and what is left of their
influence (caches, clock rates) only ever adds. So a block is done several times and its best time counts.
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
        """Seconds of the given blocks, or of all that were measured."""
        return sum(self._seconds.values()) if blocks is None else sum(self._seconds[block] for block in blocks)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Keeps the cyclic collector from running inside what is measured.

    Its passes over all live objects fall on whoever allocates next, and cost more the more the other indexes hold.
    Call `gc.collect()` between measurements: objects from before the pause are frozen and cost nothing then.
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
    """For work that makes many short-lived objects and few cycles, as a simulation does.

    The collector looks at the youngest objects once in so many allocations, and most of what it finds alive by then is
    a message under way. Memory stays bounded: cycles are found later, not never.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)

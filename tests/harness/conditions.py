"""Waits for a condition of a running system, with a deadline and a message that names the condition."""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Callable, Iterator

PAUSE_S = 0.02


async def until(
    condition: Callable[[], bool], within_s: float = 60.0, what: str | Callable[[], str] = "", pause_s: float = PAUSE_S
) -> None:
    """Waits in a coroutine until the condition is true. Fails after `within_s` with `what`, or the condition's source.

    `what` may be a function, for a message with values of the moment of failure.
    """
    for _ in _false_results(condition, within_s, what):
        await asyncio.sleep(pause_s)


def wait_until(
    condition: Callable[[], bool], within_s: float = 60.0, what: str | Callable[[], str] = "", pause_s: float = PAUSE_S
) -> None:
    """Does the same as `until`, in synchronous code."""
    for _ in _false_results(condition, within_s, what):
        time.sleep(pause_s)


def _false_results(condition: Callable[[], bool], within_s: float, what: str | Callable[[], str]) -> Iterator[None]:
    """Yields each time that the condition is false, and ends when it is true."""
    end = time.monotonic() + within_s
    while not condition():
        if time.monotonic() >= end:
            message = what() if callable(what) else what
            raise AssertionError(f"not within {within_s:g} s: {message or _source(condition)}")
        yield


def _source(condition: Callable[[], bool]) -> str:
    """The text of the condition, on one line; a lambda's text is the statement that contains it."""
    function = condition.func if isinstance(condition, functools.partial) else condition
    try:
        return " ".join(inspect.getsource(function).split())
    except (OSError, TypeError):
        return repr(condition)

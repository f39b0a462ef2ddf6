"""Reads long expressions in a thread, so that the event loop serves others meanwhile.

Reading takes some microseconds for each character. The thread also computes what the core needs of an expression: its
canonical text and its region. Equal expressions in use share both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from broker.runtime.internal_errors import InternalErrors
from matching import MatchingError
from matching.expressions.intersection import Region
from matching.expressions.model import Expression
from matching.languages.sql import parse
from routing.messages import Advertise, Change, Subscribe
from routing.tables import is_parsable, region_of

LONGEST_ON_LOOP = 512
"""The largest number of characters that the event loop reads itself."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadExpression:
    """An expression of a client's request, or the reason why it is refused."""

    expression: Expression | None = None
    invalid: str = ""
    """The error in the text."""
    forbidden: str | None = None
    """Why the client's rights do not cover the expression."""


class ExpressionReader:
    def __init__(self, name: str, errors: InternalErrors) -> None:
        self._errors = errors
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    def read(
        self, text: str, refusal: Callable[[str], str | None], done: Callable[[ReadExpression | None], None]
    ) -> None:
        """Reads the text of a request and calls `done` in the event loop. `refusal` checks the client's rights. After
        an internal error `done` receives None."""
        self._submit(lambda: _read(text, refusal), done)

    def prepare(
        self, changes: Iterable[Subscribe | Advertise], done: Callable[[Sequence[Region] | None], None]
    ) -> None:
        """Reads the expressions of an update and calls `done` in the event loop. The core shares the expressions as
        long as `done` has their regions."""
        self._submit(lambda: _prepare(changes), done)

    def _submit(self, work: Callable[[], T], done: Callable[[T | None], None]) -> None:
        def ended(future: Future[T]) -> None:
            # The loop is closed if the broker stopped meanwhile.
            if not future.cancelled() and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._finish, future, done)

        self._thread.submit(work).add_done_callback(ended)

    def _finish(self, future: Future[T], done: Callable[[T | None], None]) -> None:
        error = future.exception()
        if error is not None:
            self._errors.report("expression not read", error)
        done(None if error is not None else future.result())

    def stop(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def long_changes(changes: Iterable[Change]) -> list[Subscribe | Advertise]:
    """Returns the changes with expressions if these are too long for the event loop, otherwise an empty list."""
    texts = [change for change in changes if isinstance(change, Subscribe | Advertise)]
    return texts if sum(len(change.expression) for change in texts) > LONGEST_ON_LOOP else []


def _read(text: str, refusal: Callable[[str], str | None]) -> ReadExpression:
    forbidden = refusal(text)
    if forbidden is not None:
        return ReadExpression(forbidden=forbidden)
    try:
        expression = parse(text)
    except MatchingError as error:
        return ReadExpression(invalid=str(error))
    str(expression)
    region_of(expression)
    return ReadExpression(expression)


def _prepare(changes: Iterable[Subscribe | Advertise]) -> list[Region]:
    return [region_of(change.expression) for change in changes if is_parsable(change.expression)]

"""Ctrl-C during an analysis: Spark's work is cancelled, and the command ends with one line.

Left alone, pyspark cancels from its signal handler, within the call that was interrupted; that fails, and py4j logs
pages about it.
"""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import typer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERRUPTED = 130
"""The exit code of a program that Ctrl-C ended."""


class Interrupts:
    """Within this context, Ctrl-C ends the command with one line."""

    def __init__(self) -> None:
        self._is_told = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._wait)
        # Between pyspark's taking the handler and `started`, seconds may pass, in which py4j would log.
        logging.disable(logging.CRITICAL)
        return self

    def started(self, session: SparkSession) -> None:
        """To be said when the session is there: it has put its own handler in the place of ours."""

        def interrupt(number: int, frame: object) -> None:
            # From a thread of its own, which has a connection of its own to Java: this one's is in use.
            threading.Thread(target=_cancel, args=(session,), daemon=True).start()
            _interrupt(number, frame)

        signal.signal(signal.SIGINT, interrupt)
        logging.disable(logging.NOTSET)
        if self._is_told:
            raise KeyboardInterrupt

    def _wait(self, _number: int, _frame: object) -> None:
        # A Java process that is left while it starts would stay for ever. A second Ctrl-C does not wait.
        self._is_told = True
        signal.signal(signal.SIGINT, _interrupt)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)
        if kind is KeyboardInterrupt:
            typer.echo("mercast: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        logging.disable(logging.NOTSET)


def _cancel(session: SparkSession) -> None:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    # The session may have come to its end in the meantime; then there is nothing to cancel, and no Java to ask.
    with suppress(Py4JError, AssertionError, AttributeError, OSError):
        session.sparkContext.cancelAllJobs()


def _interrupt(_number: int, _frame: object) -> None:
    # What py4j would log from here on is about calls that did not come to their end.
    logging.disable(logging.CRITICAL)
    raise KeyboardInterrupt

"""Ctrl-C during an analysis: cancels Spark's work and ends the command with one line.

The signal handler of pyspark cancels within the interrupted call, which fails, and py4j logs pages about it.
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
        self._is_interrupted = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._wait)
        # pyspark replaces the handler seconds before `attach` is called. py4j would log in that time.
        logging.disable(logging.CRITICAL)
        return self

    def attach(self, session: SparkSession) -> None:
        """Restores our handler, which a starting session replaces by its own. Call it when the session has started."""

        def interrupt(number: int, frame: object) -> None:
            # A new thread has its own connection to Java. The connection of this thread is in use.
            threading.Thread(target=_cancel, args=(session,), daemon=True).start()
            _interrupt(number, frame)

        signal.signal(signal.SIGINT, interrupt)
        logging.disable(logging.NOTSET)
        if self._is_interrupted:
            raise KeyboardInterrupt

    def _wait(self, _number: int, _frame: object) -> None:
        # A Java process that is abandoned while it starts would run for ever. A second Ctrl-C does not wait.
        self._is_interrupted = True
        signal.signal(signal.SIGINT, _interrupt)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)
        if kind is KeyboardInterrupt:
            typer.echo("mercast: interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        logging.disable(logging.NOTSET)


def _cancel(session: SparkSession) -> None:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    # The session may have ended in the meantime. Then there is nothing to cancel, and no Java process.
    with suppress(Py4JError, AssertionError, AttributeError, OSError):
        session.sparkContext.cancelAllJobs()


def _interrupt(_number: int, _frame: object) -> None:
    # From here on py4j would only log interrupted calls.
    logging.disable(logging.CRITICAL)
    raise KeyboardInterrupt

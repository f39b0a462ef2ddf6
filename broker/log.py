"""Logs as lines of JSON on standard error: the time, the level, the event, and what belongs to it."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

NAME = "mercast"
LEVELS = ("debug", "info", "warning", "error")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class Log:
    """One broker's log: every line names the broker."""

    def __init__(self, broker: str) -> None:
        self._fields = {"broker": broker}
        self._logger = logging.getLogger(NAME)

    def debug(self, event: str, **fields: object) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, cause: BaseException | None = None, **fields: object) -> None:
        """`cause` is logged with where it came from."""
        self._write(logging.ERROR, event, fields, cause)

    def _write(self, level: int, event: str, fields: dict[str, object], cause: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, exc_info=cause, extra={"fields": {**self._fields, **fields}})


def log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(NAME).setLevel(level.upper())

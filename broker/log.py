"""Logs as lines of JSON on standard error: time, level, event and the event's fields."""

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
    """The log of one broker. Every line names the broker."""

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
        """Logs an error. `cause` is logged with its traceback."""
        self._write(logging.ERROR, event, fields, cause)

    def _write(self, level: int, event: str, fields: dict[str, object], cause: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, exc_info=cause, extra={"fields": {**self._fields, **fields}})


def log_to_stderr(level: str) -> None:
    """Writes all logs to standard error. `level` applies to Mercast; other libraries log warnings and errors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(NAME).setLevel(level.upper())

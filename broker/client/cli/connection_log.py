"""The client library's log on standard error, for commands."""

from __future__ import annotations

import logging
import sys


def log_to_stderr() -> None:
    """Writes the messages of logger `mercast.client` to standard error. Other programs configure that logger."""
    log = logging.getLogger("mercast.client")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)

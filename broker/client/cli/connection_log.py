"""What a command's client says of its connection, on standard error."""

from __future__ import annotations

import logging
import sys


def talk_of_connections() -> None:
    """Programs with a logging of their own find the same under `mercast.client`."""
    log = logging.getLogger("mercast.client")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)

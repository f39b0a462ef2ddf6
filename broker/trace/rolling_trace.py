"""The trace that a running broker writes, in a folder of its own.

Its files are completed every few seconds and when the broker stops. If the trace cannot be written, for example on a
full disk, it ends. The broker neither waits for its trace nor fails because of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from broker.core.settings import SECOND
from broker.trace.code_version import code_version
from broker.trace.files import TraceWriter
from broker.trace.schema import BrokerRow, Row, TraceWriteError

ROLL_EVERY = 5 * SECOND
"""The interval at which recorded rows become visible to readers."""
ROLL_IDLE_EVERY = 60 * SECOND
"""The interval if a broker has recorded only its own state. It avoids many files with few rows."""


class RollingTrace:
    def __init__(
        self,
        folder: Path,
        broker: str,
        incarnation: int,
        overlay: str,
        protocol: str,
        now: int,
        on_failed: Callable[[Exception], None],
    ) -> None:
        """Calls `on_failed` once if the trace cannot be written. No row is recorded after that."""
        self._on_failed = on_failed
        self._has_failed = False
        own_folder = folder / f"{broker}-{incarnation}"
        self._writer = TraceWriter(own_folder, overlay)
        self._rolled_at = now
        self._has_new_rows = False
        code = code_version()
        provenance = {
            "broker": broker,
            "incarnation": incarnation,
            "overlay": overlay,
            "protocol": protocol,
            "mercast": code.version,
            "commit": code.commit,
            "is_changed": code.is_changed,
        }
        (own_folder / "provenance.json").write_text(json.dumps(provenance, indent=2) + "\n", encoding="utf-8")

    def record(self, row: Row) -> None:
        if not isinstance(row, BrokerRow):
            self._has_new_rows = True
        if not self._has_failed:
            try:
                self._writer.record(row)
            except TraceWriteError as error:
                self._end(error)

    def roll_if_due(self, now: int) -> None:
        """Completes the present files if the interval is over, so that readers see their rows."""
        if now - self._rolled_at >= (ROLL_EVERY if self._has_new_rows else ROLL_IDLE_EVERY):
            self._rolled_at = now
            self._has_new_rows = False
            self._write(self._writer.roll)

    def close(self) -> None:
        self._write(self._writer.close)

    def _write(self, write: Callable[[], None]) -> None:
        if not self._has_failed:
            try:
                write()
            except (TraceWriteError, OSError) as error:
                self._end(error)

    def _end(self, error: Exception) -> None:
        """Ends the trace. Files that readers can see stay, the others are removed."""
        self._has_failed = True
        # A file that cannot be written often cannot be removed either.
        with suppress(OSError):
            self._writer.discard()
        self._on_failed(error)

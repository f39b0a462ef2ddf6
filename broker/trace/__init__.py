"""Traces: the tables that simulations and running brokers record, and their files.

`schema` defines the tables and their digest, `files` writes and reads them as Parquet, `recorder` turns the effects of
brokers into rows, and `rolling_trace` writes the trace of a running broker. This package imports the core's effects and
inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.trace.files import TraceWriter
    from broker.trace.recorded_trace import RecordedTrace, read_trace
    from broker.trace.schema import TABLES, TraceError

__all__ = ["TABLES", "RecordedTrace", "TraceError", "TraceWriter", "read_trace"]

__getattr__ = lazy_exports(
    __name__,
    {
        "RecordedTrace": "broker.trace.recorded_trace",
        "TABLES": "broker.trace.schema",
        "TraceError": "broker.trace.schema",
        "TraceWriter": "broker.trace.files",
        "read_trace": "broker.trace.recorded_trace",
    },
)

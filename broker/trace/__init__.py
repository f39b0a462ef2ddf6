"""Traces: the tables that simulations and running brokers record, and their files.

`schema` defines the tables and their digest, `files` writes and reads them as Parquet, `recorder` turns the effects of
brokers into rows, and `rolling_trace` writes the trace of a running broker. This package imports the core's effects and
inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.trace.code_version import CodeVersion
    from broker.trace.files import TraceWriter, arrow_schema, complete_files, iter_rows
    from broker.trace.recorded_trace import RecordedTrace, read_trace
    from broker.trace.schema import (
        TABLES,
        BrokerRow,
        DeliveryRow,
        Digest,
        DropRow,
        ExpectationRow,
        FaultRow,
        HopRow,
        LinkRow,
        MatchRow,
        PublicationRow,
        Row,
        Trace,
        TraceError,
        seconds,
        spark_ddl,
    )

__all__ = [
    "TABLES",
    "BrokerRow",
    "CodeVersion",
    "DeliveryRow",
    "Digest",
    "DropRow",
    "ExpectationRow",
    "FaultRow",
    "HopRow",
    "LinkRow",
    "MatchRow",
    "PublicationRow",
    "RecordedTrace",
    "Row",
    "Trace",
    "TraceError",
    "TraceWriter",
    "arrow_schema",
    "complete_files",
    "iter_rows",
    "read_trace",
    "seconds",
    "spark_ddl",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "BrokerRow": "broker.trace.schema",
        "CodeVersion": "broker.trace.code_version",
        "DeliveryRow": "broker.trace.schema",
        "Digest": "broker.trace.schema",
        "DropRow": "broker.trace.schema",
        "ExpectationRow": "broker.trace.schema",
        "FaultRow": "broker.trace.schema",
        "HopRow": "broker.trace.schema",
        "LinkRow": "broker.trace.schema",
        "MatchRow": "broker.trace.schema",
        "PublicationRow": "broker.trace.schema",
        "RecordedTrace": "broker.trace.recorded_trace",
        "Row": "broker.trace.schema",
        "TABLES": "broker.trace.schema",
        "Trace": "broker.trace.schema",
        "TraceError": "broker.trace.schema",
        "TraceWriter": "broker.trace.files",
        "arrow_schema": "broker.trace.files",
        "complete_files": "broker.trace.files",
        "iter_rows": "broker.trace.files",
        "read_trace": "broker.trace.recorded_trace",
        "seconds": "broker.trace.schema",
        "spark_ddl": "broker.trace.schema",
    },
)

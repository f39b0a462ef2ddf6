"""Errors of an analysis. A missing or damaged trace raises `broker.trace.schema.TraceError`.

```
AnalysisError               Spark failed; the message has its reason
├── NoRunsError             a folder that does not exist, or has no runs below it
├── MemoryTextError         the text for Spark's memory is no size, or too small
├── ProgramMissingError     Java or pyspark is missing; the message has the command that installs it
└── ClusterError            no answer from the cluster's address
```
"""

from __future__ import annotations

from experiments.errors import ExperimentError


class AnalysisError(ExperimentError):
    """Spark failed."""


class NoRunsError(AnalysisError):
    exit_code = 3


class MemoryTextError(AnalysisError, ValueError):
    exit_code = 2


class ProgramMissingError(AnalysisError):
    exit_code = 3


class ClusterError(AnalysisError):
    exit_code = 4

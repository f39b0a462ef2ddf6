"""What can go wrong in an analysis, beside a trace that is missing or damaged (`broker.trace.TraceError`).

AnalysisError               Spark gave up; the message has its reason
├── NoRunsError             a folder that is not there, or has no runs below it
├── MemoryTextError         what was typed for Spark's memory is no size, or too small
├── ProgramMissingError     Java or pyspark is not there; the message has the command that installs it
└── ClusterError            nobody answers at the cluster's address
"""

from __future__ import annotations

from experiments.errors import ExperimentError


class AnalysisError(ExperimentError):
    """Spark gave up."""


class NoRunsError(AnalysisError):
    exit_code = 3


class MemoryTextError(AnalysisError, ValueError):
    exit_code = 2


class ProgramMissingError(AnalysisError):
    exit_code = 3


class ClusterError(AnalysisError):
    exit_code = 4

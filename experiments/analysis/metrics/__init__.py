"""Metrics of traces: functions from DataFrame to DataFrame, one module for each topic. The package exports its modules.
It imports pyspark, and of `experiments` only `experiments.analysis`.
"""

from experiments.analysis.metrics import (
    broker_load,
    delivery,
    destinations,
    latency,
    link_traffic,
    matching_work,
    messages,
    paths,
    slowest,
    subscriptions,
)

__all__ = [
    "broker_load",
    "delivery",
    "destinations",
    "latency",
    "link_traffic",
    "matching_work",
    "messages",
    "paths",
    "slowest",
    "subscriptions",
]

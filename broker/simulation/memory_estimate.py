"""A broker's memory, estimated from what it holds.

A measurement would differ between machines, Python versions and backends; this is the same everywhere, and grows with
what makes a real broker grow. The bytes for an entry are rounded from a measurement of the Python objects: a remote
table of ten thousand stock quote subscriptions in `auto`, expressions included, and one of three hundred advertisements
with three predicates. They stand for order and proportion, not for a process's size.
"""

from __future__ import annotations

from routing.router import Counts

ADVERTISEMENT_BYTES = 1_300
SUBSCRIPTION_BYTES = 3_800
WAITING_BYTES = 1_000
"""An input in the queue, or a publication in custody: the frame, its header as an object, and who waits for it."""


def estimated_bytes(counts: Counts, queued: int, in_custody: int) -> int:
    subscriptions = counts.local_subscriptions + counts.remote_subscriptions
    return (
        counts.routing_table_bytes
        + ADVERTISEMENT_BYTES * counts.advertisements
        + SUBSCRIPTION_BYTES * subscriptions
        + WAITING_BYTES * (queued + in_custody)
    )

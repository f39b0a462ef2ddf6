"""An estimate of a broker's memory from the sizes of its tables and queues.

A measurement would differ between machines, Python versions and backends. The estimate is the same everywhere, and
grows with the same quantities as a real broker's memory. The bytes for each entry are rounded from a measurement of the
Python objects. It had a remote table of ten thousand stock quote subscriptions in `auto`, with their expressions. It
also had a table of three hundred advertisements with three predicates. The estimate shows order and proportion, not a
process's size.
"""

from __future__ import annotations

from routing.router import Counts

ADVERTISEMENT_BYTES = 1_300
SUBSCRIPTION_BYTES = 3_800
WAITING_BYTES = 1_000
"""A queued input or an unsettled publication: the frame, its header as an object, and the brokers that wait for it."""


def estimated_bytes(counts: Counts, queued: int, in_custody: int) -> int:
    subscriptions = counts.local_subscriptions + counts.remote_subscriptions
    return (
        counts.routing_table_bytes
        + ADVERTISEMENT_BYTES * counts.advertisements
        + SUBSCRIPTION_BYTES * subscriptions
        + WAITING_BYTES * (queued + in_custody)
    )

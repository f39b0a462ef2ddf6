"""A start of the broker: its incarnation, the records of earlier ones, and its core."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.config.address import Address
from broker.config.overlay_config import BrokerConfig
from broker.core.broker import Broker
from broker.core.settings import SECOND
from broker.runtime.store import Store
from broker.runtime.store_records import Key
from routing.registry import create

EPOCH_NS = 1_767_225_600 * SECOND
"""The start of 2026. Incarnations count tenths of seconds from here, so they grow with every start and stay small."""


@dataclass(frozen=True, slots=True)
class Incarnation:
    number: int
    has_lived: bool = False
    """Whether the store contains an earlier incarnation."""
    records: Mapping[Key, object] = field(default_factory=dict)
    """The records of the store."""


def begin_incarnation(broker: str, store: Store | None) -> Incarnation:
    """Opens the store, if there is one, and begins an incarnation later than all in it.

    A clock that was never set may show a time before the epoch. Incarnations are positive all the same.
    """
    number = max((time.time_ns() - EPOCH_NS) // (SECOND // 10), 1)
    if store is None:
        return Incarnation(number)
    earlier, number, records = store.open(broker, number)
    return Incarnation(number, earlier > 0, records)


def create_core(config: BrokerConfig, incarnation: Incarnation, address: Address, *, is_traced: bool) -> Broker:
    """The core of a broker that others reach at `address`."""
    router = create(
        config.overlay.protocol,
        config.id,
        incarnation.number,
        config.overlay.general.matcher,
        config.clusters,
        str(address),
        config.overlay.general.router_options,
    )
    return Broker(
        router,
        config.id,
        incarnation.number,
        config.settings(is_traced=is_traced),
        has_lived=incarnation.has_lived,
        expected_neighbours=tuple(neighbour.id for neighbour in config.neighbours),
    )

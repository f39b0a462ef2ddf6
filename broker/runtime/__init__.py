"""Brokers as processes: asyncio drives the core, the same as in simulations, with TCP, a store and admin pages. Of the
broker packages it may import config, core, mqtt, security, trace and wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.runtime.process import run_broker
    from broker.runtime.server import BrokerServer

__all__ = ["BrokerServer", "run_broker"]

__getattr__ = lazy_exports(
    __name__,
    {"BrokerServer": "broker.runtime.server", "run_broker": "broker.runtime.process"},
)

"""The configuration of an overlay: addresses, durations, and the tables of an overlay file.

`read_config` reads an overlay file. This package imports the core's settings, the wire's limits and topologies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.config.address import Address, parse_address
    from broker.config.duration import parse_duration
    from broker.config.overlay_config import BrokerConfig, OverlayConfig, read_config
    from broker.config.tables import ConfigError

__all__ = ["Address", "BrokerConfig", "ConfigError", "OverlayConfig", "parse_address", "parse_duration", "read_config"]

__getattr__ = lazy_exports(
    __name__,
    {
        "Address": "broker.config.address",
        "BrokerConfig": "broker.config.overlay_config",
        "ConfigError": "broker.config.tables",
        "OverlayConfig": "broker.config.overlay_config",
        "parse_address": "broker.config.address",
        "parse_duration": "broker.config.duration",
        "read_config": "broker.config.overlay_config",
    },
)

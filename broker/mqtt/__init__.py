"""The MQTT gateway: a client of a broker and a client of an MQTT broker. It publishes the messages of devices, and lets
MQTT clients subscribe by content. The broker does all matching and routing. Of the broker packages it may import
client, config, core, security and wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.mqtt.lifecycle import run_gateway

__all__ = ["run_gateway"]

__getattr__ = lazy_exports(
    __name__,
    {"run_gateway": "broker.mqtt.lifecycle"},
)

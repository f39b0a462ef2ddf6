"""Reads and writes MQTT packets in blocks. This package replaces private members of aiomqtt and paho-mqtt
(`private_members` lists them); no other module of the gateway uses private members. `fast_path = false` in [mqtt] does
without its client. It may import what the gateway may import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.mqtt.fast_path.client import FastMqttClient
    from broker.mqtt.fast_path.packets import Message
    from broker.mqtt.fast_path.private_members import check_private_members
    from broker.mqtt.fast_path.properties import PropertyPacker, packed_text

__all__ = ["FastMqttClient", "Message", "PropertyPacker", "check_private_members", "packed_text"]

__getattr__ = lazy_exports(
    __name__,
    {
        "FastMqttClient": "broker.mqtt.fast_path.client",
        "Message": "broker.mqtt.fast_path.packets",
        "PropertyPacker": "broker.mqtt.fast_path.properties",
        "check_private_members": "broker.mqtt.fast_path.private_members",
        "packed_text": "broker.mqtt.fast_path.properties",
    },
)

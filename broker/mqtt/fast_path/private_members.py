"""The private members of aiomqtt and paho that the fast path uses, and a check that they exist.

aiomqtt's hooks provide the socket and its events. `_connected` and `_disconnected` report a lost connection. `_client`
is paho's client, whose `_sock` is replaced. All other members in use are public.
"""

from __future__ import annotations

import aiomqtt

from broker.config.tables import ConfigError

AIOMQTT_HOOKS = {
    "_on_connect": "on_connect",
    "_on_socket_open": "on_socket_open",
    "_on_socket_close": "on_socket_close",
    "_on_socket_register_write": "on_socket_register_write",
    "_on_socket_unregister_write": "on_socket_unregister_write",
}
"""Methods of aiomqtt's client that `FastMqttClient` overrides or calls, with paho's callback that calls each."""
AIOMQTT_ATTRIBUTES = ("_loop", "_connected", "_disconnected", "_client")
PAHO_ATTRIBUTES = ("_sock",)


def missing_members(client: aiomqtt.Client) -> list[str]:
    """Returns the names of private members that `client`, an instance of the library's own class, does not have."""
    missing = [f"aiomqtt.Client.{name}" for name in (*AIOMQTT_HOOKS, *AIOMQTT_ATTRIBUTES) if not hasattr(client, name)]
    paho = getattr(client, "_client", None)
    if paho is not None:
        missing += [f"paho.mqtt.client.Client.{name}" for name in PAHO_ATTRIBUTES if not hasattr(paho, name)]
    return missing


def check_private_members() -> None:
    """Raises `ConfigError` if a private member is missing. Needs a running event loop."""
    missing = missing_members(aiomqtt.Client("127.0.0.1"))
    if missing:
        raise ConfigError(
            f"the installed aiomqtt or paho-mqtt has no {', '.join(missing)}, which the fast path of the MQTT gateway "
            "replaces; set fast_path = false in [mqtt], or install the versions that pyproject.toml names"
        )

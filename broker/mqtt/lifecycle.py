"""Runs a gateway in its broker's process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Protocol

from broker.config.address import Address
from broker.config.overlay_config import BrokerConfig
from broker.config.tables import ConfigError
from broker.security.authentication import Security

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
"""The address at which a broker that listens on all interfaces is reached from its own process."""


class GatewayHost(Protocol):
    """The parts that run in the broker's process."""

    def add(self, name: str, status: Callable[[], dict[str, object]], task: asyncio.Task[None]) -> None:
        """Adds a running part. Fails the broker if the task ends with an error."""
        ...


@asynccontextmanager
async def run_gateway(
    broker: BrokerConfig, security: Security, listen: Address, host: GatewayHost
) -> AsyncIterator[None]:
    """Runs the gateway of the broker's configuration, if there is one. `listen`: where the broker listens."""
    config = broker.overlay.gateways.get(broker.id)
    if config is None:
        yield
        return
    try:
        from broker.mqtt.gateway import Gateway
    except ImportError as error:
        raise ConfigError(
            f"broker {broker.id} has an MQTT gateway, and {error.name} is not installed: pip install 'mercast[mqtt]'"
        ) from error
    reached_at = Address(_LOOPBACK.get(listen.host, listen.host), listen.port)
    gateway = Gateway(
        config,
        f"mercast://{reached_at}",
        is_durable=broker.data_dir is not None,
        longest_text=broker.wire_limits().request_text_bytes,
        token=security.authenticator.internal_token,
        tls=security.internal_tls,
    )
    running = asyncio.create_task(gateway.run(), name="mqtt gateway")
    host.add("mqtt", lambda: asdict(gateway.status()), running)
    try:
        yield
    finally:
        while not running.done():
            # Repeat: an error at the same moment may replace the cancellation.
            running.cancel()
            await asyncio.wait([running], timeout=2.0)

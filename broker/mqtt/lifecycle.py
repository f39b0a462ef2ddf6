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
from broker.wire.limits import Limits

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
"""The address at which a broker that listens on all interfaces is reached from its own process."""


class GatewayHost(Protocol):
    """The broker whose process runs the gateway."""

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def security(self) -> Security: ...

    @property
    def listen(self) -> Address: ...

    @property
    def parts(self) -> dict[str, Callable[[], dict[str, object]]]:
        """The status of each part, by name."""
        ...

    def part_ended(self, part: asyncio.Task[None]) -> None: ...


@asynccontextmanager
async def run_gateway(server: GatewayHost) -> AsyncIterator[None]:
    """Runs the gateway of the broker's configuration, if there is one."""
    config = server.config.overlay.gateways.get(server.config.id)
    if config is None:
        yield
        return
    try:
        from broker.mqtt.gateway import Gateway
    except ImportError as error:
        raise ConfigError(
            f"broker {server.config.id} has an MQTT gateway, and {error.name} is not installed: "
            "pip install 'mercast[mqtt]'"
        ) from error
    listen = server.listen
    reached_at = Address(_LOOPBACK.get(listen.host, listen.host), listen.port)
    gateway = Gateway(
        config,
        f"mercast://{reached_at}",
        is_durable=server.config.data_dir is not None,
        longest_text=server.limits.request_text_bytes,
        token=server.security.authenticator.internal_token,
        tls=server.security.internal_tls,
    )
    server.parts["mqtt"] = lambda: asdict(gateway.status())
    running = asyncio.create_task(gateway.run(), name="mqtt gateway")
    running.add_done_callback(server.part_ended)
    try:
        yield
    finally:
        while not running.done():
            # Repeat: an error at the same moment may replace the cancellation.
            running.cancel()
            await asyncio.wait([running], timeout=2.0)

"""A gateway in its broker's process."""

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

_THIS_MACHINE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
"""Where a broker that listens everywhere can be reached from within."""


class GatewayHost(Protocol):
    """The broker in whose process a gateway runs."""

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
async def gateway_beside(server: GatewayHost) -> AsyncIterator[None]:
    """Runs the gateway that the broker's configuration asks for, if it does."""
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
    reached_at = Address(_THIS_MACHINE.get(listen.host, listen.host), listen.port)
    gateway = Gateway(
        config,
        f"mercast://{reached_at}",
        is_durable=server.config.data_dir is not None,
        longest_text=server.limits.request_text_bytes,
        token=server.security.authenticator.own_token,
        tls=server.security.inside,
    )
    server.parts["mqtt"] = lambda: asdict(gateway.status())
    running = asyncio.create_task(gateway.run(), name="mqtt gateway")
    running.add_done_callback(server.part_ended)
    try:
        yield
    finally:
        while not running.done():
            # Again if need be: an error at the same moment may take the place of a cancellation.
            running.cancel()
            await asyncio.wait([running], timeout=2.0)

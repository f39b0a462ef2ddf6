"""Brokers and their clients. This package may import `routing`, `matching` and `topologies`; each subpackage says which
others it may import.

    from broker import connect

    async with connect("mercast://127.0.0.1:7001") as client:
        await client.publish({"symbol": "IBM", "price": 92.5})
        async with client.subscribe("price > 90") as prices:
            async for publication in prices:
                print(publication.attributes)

`connect_sync` offers the same without asyncio. A name of this package is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.client.client import Client, connect
    from broker.client.credentials import tls
    from broker.client.errors import ClientError, ConnectError, RefusedError, TimeoutExpiredError
    from broker.client.subscription import Publication, Subscription
    from broker.client.sync_client import SyncClient, connect_sync

__all__ = [
    "Client",
    "ClientError",
    "ConnectError",
    "Publication",
    "RefusedError",
    "Subscription",
    "SyncClient",
    "TimeoutExpiredError",
    "connect",
    "connect_sync",
    "tls",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "Client": "broker.client.client",
        "ClientError": "broker.client.errors",
        "ConnectError": "broker.client.errors",
        "Publication": "broker.client.subscription",
        "RefusedError": "broker.client.errors",
        "Subscription": "broker.client.subscription",
        "SyncClient": "broker.client.sync_client",
        "TimeoutExpiredError": "broker.client.errors",
        "connect": "broker.client.client",
        "connect_sync": "broker.client.sync_client",
        "tls": "broker.client.credentials",
    },
)

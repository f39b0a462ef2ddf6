"""Client library: an asyncio client and a synchronous one. Start with `from broker import connect`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.client.client import Client, connect
    from broker.client.errors import ClientError
    from broker.client.subscription import Subscription
    from broker.client.sync_client import SyncClient, connect_sync

__all__ = ["Client", "ClientError", "Subscription", "SyncClient", "connect", "connect_sync"]

__getattr__ = lazy_exports(
    __name__,
    {
        "Client": "broker.client.client",
        "ClientError": "broker.client.errors",
        "Subscription": "broker.client.subscription",
        "SyncClient": "broker.client.sync_client",
        "connect": "broker.client.client",
        "connect_sync": "broker.client.sync_client",
    },
)

"""The client library: an asyncio client and a synchronous one, which publish and subscribe at one broker. `from broker
import connect` is the usual start. Of the broker packages it may import config, security and wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.client.client import Client, connect
    from broker.client.errors import ClientError, ClosedError, RefusedError
    from broker.client.options import chosen_servers
    from broker.client.subscription import Publication, Subscription
    from broker.client.sync_client import connect_sync
    from broker.client.validation import check_expression, check_name

__all__ = [
    "Client",
    "ClientError",
    "ClosedError",
    "Publication",
    "RefusedError",
    "Subscription",
    "check_expression",
    "check_name",
    "chosen_servers",
    "connect",
    "connect_sync",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "Client": "broker.client.client",
        "ClientError": "broker.client.errors",
        "ClosedError": "broker.client.errors",
        "Publication": "broker.client.subscription",
        "RefusedError": "broker.client.errors",
        "Subscription": "broker.client.subscription",
        "check_expression": "broker.client.validation",
        "check_name": "broker.client.validation",
        "chosen_servers": "broker.client.options",
        "connect": "broker.client.client",
        "connect_sync": "broker.client.sync_client",
    },
)

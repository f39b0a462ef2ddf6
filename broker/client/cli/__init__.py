"""The commands of clients: `mercast pub`, `sub`, `bench` and the live `trace`. It may import the client library, and
what the client library may import. The client library does not import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.client.cli.live_trace import trace_live

__all__ = ["trace_live"]

__getattr__ = lazy_exports(
    __name__,
    {"trace_live": "broker.client.cli.live_trace"},
)

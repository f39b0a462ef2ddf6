"""Mercast: content-based publish/subscribe. This package has the public names and the command line; it may import all
others.

    from mercast import connect

    async with connect("mercast://127.0.0.1:7001") as client:
        async with client.subscribe("price > 90") as prices:
            await client.publish({"symbol": "IBM", "price": 92.5})
            async for publication in prices:
                print(publication.attributes)

Each name here is loaded when it is first used: `import mercast` loads no library.

| name | |
| --- | --- |
| `connect`, `connect_sync` | a client of a broker, with and without asyncio |
| `parse`, `attr` | an expression, from text or written in Python |
| `create_index` | a matching index by name |
| `simulate` | one run of a scenario |
| `read_trace` | the tables that a run or a broker recorded |
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.client.client import connect
    from broker.client.sync_client import connect_sync
    from broker.trace.recorded_trace import read_trace
    from experiments.simulate.single_run import simulate
    from matching import attr, parse
    from matching import create as create_index
    from mercast.command_line import main

_PLACES = {
    "attr": ("matching", "attr"),
    "connect": ("broker.client.client", "connect"),
    "connect_sync": ("broker.client.sync_client", "connect_sync"),
    "create_index": ("matching", "create"),
    "main": ("mercast.command_line", "main"),
    "parse": ("matching", "parse"),
    "read_trace": ("broker.trace.recorded_trace", "read_trace"),
    "simulate": ("experiments.simulate.single_run", "simulate"),
}

__all__ = ["attr", "connect", "connect_sync", "create_index", "main", "parse", "read_trace", "simulate"]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'mercast' has no attribute {name!r}")
    module, attribute = _PLACES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__

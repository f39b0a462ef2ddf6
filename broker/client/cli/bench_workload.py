"""The workload of `mercast bench`: quotes, each of which matches a chosen share of the subscriptions.

A subscription selects one symbol and one half of the prices. A publication has one symbol and one price, so it matches
half of the symbol's subscriptions. The clients that must receive it are known, so missing deliveries can be counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from struct import Struct

import msgpack

from broker.client.errors import ClientError

MARK = Struct(">QQ")
"""The start of a payload: the publication's number and its scheduled time."""

_MIDDLE = 500


@dataclass(frozen=True, slots=True)
class Quote:
    attributes: bytes
    """One MessagePack map."""
    padding: bytes
    """The rest of the payload, which gives attributes and payload the requested size."""
    clients: int
    """The number of clients with a matching subscription."""


class BenchWorkload:
    def __init__(self, *, subscriptions: int, clients: int, matching: float, size: int, seed: int) -> None:
        symbols = max(1, round(1 / (2 * matching)))
        draw = Random(seed)
        self.subscriptions: list[dict[str, str]] = [{} for _ in range(clients)]
        """For each client, its expressions by name."""
        wanted: dict[tuple[int, bool], set[int]] = {}
        for number in range(subscriptions):
            symbol, is_high = number % symbols, number // symbols % 2 == 1
            client = draw.randrange(clients)
            operator = ">=" if is_high else "<"
            self.subscriptions[client][f"s{number}"] = f"symbol = 'S{symbol}' AND price {operator} {_MIDDLE}"
            wanted.setdefault((symbol, is_high), set()).add(client)
        self.quotes = [
            _quote(symbol, price, size, len(wanted.get((symbol, price >= _MIDDLE), ())))
            for symbol in range(symbols)
            for price in (draw.randrange(_MIDDLE), _MIDDLE + draw.randrange(_MIDDLE))
        ]
        draw.shuffle(self.quotes)


def _quote(symbol: int, price: int, size: int, clients: int) -> Quote:
    attributes: bytes = msgpack.packb({"symbol": f"S{symbol}", "price": price, "volume": 100})
    padding = size - len(attributes) - MARK.size
    if padding < 0:
        raise ClientError(f"--size {size} is too small; attributes and mark take {len(attributes) + MARK.size} bytes")
    return Quote(attributes, bytes(padding), clients)

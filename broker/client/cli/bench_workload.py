"""What `mercast bench` subscribes to and publishes: quotes, of which a chosen share of subscriptions matches each.

A subscription asks for one symbol and one half of the prices; a publication has one symbol and one price. So half of
a symbol's subscriptions match, and which clients have them is known beforehand: what did not arrive can be counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from struct import Struct

import msgpack

from broker.client.errors import ClientError

MARK = Struct(">QQ")
"""A payload starts with the publication's number and the time at which it was due."""

_MIDDLE = 500


@dataclass(frozen=True, slots=True)
class Quote:
    attributes: bytes
    """One MessagePack map."""
    padding: bytes
    """What follows the mark in the payload, so that attributes and payload have the size that was asked for."""
    clients: int
    """Subscribers with a subscription that matches."""


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

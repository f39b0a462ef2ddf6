"""Asking a broker how it is, over its admin address."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass

from broker.addresses import parse_address

ANSWER_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    id: str
    incarnation: int
    protocol: str
    uptime_s: float
    neighbours: Mapping[str, bool]
    """Is the link to each up?"""
    clients: int
    subscriptions: int
    remote_subscriptions: int
    queued: int
    published: int
    delivered: int
    drops: Mapping[str, int]
    memory_bytes: int

    @property
    def is_connected(self) -> bool:
        return all(self.neighbours.values())


def ask_status(admin: str) -> BrokerStatus | None:
    """None when the broker does not answer."""
    address = parse_address(admin)
    connection = http.client.HTTPConnection(address.host, address.port, timeout=ANSWER_WITHIN_S)
    try:
        connection.request("GET", "/status")
        answer = connection.getresponse()
        content = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return _status(content) if answer.status == 200 and isinstance(content, dict) else None


def _status(content: Mapping[str, object]) -> BrokerStatus:
    raise ValueError(content)

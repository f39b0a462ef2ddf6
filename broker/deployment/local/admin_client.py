"""Fetches a broker's status from its admin address."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker.config.address import parse_address

ANSWER_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """The part of a broker's status that `mercast status` shows. The admin pages show all of it."""

    broker: str
    listen: str
    admin: str
    protocol: str
    incarnation: int
    uptime_s: float
    neighbours: Mapping[str, bool]
    """Whether the link to each neighbour is up, by broker id."""
    clients: int
    local_subscriptions: int
    remote_subscriptions: int
    queued: int
    """Publications that the broker retransmits until every destination has settled them."""
    published_per_s: float
    delivered_per_s: float
    drops: Mapping[str, int]
    memory_bytes: int


def fetch_status(admin: str) -> BrokerStatus | None:
    """Returns the broker's status, or None without a valid answer."""
    address = parse_address(admin)
    connection = http.client.HTTPConnection(address.host, address.port, timeout=ANSWER_WITHIN_S)
    try:
        connection.request("GET", "/status")
        answer = connection.getresponse()
        content = json.loads(answer.read())
        return _status(content) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None
    finally:
        connection.close()


def _status(content: Mapping[str, Any]) -> BrokerStatus:
    tables, rates = content["tables"], content["rates"]
    return BrokerStatus(
        broker=str(content["broker"]),
        listen=str(content["listen"]),
        admin=str(content["admin"]),
        protocol=str(content["protocol"]),
        incarnation=int(content["incarnation"]),
        uptime_s=float(content["uptime_s"]),
        neighbours={str(each["id"]): bool(each["is_up"]) for each in content["neighbours"]},
        clients=int(content["client_count"]),
        local_subscriptions=int(tables["local_subscriptions"]),
        remote_subscriptions=int(tables["remote_subscriptions"]),
        queued=int(content["queues"]["in_custody"]),
        published_per_s=float(rates.get("published", 0.0)),
        delivered_per_s=float(rates.get("delivered", 0.0)),
        drops={str(reason): int(count) for reason, count in content["drops"].items()},
        memory_bytes=int(content["memory_bytes"]),
    )

"""Sends requests to the admin pages of brokers.

Pages that need a token answer 401 without it. Then the request is repeated with the token of the overlay, from the file
that `MERCAST_ADMIN_TOKEN_FILE` names, or else from the one in the overlay file.
"""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.config.address import Address, parse_address
from broker.config.overlay_config import read_config
from broker.deployment.local.errors import AdminError
from broker.security.security_config import read_admin_token
from broker.security.token_file import read_token

ANSWER_WITHIN_S = 2.0
LEAVE_WITHIN_S = 30.0
TOKEN_FILE_VARIABLE = "MERCAST_ADMIN_TOKEN_FILE"


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


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    text: str


class AdminClient:
    """Sends requests to the admin pages of one overlay's brokers."""

    def __init__(self, overlay_file: Path | None = None) -> None:
        self._overlay_file = overlay_file
        self._token = ""
        """The token, from the first answer on that demands it."""

    def fetch_status(self, admin: str) -> BrokerStatus | None:
        """Returns the broker's status, or None without a valid answer. Raises AdminError if the broker refuses it."""
        address = parse_address(admin)
        try:
            answer = self._request(address, "GET", "/status", ANSWER_WITHIN_S)
        except (OSError, http.client.HTTPException):
            return None
        _check_access(address, answer)
        try:
            return _status(json.loads(answer.text)) if answer.status == 200 else None
        except (ValueError, KeyError, TypeError):
            return None

    def request_leave(self, address: Address) -> str:
        """Requests that a broker leave its overlay. Returns the broker's answer."""
        try:
            answer = self._request(address, "POST", "/leave", LEAVE_WITHIN_S)
        except (OSError, http.client.HTTPException) as error:
            raise AdminError(f"no broker's admin pages at {address}: {error or type(error).__name__}") from error
        _check_access(address, answer)
        if answer.status != 200:
            raise AdminError(f"{address} answered {answer.status}: {answer.text[:200]}")
        return answer.text.strip()

    def _request(self, address: Address, method: str, page: str, within_s: float) -> _Answer:
        answer = _send(address, method, page, within_s, self._token)
        if answer.status == 401 and not self._token:
            self._token = self._find_token()
            if self._token:
                answer = _send(address, method, page, within_s, self._token)
        return answer

    def _find_token(self) -> str:
        name = os.environ.get(TOKEN_FILE_VARIABLE)
        if name:
            return read_token(Path(name), TOKEN_FILE_VARIABLE)
        if self._overlay_file is None or not self._overlay_file.is_file():
            return ""
        return read_admin_token(read_config(self._overlay_file))


def _send(address: Address, method: str, page: str, within_s: float, token: str) -> _Answer:
    headers = {"X-Mercast": page} if method == "POST" else {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection = http.client.HTTPConnection(address.host, address.port, timeout=within_s)
    try:
        connection.request(method, page, headers=headers)
        answer = connection.getresponse()
        return _Answer(answer.status, answer.read().decode(errors="replace"))
    finally:
        connection.close()


def _check_access(address: Address, answer: _Answer) -> None:
    if answer.status == 401:
        raise AdminError(
            f"the admin pages at {address} need their token; set {TOKEN_FILE_VARIABLE} to the file that has it"
        )
    if answer.status == 403:
        raise AdminError(f"the admin pages at {address} refuse the request: {answer.text[:200].strip()}")


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

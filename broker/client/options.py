"""What can be chosen for a client."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

from broker.wire.client_frames import DeliveryMode


@dataclass(frozen=True, slots=True)
class ClientOptions:
    name: str = ""
    """Drawn at random when empty. Needed by a durable client, which is known by it after its restart."""
    token: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    """None: in the clear."""
    mode: DeliveryMode = DeliveryMode.AT_LEAST_ONCE
    is_durable: bool = False
    window: int = 1024
    """Deliveries that may wait here or be on their way."""
    connect_within_s: float = 5.0
    """For each server at each attempt."""
    wait_s: float = 0.0
    """At the start: for how long to go on trying when no server takes the connection."""
    reconnect_within_s: float | None = None
    """Later: for how long to go on trying; for ever when None."""
    timeout_s: float | None = 30.0
    """How long to wait for a broker's answer."""
    drain_s: float = 5.0
    """How long closing may wait for answers to what was published."""

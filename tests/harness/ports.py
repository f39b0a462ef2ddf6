"""Free loopback ports for servers that tests start.

They are below the ports of outgoing connections. So a free port stays free until the server listens on it, and while
the server restarts.
"""

from __future__ import annotations

import random
import socket

_LOWEST, _HIGHEST = 15_000, 32_000
_generator = random.SystemRandom()
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Free ports that no earlier call in this process returned."""
    ports: list[int] = []
    while len(ports) < count:
        port = _generator.randrange(_LOWEST, _HIGHEST)
        if port not in _given and _is_free(port):
            _given.add(port)
            ports.append(port)
    return ports


def free_port() -> int:
    return free_ports(1)[0]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

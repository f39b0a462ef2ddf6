"""What can go wrong in routing.

RoutingError
├── UnknownProtocolError   no router of that name
├── RouterOptionError      a router has no option of that name, or not with that value
└── PeerError              a peer sent what no correct broker sends
"""

from __future__ import annotations


class RoutingError(Exception):
    exit_code = 1


class UnknownProtocolError(RoutingError, LookupError):
    exit_code = 3


class RouterOptionError(RoutingError, ValueError):
    exit_code = 3


class PeerError(RoutingError):
    """Carries what arrived; the peer's frame is dropped and counted, the broker goes on."""

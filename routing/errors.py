"""The errors of routing.

```
RoutingError
├── UnknownProtocolError   no router of that name
├── RouterOptionError      a router has no option of that name, or not with that value
└── PeerError              a peer sent a message that no correct broker sends
```
"""

from __future__ import annotations


class RoutingError(Exception):
    exit_code = 1


class UnknownProtocolError(RoutingError, LookupError):
    exit_code = 3


class RouterOptionError(RoutingError, ValueError):
    exit_code = 3


class PeerError(RoutingError):
    """Names the faulty message. The broker drops and counts the peer's frame, and continues."""

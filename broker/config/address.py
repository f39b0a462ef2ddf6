"""Network addresses: a host and a port."""

from __future__ import annotations

import ipaddress

PORT_MAX = 65_535


class AddressError(ValueError):
    """The text is not an address."""

    exit_code = 3


class Address:
    """A host and a port. Its text is the form that `parse_address` reads."""

    # It is not a dataclass: msgspec would read one from a table, and files have `host:port`.

    __slots__ = ("host", "port")

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and (self.host, self.port) == (other.host, other.port)

    def __hash__(self) -> int:
        return hash((self.host, self.port))

    def __repr__(self) -> str:
        return f"Address({self.host!r}, {self.port})"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parses `127.0.0.1:7001`, `broker.example.org:7001` or `[::1]:7001`. Port 0 means any free port."""
    host, colon, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if is_bracketed else host
    if not colon or not host or not port.isascii() or not port.isdigit() or (":" in host) != is_bracketed:
        raise AddressError(f"{text!r} is not an address; write host:port, for example 127.0.0.1:7001")
    if len(port) > 5 or int(port) > PORT_MAX:
        raise AddressError(f"{text!r} is not an address: a port is at most {PORT_MAX}")
    return Address(host, int(port))

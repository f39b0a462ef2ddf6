"""Network addresses: a host and a port."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass


class AddressError(ValueError):
    """The text is not an address."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port. Its text is the form that `parse_address` reads."""

    host: str
    port: int

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
    if int(port) > 65_535:
        raise AddressError(f"{text!r} is not an address: a port is at most 65535")
    return Address(host, int(port))

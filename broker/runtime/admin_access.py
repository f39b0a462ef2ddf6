"""Decides which requests the admin pages answer.

A web page of a foreign site can send requests to the pages through a browser on this machine. With DNS rebinding it can
even read the answers: its name resolves to the address of the pages. Such requests carry the site's name in `Host`, or
`Origin` or `Sec-Fetch-Site`, which a web page cannot change. So `Host` must be an IP address of the pages or a
configured name, and a request of a web page must come from the same origin.

The port in `Host` is not compared, because it is another one behind a forwarded port.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.config.address import Address
from broker.config.overlay_config import BrokerConfig

HEALTH_PAGE = "/healthz"
"""The page without a token. It says only whether the broker serves, and health checks have no secrets."""

_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<name>[^\s:/?#@\[\]]+))(?::[0-9]*)?")
_OWN_SITES = ("same-origin", "none")
"""Values of `Sec-Fetch-Site` for requests of the pages themselves and of a user who enters the address."""
_LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    text: str


class AdminAccess:
    def __init__(self, config: BrokerConfig, address: Address, token: Callable[[], str]) -> None:
        """`address`: the address of the pages. `token` returns the current token, empty if the pages need none."""
        known = (address, config.listen, *([config.address] if config.address is not None else []))
        self._names = {"localhost", *(each.host.lower() for each in known), *map(str.lower, config.overlay.admin.hosts)}
        self._is_loopback = address.is_loopback
        self._token = token

    def refusal(self, page: str, headers: Mapping[str, str]) -> Refusal | None:
        """The reason to refuse a request, or None. `headers` finds names in upper and lower case."""
        host = headers.get("Host", "")
        if not self._is_own_host(host):
            text = f"Host is {host[:_LONGEST_SHOWN]!r}, which is not known here; add its name to [admin] hosts"
            return Refusal(403, text)
        origin = headers.get("Origin")
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return Refusal(403, f"Origin is {origin[:_LONGEST_SHOWN]!r}; other sites may not use the admin pages")
        site = headers.get("Sec-Fetch-Site", "none")
        if site not in _OWN_SITES:
            text = f"Sec-Fetch-Site is {site[:_LONGEST_SHOWN]!r}; other sites may not use the admin pages"
            return Refusal(403, text)
        if page != HEALTH_PAGE and not self._has_token(headers.get("Authorization", "")):
            text = "this page needs the token in the file that [admin] token_file names, as Authorization: Bearer TOKEN"
            return Refusal(401, text)
        return None

    def _is_own_host(self, host: str) -> bool:
        parts = _HOST.fullmatch(host)
        if parts is None:
            return False
        name = (parts["ipv6"] or parts["name"]).lower()
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # An IP address as Host is never a rebound name. Beyond loopback, it may be one of a translated network.
        return address.is_loopback or not self._is_loopback

    def _has_token(self, authorization: str) -> bool:
        token = self._token()
        if not token:
            return True
        scheme, _, given = authorization.partition(" ")
        is_equal = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), token.encode())
        return scheme.lower() == "bearer" and is_equal

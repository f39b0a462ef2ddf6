"""The routers by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from routing.ddbr import DDBR
from routing.errors import UnknownProtocolError
from routing.fbr import FBR
from routing.flooding import Flooding
from routing.merc import MERC
from routing.router import Router

ROUTERS: dict[str, Callable[[str, int, str, tuple[str, ...], str], Router]] = {
    "fbr": FBR,
    "d-dbr": DDBR,
    "merc": MERC,
    "flooding": Flooding,
}


def names() -> tuple[str, ...]:
    return tuple(ROUTERS)


def create(
    name: str, me: str, incarnation: int, matcher: str = "auto", clusters: tuple[str, ...] = (), address: str = ""
) -> Router:
    if name not in ROUTERS:
        close = difflib.get_close_matches(name, ROUTERS, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise UnknownProtocolError(f"no protocol is called {name!r}{hint}; there are {', '.join(ROUTERS)}")
    return ROUTERS[name](me, incarnation, matcher, clusters, address)

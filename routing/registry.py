"""The routers by name, and the options that some of them have.

create("fbr", "b1", incarnation=1, options={"covering": True})
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from routing.d_dbr import DDBR
from routing.errors import RouterOptionError, UnknownProtocolError
from routing.fbr import FBR
from routing.flooding import Flooding
from routing.merc import MERC
from routing.router import Router


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a router. `keyword` is its name in the router's constructor."""

    keyword: str
    kind: type
    meaning: str


@dataclass(frozen=True, slots=True)
class RouterInfo:
    build: Callable[..., Router]
    options: Mapping[str, Option] = field(default_factory=dict)


ROUTERS: dict[str, RouterInfo] = {
    "fbr": RouterInfo(
        FBR,
        {
            "covering": Option("is_covering", bool, "a subscription that another covers is not passed on beside it"),
            "readvertise": Option("readvertises", bool, "a tree whose way to its home is lost takes another"),
        },
    ),
    "d-dbr": RouterInfo(DDBR),
    "merc": RouterInfo(MERC),
    "flooding": RouterInfo(Flooding),
}


def names() -> tuple[str, ...]:
    return tuple(ROUTERS)


def info(name: str) -> RouterInfo:
    if name not in ROUTERS:
        raise UnknownProtocolError(
            f"no protocol is called {name!r}{_nearest(name, ROUTERS)}; there are {', '.join(ROUTERS)}"
        )
    return ROUTERS[name]


def create(
    name: str,
    me: str,
    incarnation: int,
    matcher: str = "auto",
    clusters: tuple[str, ...] = (),
    address: str = "",
    options: Mapping[str, object] | None = None,
) -> Router:
    chosen = info(name)
    keywords = {_option(name, option, value).keyword: value for option, value in (options or {}).items()}
    return chosen.build(me, incarnation, matcher, clusters, address, **keywords)


def _option(name: str, option: str, value: object) -> Option:
    known = ROUTERS[name].options
    if option not in known:
        there_are = f"there is {', '.join(known)}" if known else "it has none"
        raise RouterOptionError(f"{name} has no option {option!r}{_nearest(option, known)}; {there_are}")
    if type(value) is not known[option].kind:
        raise RouterOptionError(f"{name}: {option} must be a {known[option].kind.__name__}, not {value!r}")
    return known[option]


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""

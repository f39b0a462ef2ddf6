"""The routers by name, and the options that some of them have.

`create("fbr", "b1", incarnation=1, options={"covering": True})` creates a router.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from matching.nearest import nearest
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
    """A protocol: how its router is built, and the traits that other packages use."""

    build: Callable[..., Router]
    options: Mapping[str, Option] = field(default_factory=dict)
    needs_clusters: bool = False
    """Whether brokers route by clusters: each cluster is a domain, and neighbours must share one."""
    names_destinations: bool = False
    """Whether a message names the brokers that it is for, so that brokers know the overlay and may reorganise it."""

    @property
    def can_reorganise(self) -> bool:
        return self.names_destinations

    def domains(self, clusters: tuple[str, ...]) -> tuple[str, ...]:
        """The domains of a broker that is in these clusters."""
        return clusters if self.needs_clusters else ("",)


ROUTERS: dict[str, RouterInfo] = {
    "fbr": RouterInfo(
        FBR,
        {
            "covering": Option("is_covering", bool, "a subscription that another covers is not passed on beside it"),
            "readvertise": Option("readvertises", bool, "a tree whose way to its home is lost takes another"),
        },
    ),
    "d-dbr": RouterInfo(DDBR, names_destinations=True),
    "merc": RouterInfo(MERC, needs_clusters=True, names_destinations=True),
    "flooding": RouterInfo(Flooding),
}


def names() -> tuple[str, ...]:
    """The names of all protocols."""
    return tuple(ROUTERS)


def default_name(*, has_clusters: bool) -> str:
    """The protocol of an overlay that names none."""
    return "merc" if has_clusters else "d-dbr"


def info(name: str) -> RouterInfo:
    """The description of a protocol. Raises UnknownProtocolError for an unknown name."""
    if name not in ROUTERS:
        raise UnknownProtocolError(
            f"no protocol is called {name!r}{nearest(name, ROUTERS)}; there are {', '.join(ROUTERS)}"
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
    """Creates the router of this protocol. Raises UnknownProtocolError for an unknown name."""
    chosen = info(name)
    keywords = {_option(name, option, value).keyword: value for option, value in (options or {}).items()}
    return chosen.build(me, incarnation, matcher, clusters, address, **keywords)


def _option(name: str, option: str, value: object) -> Option:
    known = ROUTERS[name].options
    if option not in known:
        there_are = f"there is {', '.join(known)}" if known else "it has none"
        raise RouterOptionError(f"{name} has no option {option!r}{nearest(option, known)}; {there_are}")
    if type(value) is not known[option].kind:
        raise RouterOptionError(f"{name}: {option} must be a {known[option].kind.__name__}, not {value!r}")
    return known[option]

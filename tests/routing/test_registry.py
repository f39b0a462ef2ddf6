"""The registry creates routers by name and with named options. It refuses unknown names and suggests the nearest."""

from __future__ import annotations

import pytest

from routing.errors import RouterOptionError, UnknownProtocolError
from routing.registry import create, names


@pytest.mark.parametrize("name", names())
def test_every_name_gives_a_router_of_that_name(name: str) -> None:
    assert create(name, "b1", 1, clusters=("west",)).name == name


def test_an_unknown_protocol_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UnknownProtocolError, match=r"'ddbr' \(did you mean 'd-dbr'\?\); there are fbr, d-dbr, merc"):
        create("ddbr", "b1", 1)


def test_an_unknown_option_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(RouterOptionError, match=r"fbr has no option 'cover' \(did you mean 'covering'\?\)"):
        create("fbr", "b1", 1, options={"cover": True})


def test_a_router_without_options_refuses_them() -> None:
    with pytest.raises(RouterOptionError, match="d-dbr has no option 'covering'; it has none"):
        create("d-dbr", "b1", 1, options={"covering": True})


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_an_option_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(RouterOptionError, match=rf"fbr: covering must be a bool, not {value!r}"):
        create("fbr", "b1", 1, options={"covering": value})


def test_merc_needs_clusters() -> None:
    with pytest.raises(ValueError, match="broker b1 is in no cluster"):
        create("merc", "b1", 1)

"""SRT and PRT: advertisements are found by intersection, subscriptions by matching, and a removed entry leaves
nothing."""

from __future__ import annotations

import msgpack
import pytest

from matching.expressions.values import Value
from matching.languages.sql import parse
from routing.messages import EntryId
from routing.tables import (
    EVERYBODY,
    Advertisement,
    AdvertisementTable,
    LocalAdvertisements,
    LocalSubscriptions,
    RemoteSubscriptions,
    region_of,
)

MATCHERS = ("auto", "pst-bloom", "be-tree")


def entry(number: int, broker: str = "b1") -> EntryId:
    return EntryId(broker, 1, number)


def packed(**attributes: Value) -> bytes:
    data: bytes = msgpack.packb(attributes)
    return data


def advertisement(number: int, source: str, text: str, *crossed: str) -> Advertisement:
    return Advertisement(entry(number, source), source, region_of(text), crossed)


def test_the_sources_with_an_intersecting_advertisement_are_in_ascending_order() -> None:
    table = AdvertisementTable()
    for number, source, text in ((1, "b3", "a < 5"), (2, "b1", "a > 3"), (3, "b2", "a > 9"), (4, "b2", "b = 1")):
        table.insert(advertisement(number, source, text))
    assert table.intersecting_sources(region_of("a = 4")) == ["b1", "b2", "b3"], "b2's `b = 1` has no predicate on a"
    assert table.intersecting_sources(region_of("a = 4 AND b = 2")) == ["b1", "b3"]
    assert table.intersecting_sources(region_of("a = 1 AND a = 2")) == []


def test_an_advertisement_of_two_is_removed_alone() -> None:
    table = AdvertisementTable()
    table.insert(advertisement(1, "b1", "a < 5"))
    table.insert(advertisement(2, "b1", "a > 3"))
    table.remove("b1", entry(1))
    assert table.intersecting_sources(region_of("a = 1")) == []
    assert table.intersecting_sources(region_of("a = 4")) == ["b1"]
    table.remove("b1", entry(2))
    assert (len(table), list(table), list(table.of("b1"))) == (0, [], [])


def test_entries_that_crossed_a_common_cluster_are_matched_there() -> None:
    table = AdvertisementTable()
    table.insert(advertisement(1, "edge", "TRUE", "west", "north"))
    region = region_of("a = 1")
    assert table.intersects("edge", region)
    assert table.intersects("edge", region, ("south",))
    assert not table.intersects("edge", region, ("north", "south"))


@pytest.mark.parametrize("matcher", MATCHERS)
def test_a_client_with_two_matching_subscriptions_is_named_once_with_both(matcher: str) -> None:
    table = LocalSubscriptions(matcher)
    table.insert(entry(1), "zoe", parse("price > 10"))
    table.insert(entry(2), "zoe", parse("symbol = 'IBM' OR price < 3"))
    table.insert(entry(3), "ann", parse("price > 50"))
    table.insert(entry(4), "ann", parse("price > 20"))
    report, clients = table.match(packed(symbol="IBM", price=30))
    assert list(clients.items()) == [("ann", (entry(4),)), ("zoe", (entry(1), entry(2)))]
    assert (report.stored, report.matched) == (4, 3)


def test_a_removed_local_subscription_matches_no_more() -> None:
    table = LocalSubscriptions("auto")
    table.insert(entry(1), "zoe", parse("price > 10"))
    table.remove(entry(1))
    assert table.match(packed(price=30))[1] == {}
    assert len(table) == 0


@pytest.mark.parametrize("matcher", MATCHERS)
def test_remote_subscriptions_find_local_and_transit_brokers(matcher: str) -> None:
    table = RemoteSubscriptions(matcher)
    table.insert(entry(1, "b3"), "b3", parse("a > 1"), ())
    table.insert(entry(2, "b2"), "b2", parse("a > 1 OR b = 1"), ())
    table.insert(entry(1, "c1"), "b2", parse("a > 1"), ("east",))
    table.insert(entry(1, "c9"), "b1", parse("a > 9"), ("east",))
    reports, local, transit = table.match(packed(a=2), crossed=())
    assert (local, transit) == (("b2", "b3"), ("b2",))
    assert [report.stored for report in reports] == [2, 2]


def test_subscriptions_that_crossed_a_cluster_of_the_publication_are_not_matched() -> None:
    table = RemoteSubscriptions("auto")
    table.insert(entry(1, "c1"), "b2", parse("a > 1"), ("east",))
    table.insert(entry(1, "d1"), "b3", parse("a > 1"), ("north", "south"))
    reports, local, transit = table.match(packed(a=2), crossed=("east", "west"))
    assert (local, transit) == ((), ("b3",))
    assert len(reports) == 1
    assert table.match(packed(a=2), crossed=("east", "south")) == ([], (), ())


def test_the_last_removed_remote_subscription_removes_its_index() -> None:
    table = RemoteSubscriptions("auto")
    table.insert(entry(1, "c1"), "b2", parse("a > 1"), ("east",))
    table.insert(entry(2, "c1"), "b2", parse("a > 1"), ())
    table.remove(entry(1, "c1"))
    reports, local, transit = table.match(packed(a=2), crossed=())
    assert (len(reports), local, transit, len(table)) == (1, ("b2",), (), 1)


def test_a_publication_is_permitted_by_its_publishers_first_advertisement_that_it_satisfies() -> None:
    table = LocalAdvertisements()
    table.insert(entry(1), "ann", parse("a < 5"))
    table.insert(entry(2), "ann", parse("a < 9"))
    table.insert(entry(3), "zoe", parse("TRUE"))
    assert table.find_permitting("ann", packed(a=3)) == entry(1)
    assert table.find_permitting("ann", packed(a=7)) == entry(2)
    assert table.find_permitting("ann", packed(a=10)) is None
    assert table.find_permitting("zoe", packed(a=10)) == entry(3)
    assert table.find_permitting("nobody", packed(a=3)) is None


def test_everybodys_advertisement_permits_all_and_does_not_decode_the_publication() -> None:
    table = LocalAdvertisements()
    table.insert(entry(1), EVERYBODY, parse("TRUE"))
    assert table.find_permitting("anyone", b"\xc1 is not MessagePack") == entry(1)


@pytest.mark.parametrize("name", ["*", "everybody", " "])
def test_no_name_that_a_client_can_have_advertises_for_everybody(name: str) -> None:
    table = LocalAdvertisements()
    table.insert(entry(1), name, parse("TRUE"))
    assert table.find_permitting("another", packed(a=1)) is None


def test_a_withdrawn_advertisement_permits_nothing() -> None:
    table = LocalAdvertisements()
    table.insert(entry(1), "ann", parse("TRUE"))
    table.remove(entry(1))
    assert table.find_permitting("ann", packed(a=1)) is None
    assert (len(table), list(table.items())) == (0, [])

"""Proves each metric of the analysis on tables so small that the results can be counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from broker.trace.schema import (
    BrokerRow,
    DeliveryRow,
    DropRow,
    ExpectationRow,
    HopRow,
    LinkRow,
    MatchRow,
    PublicationRow,
    Row,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MakeFrame = Callable[..., "DataFrame"]

# One publication from a over b to c and d. c has two clients, b none.
HOPS = (
    HopRow("a/1/0", "publish", "a", "a", "b", 1, 2, 40, 100, 1.010, 1.012),
    HopRow("a/1/0", "publish", "a", "b", "c", 2, 1, 38, 100, 1.013, 1.015),
    HopRow("a/1/0", "publish", "a", "b", "d", 2, 1, 38, 100, 1.013, 1.016),
    HopRow("update", "update", "c", "c", "b", 0, 5, 70, 0, 0.5, 0.502),
)
DELIVERIES = (
    DeliveryRow("a/1/0", "c", "s1", 2, 1.0, 1.020),
    DeliveryRow("a/1/0", "c", "s2", 2, 1.0, 1.022),
    DeliveryRow("a/1/0", "d", "s3", 2, 1.0, 1.030),
    DeliveryRow("a/1/0", "a", "s0", 0, 1.0, 1.008),
)
PUBLICATIONS = (PublicationRow("a/1/0", "a", "p1", 1.0, 3, 100),)


def rows(table: DataFrame, *order: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (table.orderBy(*order) if order else table).toArrow().to_pylist()
    return found


def only(table: DataFrame) -> dict[str, Any]:
    (row,) = rows(table)
    return row


def test_latency_is_in_milliseconds_with_percentiles_that_occurred(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.latency import latency

    found = only(latency(frame(DELIVERIES)))
    assert (found["run"], found["protocol"], found["deliveries"]) == ("one", "p", 4)
    assert found["latency_ms_mean"] == pytest.approx(20.0)
    assert found["latency_ms_p50"] == pytest.approx(20.0)
    assert found["latency_ms_p99"] == found["latency_ms_max"] == pytest.approx(30.0)


def test_latency_by_broker_and_over_time_splits_the_same_deliveries(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.latency import latency, latency_over_time

    late = DeliveryRow("a/1/1", "c", "s1", 2, 7.5, 7.6)
    deliveries = frame([*DELIVERIES, late])
    by_broker = rows(latency(deliveries, "broker"), "broker")
    assert [(row["broker"], row["deliveries"]) for row in by_broker] == [("a", 1), ("c", 3), ("d", 1)]
    over_time = rows(latency_over_time(deliveries, 5.0), "at_s")
    assert [(row["at_s"], row["deliveries"]) for row in over_time] == [(0.0, 4), (5.0, 1)]
    assert over_time[1]["latency_ms_max"] == pytest.approx(100.0)


def test_hops_count_deliveries_at_the_source_as_zero(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.paths import hop_distribution, hops

    assert only(hops(frame(DELIVERIES)))["hops_mean"] == pytest.approx(1.5)
    spread = rows(hop_distribution(frame(DELIVERIES)), "hops")
    assert [(row["hops"], row["deliveries"], row["share"]) for row in spread] == [(0, 1, 0.25), (2, 3, 0.75)]


def test_routing_accuracy_has_both_meanings_and_leaves_the_source_out(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.paths import routing_accuracy

    found = only(routing_accuracy(frame(HOPS), frame(DELIVERIES)))
    # b, c and d were reached; c and d are interested, each two hops away.
    assert found["interested_share_mean"] == pytest.approx(2 / 3)
    assert found["destination_hops_mean"] == 2.0
    assert found["inverse_hops"] == 0.5


def test_destination_lists_are_of_publications_alone_in_all_and_at_the_source(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.destinations import destination_distribution, destinations

    found = only(destinations(frame(HOPS)))
    assert (found["messages"], found["messages_at_source"]) == (3, 1)
    assert found["destinations_mean"] == pytest.approx(4 / 3)
    assert found["destinations_max"] == found["destinations_at_source_mean"] == 2
    shares = [
        (row["place"], row["destinations"], row["messages"], round(row["share_at_most"], 3))
        for row in rows(destination_distribution(frame(HOPS)), "place", "destinations")
    ]
    assert shares == [("all", 1, 2, 0.667), ("all", 2, 1, 1.0), ("source", 2, 1, 1.0)]


def test_delivery_distinguishes_missed_duplicated_and_unexpected(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.delivery import delivery, duplicates, misses

    expectations = [
        ExpectationRow("a/1/0", "s1", expected=True, owed=True),
        ExpectationRow("a/1/0", "s2", expected=True, owed=True),
        ExpectationRow("a/1/0", "s8", expected=True, owed=True),
        ExpectationRow("a/1/0", "s9", expected=True, owed=False),
    ]
    delivered = frame([*DELIVERIES[:3], DELIVERIES[0]])
    found = only(delivery(frame(PUBLICATIONS), delivered, frame(expectations)))
    counts = {name: found[name] for name in ("published", "expected", "owed", "delivered", "duplicated")}
    assert counts == {"published": 1, "expected": 4, "owed": 3, "delivered": 3, "duplicated": 1}
    assert (found["missed"], found["unexpected"]) == (1, 1)
    assert found["delivered_of_expected"] == 0.5
    assert found["delivered_of_owed"] == pytest.approx(2 / 3)
    assert only(misses(delivered, frame(expectations)))["client"] == "s8"
    twice = only(duplicates(delivered))
    assert (twice["client"], twice["times"]) == ("s1", 2)


def test_without_expectations_delivery_is_counted_and_ratios_are_empty(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.delivery import delivery

    found = only(delivery(frame(PUBLICATIONS), frame(DELIVERIES), frame([], ExpectationRow)))
    assert (found["published"], found["delivered"], found["duplicated"]) == (1, 4, 0)
    assert found["expected"] is found["missed"] is found["delivered_of_expected"] is found["delivered_of_owed"] is None


def test_a_run_in_which_nothing_arrived_has_a_row(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.delivery import delivery

    found = only(delivery(frame(PUBLICATIONS), frame([], DeliveryRow), frame([], ExpectationRow)))
    assert (found["published"], found["delivered"]) == (1, 0)


def broker(name: str, at_s: float, busy_s: float, local: int, remote: int, queue: int = 0) -> Row:
    return BrokerRow(name, at_s, busy_s, queue, 2, local, remote, 50, None)


def test_stored_subscriptions_are_those_of_each_brokers_last_row(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.subscriptions import stored_subscriptions

    brokers = frame([broker("a", 1, 0, 9, 9), broker("a", 5, 1, 2, 6), broker("b", 5, 1, 2, 0)])
    found = only(stored_subscriptions(brokers))
    assert (found["brokers"], found["local_subscriptions"], found["stored_subscriptions_max"]) == (2, 4, 8)
    assert found["stored_subscriptions_mean"] == 5.0
    assert found["copies_mean"] == 1.5


def test_messages_are_counted_by_kind_with_their_bytes(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.messages import messages_by_kind

    found = rows(messages_by_kind(frame(HOPS)), "kind")
    assert [(row["kind"], row["messages"], row["header_bytes"], row["body_bytes"]) for row in found] == [
        ("publish", 3, 116, 300),
        ("update", 1, 70, 0),
    ]


MATCHES = (
    MatchRow("a", "a/1/0", "L-PRT", 5, 1, 1, 0, 1.004, 0.001),
    MatchRow("a", "a/1/0", "R-PRT", 10, 2, 2, 2, 1.004, 0.002),
    MatchRow("c", "a/1/0", "L-PRT", 5, 2, 2, 2, 1.018, 0.001),
)


def test_a_broker_with_two_lookups_matched_once(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.matching_work import matching_work

    found = only(matching_work(frame(MATCHES)))
    assert (found["publications"], found["matches_mean"], found["stored_mean"]) == (1, 2.0, 20.0)
    assert found["cost_ms_mean"] == pytest.approx(4.0)


def test_busy_share_is_of_publishing_where_rows_allow_it(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.broker_load import broker_load, load_over_time

    published = [PublicationRow("a/1/0", "a", "p1", 10.0, 3, 1), PublicationRow("a/1/1", "a", "p1", 20.0, 3, 1)]
    brokers = frame(
        [
            broker("a", 10, 4, 0, 0),
            broker("a", 15, 5, 0, 0, queue=7),
            broker("a", 20, 9, 0, 0),
            broker("a", 40, 9.5, 0, 0),
            broker("z", 40, 10, 0, 0),
        ]
    )
    found = rows(broker_load(brokers, frame(published), frame(HOPS), frame(MATCHES)), "broker")
    assert [(row["broker"], row["busy_s"], row["busy_share"]) for row in found] == [("a", 5.0, 0.5), ("z", 10.0, 0.25)]
    assert [(row["sent"], row["received"], row["matches"], row["queue_frames_max"]) for row in found] == [
        (1, 0, 2, 7),
        (0, 0, 0, 0),
    ]
    shares = [(row["from_s"], row["busy_share"]) for row in rows(load_over_time(brokers), "broker", "from_s")]
    assert shares == [(10.0, 0.2), (15.0, 0.8), (20.0, 0.025), (0.0, 0.25)]


def test_busy_share_of_a_deployment_does_not_count_from_time_zero(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.broker_load import broker_load

    clock = 1_790_000_000.0
    published = [PublicationRow("a/1/0", "a", "p1", clock, 3, 1)]
    brokers = frame([broker("a", clock + 1, 2, 0, 0), broker("a", clock + 5, 3, 0, 0)])
    found = only(broker_load(brokers, frame(published), frame(HOPS), frame(MATCHES)))
    assert found["busy_share"] == pytest.approx(0.25)


def test_waiting_is_up_to_matching_and_staying_up_to_leaving(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.broker_load import queueing

    found = {row["broker"]: row for row in rows(queueing(frame(PUBLICATIONS), frame(HOPS), frame(MATCHES)))}
    assert found["a"]["wait_ms_mean"] == pytest.approx(4.0)
    assert found["a"]["stay_ms_mean"] == pytest.approx(10.0)
    assert found["b"]["wait_ms_mean"] is None
    assert found["b"]["stay_ms_mean"] == pytest.approx(1.0)
    assert found["c"]["wait_ms_mean"] == pytest.approx(3.0)
    assert found["d"]["stay_ms_mean"] is None


def test_links_are_rated_over_the_time_they_were_up(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.link_traffic import link_utilisation

    links = [LinkRow("a", "b", 0.0, 0.5), LinkRow("a", "b", 0.9, None), LinkRow("b", "c", 0.0, None)]
    found = rows(link_utilisation(frame(HOPS), frame([*links, LinkRow("x", "y", 0.0, None)])), "a", "b")
    assert [(row["a"], row["b"], row["messages"]) for row in found] == [
        ("a", "b", 1),
        ("b", "c", 2),
        ("b", "d", 1),
        ("x", "y", 0),
    ]
    assert found[0]["up_s"] == pytest.approx(0.5 + 1.016 - 0.9)
    assert found[0]["messages_per_s"] == pytest.approx(1 / found[0]["up_s"])
    assert found[1]["bytes"] == 208
    assert found[2]["up_s"] is found[2]["messages_per_s"] is None


def test_the_slowest_publications_have_the_path_to_their_last_delivery(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.slowest import slowest

    quick = DeliveryRow("a/1/1", "a", "s0", 0, 2.0, 2.001)
    slow = DeliveryRow("z/1/0", "b", "s4", 1, 3.0, 3.5)
    hop = HopRow("z/1/0", "publish", "z", "z", "b", 1, 1, 9, 9, 3.1, 3.2)
    found = rows(slowest(frame([*DELIVERIES, quick, slow]), frame([*HOPS, hop]), limit=2), "rank")
    assert [(row["rank"], row["publication"], row["client"]) for row in found] == [
        (1, "z/1/0", "s4"),
        (2, "a/1/0", "s3"),
    ]
    assert found[0]["path"] == "z > b 200.0 ms"
    assert found[1]["path"] == "a > b 12.0 ms > d 16.0 ms"


def test_drops_are_counted_by_broker_and_reason(frame: MakeFrame) -> None:
    from experiments.analysis.metrics.delivery import drops

    dropped = [DropRow(1.0, "a", "queue full", None, ""), DropRow(2.0, "a", "queue full", "a/1/0", "")]
    assert only(drops(frame(dropped)))["drops"] == 2


def test_comparison_relates_every_other_run_to_the_first(spark: SparkSession) -> None:
    from experiments.analysis.summary import comparison

    summary = spark.createDataFrame(
        [("one", "p", 10, 4.0), ("two", "q", 5, 0.0), ("three", "q", None, 1.0)],
        "run STRING, protocol STRING, published BIGINT, latency DOUBLE",
    )
    found = rows(comparison(summary, "two"), "run", "figure")
    assert [
        (row["run"], row["figure"], row["first"], row["second"], row["difference"], row["ratio"]) for row in found
    ] == [
        ("one", "latency", 0.0, 4.0, 4.0, None),
        ("one", "published", 5.0, 10.0, 5.0, 2.0),
        ("three", "latency", 0.0, 1.0, 1.0, None),
        ("three", "published", 5.0, None, None, None),
    ]


@pytest.mark.parametrize(
    ("length_s", "step_s"), [(0.0, 0.001), (0.5, 0.01), (12.0, 0.5), (300.0, 10.0), (4_000.0, 100.0)]
)
def test_steps_of_time_are_round_and_not_too_many(length_s: float, step_s: float) -> None:
    from experiments.analysis.tables import round_step

    assert round_step(length_s) == step_s

"""The recorder of both drivers: each row holds what the broker did, at the times that the driver passed."""

from __future__ import annotations

import msgpack

from broker.core.effects import Deliver, DroppedRow, Effect, MatchedRow, Record, SetTimer
from broker.core.inputs import Published
from broker.trace.recorder import TraceRecorder
from broker.trace.schema import (
    BrokerRow,
    DeliveryRow,
    DropRow,
    HopRow,
    LinkRow,
    MatchRow,
    PublicationRow,
    Row,
)
from routing.messages import Heartbeat, PublicationId, Publish
from routing.router import Counts
from routing.tables import TableWork

SECOND = 1_000_000_000
ID = PublicationId("b1", 1, 7)
ATTRIBUTES = msgpack.packb({"n": 1, "m": 2})


class Rows:
    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.published_at: dict[PublicationId, int] = {}

    def record(self, row: Row) -> None:
        self.rows.append(row)

    def recorder(self, broker: str) -> TraceRecorder:
        return TraceRecorder(broker, self, self.published_at)


def test_a_publication_has_the_time_and_the_size_of_its_request() -> None:
    trace = Rows()
    recorder = trace.recorder("b1")
    recorder.requested(Published("c", 3, ATTRIBUTES, b"body"), 2 * SECOND)
    assert recorder.accepted("c", 3, ID, 5 * SECOND) == 2 * SECOND
    assert trace.published_at == {ID: 2 * SECOND}
    assert trace.rows == [PublicationRow("b1/1/7", "b1", "c", 2.0, 2, len(ATTRIBUTES) + 4)]


def test_the_time_of_publishing_is_known_before_the_row_is_recorded() -> None:
    trace = Rows()
    recorder = trace.recorder("b1")
    recorder.requested(Published("c", 3, ATTRIBUTES, b""), 2 * SECOND)
    recorder.note_time("c", 3, ID, 5 * SECOND)
    assert trace.published_at == {ID: 2 * SECOND}
    assert trace.rows == []
    assert recorder.accepted("c", 3, ID, 6 * SECOND) == 2 * SECOND


def test_a_refused_request_is_forgotten() -> None:
    trace = Rows()
    recorder = trace.recorder("b1")
    recorder.requested(Published("c", 3, ATTRIBUTES, b""), 2 * SECOND)
    recorder.refused("c", 3)
    assert recorder.accepted("c", 3, ID, 5 * SECOND) == 5 * SECOND


def test_lookups_and_drops_are_recorded_and_other_effects_are_not() -> None:
    trace = Rows()
    effects: list[Effect] = [
        SetTimer("tick", 0),
        Record(MatchedRow(ID, TableWork("R-PRT", 10, 4, 3, 2))),
        Record(DroppedRow("expired", ID, "late")),
        Record(DroppedRow("queue full", None, "")),
    ]
    trace.recorder("b2").handled(effects, 3 * SECOND, lambda work: work.stored * SECOND / 10)
    assert trace.rows == [
        MatchRow("b2", "b1/1/7", "R-PRT", 10, 4, 3, 2, 3.0, 1.0),
        DropRow(3.0, "b2", "expired", "b1/1/7", "late"),
        DropRow(3.0, "b2", "queue full", None, ""),
    ]


def test_a_received_publication_counts_its_destinations_and_its_hop() -> None:
    trace = Rows()
    message = Publish(ID, "b1", "d", local=("b2", "b3"), transit=(), hops=1, attributes=ATTRIBUTES, payload=b"body")
    trace.recorder("b2").received("b4", message, 30, 11, SECOND, 2 * SECOND)
    assert trace.rows == [HopRow("b1/1/7", "publish", "b1", "b4", "b2", 2, 2, 30, 11, 1.0, 2.0)]


def test_another_message_is_named_by_its_kind() -> None:
    trace = Rows()
    trace.recorder("b2").received("b4", Heartbeat(1, ()), 30, 0, SECOND, 2 * SECOND)
    assert trace.rows == [HopRow("heartbeat", "heartbeat", "b4", "b4", "b2", 0, 1, 30, 0, 1.0, 2.0)]


def test_a_delivery_has_both_times() -> None:
    trace = Rows()
    trace.recorder("b2").delivered(Deliver("c", ID, ("all",), ATTRIBUTES, b"", 2), SECOND, 3 * SECOND)
    assert trace.rows == [DeliveryRow("b1/1/7", "b2", "c", 2, 1.0, 3.0)]


def test_a_link_is_recorded_at_one_of_its_ends() -> None:
    trace = Rows()
    trace.recorder("b1").link("b2", SECOND, None)
    trace.recorder("b2").link("b1", SECOND, None)
    trace.recorder("b1").link("b2", 2 * SECOND, 3 * SECOND)
    assert trace.rows == [LinkRow("b1", "b2", 1.0, None), LinkRow("b1", "b2", 2.0, 3.0)]


def test_a_state_has_the_sizes_of_the_tables() -> None:
    trace = Rows()
    counts = Counts(advertisements=1, local_subscriptions=2, remote_subscriptions=3, routing_table_bytes=4)
    trace.recorder("b1").state(counts, at=2 * SECOND, busy=SECOND, queue=5, memory_bytes=None)
    assert trace.rows == [BrokerRow("b1", 2.0, 1.0, 5, 1, 2, 3, 4, None)]

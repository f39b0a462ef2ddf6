"""Credits of one link: at most the credit is in flight, no frame is forgotten, and frames keep their order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.core.links import Inbox, Outbox
from routing.messages import PublicationId, Publish


def frame(number: int) -> Publish:
    return Publish(PublicationId("b1", 1, number), "b1", "", ("b2",), (), b"", b"")


def test_frames_beyond_the_credit_wait_and_are_sent_in_order_when_there_is_room() -> None:
    outbox = Outbox(credit=2, limit=10)
    assert [outbox.offer(frame(number)) for number in range(4)] == [(frame(0), 1), (frame(1), 2), None, None]
    assert (outbox.in_flight, outbox.waiting) == (2, 2)
    assert outbox.acknowledge(1) == [(frame(2), 3)]
    assert outbox.offer(frame(4)) is None, "others wait before it"
    assert outbox.acknowledge(3) == [(frame(3), 4), (frame(4), 5)]


def test_a_number_that_never_arrived_is_covered_by_a_later_one() -> None:
    outbox = Outbox(credit=3, limit=10)
    for number in range(3):
        outbox.offer(frame(number))
    outbox.acknowledge(3)
    assert outbox.in_flight == 0


def test_news_that_is_old_or_of_frames_never_sent_changes_nothing() -> None:
    outbox = Outbox(credit=2, limit=10)
    outbox.offer(frame(0))
    outbox.acknowledge(99)
    assert outbox.in_flight == 0
    outbox.offer(frame(1))
    outbox.acknowledge(1)
    outbox.acknowledge(0)
    assert outbox.in_flight == 1


def test_the_queue_is_full_at_its_limit() -> None:
    outbox = Outbox(credit=1, limit=2)
    for number in range(2):
        outbox.offer(frame(number))
        assert not outbox.is_full
    outbox.offer(frame(2))
    assert outbox.is_full
    outbox.acknowledge(1)
    assert not outbox.is_full


def test_frames_assumed_lost_free_their_credit() -> None:
    outbox = Outbox(credit=1, limit=2)
    outbox.offer(frame(0))
    outbox.offer(frame(1))
    assert outbox.assume_lost() == [(frame(1), 2)]
    assert outbox.in_flight == 1


def test_the_receiver_acknowledges_after_a_quarter_of_the_credit_or_on_request() -> None:
    inbox = Inbox(credit=8)
    assert [inbox.receive(1), inbox.receive(2), inbox.receive(3)] == [None, 2, None]
    assert inbox.acknowledge() == 3


@given(st.integers(1, 6), st.lists(st.sampled_from(("offer", "arrive", "lose", "acknowledge")), max_size=60))
def test_no_more_than_the_credit_is_in_flight_and_all_are_sent_once_in_order(credit: int, steps: list[str]) -> None:
    outbox, inbox = Outbox(credit, limit=1000), Inbox(credit)
    offered = 0
    in_flight: list[int] = []
    sent: list[int] = []

    def send(frames: list[tuple[Publish, int]]) -> None:
        for message, number in frames:
            sent.append(message.id.counter)
            in_flight.append(number)

    for step in steps:
        if step == "offer":
            offer = outbox.offer(frame(offered))
            offered += 1
            send([offer] if offer is not None else [])
        elif step == "acknowledge":
            send(outbox.acknowledge(inbox.acknowledge()))
        elif in_flight:
            number = in_flight.pop(0)
            acknowledged = inbox.receive(number) if step == "arrive" else None
            send(outbox.acknowledge(acknowledged) if acknowledged is not None else [])
        assert len(in_flight) <= outbox.in_flight <= credit
    while outbox.waiting:
        send(outbox.assume_lost())
    assert sent == list(range(offered))

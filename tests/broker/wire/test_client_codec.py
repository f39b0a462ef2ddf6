"""Frames between clients and brokers: encoded frames decode to the same values, and all other bytes are refused."""

from __future__ import annotations

from itertools import pairwise
from typing import get_args

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.wire.broker_codec import NAMES as NAMES_BETWEEN_BROKERS
from broker.wire.client_codec import (
    CLIENT_VERSION,
    FIRST_KIND,
    NAMES,
    DeliveryWriter,
    decode,
    encode,
    kind_of,
    pack_subscriptions,
)
from broker.wire.client_frames import (
    ClientFrame,
    Delivery,
    DeliveryMode,
    Hello,
    Ping,
    PublicationsAccepted,
    PublishRequest,
    Subscribe,
)
from broker.wire.framing import FrameSplitter
from broker.wire.limits import Limits, WireError
from routing.messages import PublicationId
from tests.harness.client_frame_strategies import ANY_FRAME, FRAMES

LIMITS = Limits()
PUBLISH = PublishRequest(7, b"\x81\xa1a\x01", b"payload", 1500, True)
DELIVERY = Delivery(3, ("s1", "s2"), 2, PublicationId("b1", 4, 900), b"\x81\xa1a\x01", b"payload")


def refusal(frame: bytes, limits: Limits = LIMITS) -> str:
    with pytest.raises(WireError) as refused:
        decode(frame, limits)
    return str(refused.value)


def control(kind: str, fields: object) -> bytes:
    """A frame with hand-made fields."""
    number = next(number for number, name in NAMES.items() if name == kind)
    packed: bytes = msgpack.packb(fields)
    size = 8 + len(packed)
    return size.to_bytes(4, "big") + bytes([0x94, 1, number, 0xCE]) + size.to_bytes(4, "big") + packed


def with_names(packed: bytes) -> bytes:
    """A delivery whose broker and subscriptions are these bytes."""
    whole = encode(DELIVERY._replace(attributes=b"", payload=b"", subscriptions=()))
    size = len(whole) - 4 - len(b"\xa2b1\x90") + len(packed)
    start = size.to_bytes(4, "big") + whole[4:8] + size.to_bytes(4, "big") + whole[12:-4]
    return start + packed


def with_id(packed: bytes) -> bytes:
    """A publication without attributes and payload whose id is these bytes."""
    whole = encode(PublishRequest(1, b"", id="x"))
    size = len(whole) - 4 - len(b"\xa1x") + len(packed)
    return size.to_bytes(4, "big") + whole[4:8] + size.to_bytes(4, "big") + whole[12:-2] + packed


def test_every_frame_has_a_number_that_no_frame_between_brokers_has() -> None:
    kinds = {kind.__name__ for kind in get_args(ClientFrame)}
    assert set(NAMES.values()) == kinds == {kind.__name__ for kind in FRAMES}
    assert min(NAMES) == FIRST_KIND > max(NAMES_BETWEEN_BROKERS)


@given(ANY_FRAME)
def test_frames_are_decoded_as_they_were_encoded(frame: ClientFrame) -> None:
    written = encode(frame)
    back = decode(written, LIMITS)
    assert back == frame
    assert type(back) is type(frame)
    assert NAMES[kind_of(written)] == type(frame).__name__


@given(ANY_FRAME)
def test_every_header_is_one_messagepack_array(frame: ClientFrame) -> None:
    written = encode(frame)
    header_bytes = int.from_bytes(written[8:12], "big")
    version, kind, size, fields = msgpack.unpackb(written[4 : 4 + header_bytes])
    assert (version, NAMES[kind], size) == (CLIENT_VERSION, type(frame).__name__, header_bytes)
    assert isinstance(fields, list)


def test_a_publication_for_several_clients_differs_in_number_and_subscriptions_alone() -> None:
    writer = DeliveryWriter(DELIVERY.id, DELIVERY.hops, DELIVERY.attributes, DELIVERY.payload)
    for number, names in ((3, ("s1", "s2")), (2**40, ()), (0, ("x" * 200,))):
        expected = DELIVERY._replace(number=number, subscriptions=names)
        assert decode(writer.frame(number, names), LIMITS) == expected
        assert writer.frame_for(number, pack_subscriptions(names)) == encode(expected)


@given(st.lists(ANY_FRAME, max_size=8), st.data())
def test_frames_are_complete_for_any_pieces_of_the_stream(frames: list[ClientFrame], data: st.DataObject) -> None:
    stream = b"".join(map(encode, frames))
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12))), len(stream)]
    splitter = FrameSplitter(LIMITS)
    whole = [frame for start, end in pairwise(cuts) if end > start for frame in splitter.feed(stream[start:end])]
    assert [decode(frame, LIMITS) for frame in whole] == frames


def test_a_splitter_returns_the_frames_before_a_length_beyond_the_limit_and_then_refuses() -> None:
    splitter = FrameSplitter(Limits(frame_bytes=100))
    ping = encode(Ping(1))
    assert splitter.feed(ping + (97).to_bytes(4, "big")) == [ping]
    for _ in range(2):
        with pytest.raises(WireError, match="frame: 101 bytes are announced; the limit frame_bytes is 100"):
            splitter.feed(ping)


@settings(max_examples=300)
@given(st.binary(max_size=80))
def test_random_bytes_are_refused_and_nothing_else(data: bytes) -> None:
    with pytest.raises(WireError):
        decode(data, LIMITS)


@settings(max_examples=400)
@given(ANY_FRAME, st.data())
def test_a_damaged_frame_is_refused_or_read_as_another_and_nothing_else(
    frame: ClientFrame, data: st.DataObject
) -> None:
    damaged = bytearray(encode(frame))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        back = decode(bytes(damaged), LIMITS)
    except WireError:
        return
    assert decode(encode(back), LIMITS) == back


@given(ANY_FRAME, st.data())
def test_a_truncated_frame_is_refused(frame: ClientFrame, data: st.DataObject) -> None:
    written = encode(frame)
    with pytest.raises(WireError):
        decode(written[: data.draw(st.integers(0, len(written) - 1))], LIMITS)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (b"", "a frame of 0 bytes is shorter than any header"),
        (encode(Ping(1))[:5] + b"\x09" + encode(Ping(1))[6:], "version 9 of the client protocol is not known here"),
        (encode(Ping(1))[:6] + b"\x03" + encode(Ping(1))[7:], "no frame of a client has the number 3"),
        (encode(Ping(1)) + b"x", "Ping: 10 bytes are announced, 11 follow"),
        (control("Ping", [-1]), "Ping: number is -1"),
        (control("Ping", [True]), "Ping: number is a boolean"),
        (control("Ping", {}), "Ping: the header is a map, not an array"),
        (
            control("Hello", ["", "s", "", "at-least-once", False, 1, []]),
            "Hello: client has the length 0; it must be >= 1",
        ),
        (control("Hello", ["c" * 256, "s", "", "at-least-once", False, 1, []]), "Hello: client has 256 bytes"),
        (
            control("Hello", ["c", "s", "", "twice", False, 1, []]),
            "Hello: mode is 'twice', not at-least-once or at-most-once",
        ),
        (control("Hello", ["c", "s", "", "at-least-once", False, 0, []]), "Hello: window is 0"),
        (control("Welcome", ["b", 1, False, 0, 1, 1, 0, 0, 1, [], []]), "Welcome: publish_window is 0"),
        (
            control("Welcome", ["b", 1, False, 0, 1, 1, 1, 0, 1, [], ["7"]]),
            "Welcome: missing[0] is a text, not an integer",
        ),
        (control("PublicationsAccepted", [[1, 2, 3]]), "PublicationsAccepted: answers are not pairs of numbers"),
        (control("PublicationsAccepted", [["a", "b"]]), "PublicationsAccepted: answers[0] is a text, not an integer"),
        (control("PublicationsAccepted", [[1, -2]]), "PublicationsAccepted: answers[1] is -2; it must be >= 0"),
        (control("TraceQuery", [1, ["b", 1]]), "TraceQuery: publication has 2 fields, not 3"),
        (control("Delivery", [1, 0, 0, 1, 1, "b", []]), "Delivery: a frame of 21 bytes is none"),
        (with_names(b"\xa1b\x91\x02"), "Delivery: subscriptions[0] is an integer, not a text"),
        (with_names(b"\x07\x90"), "Delivery: broker is an integer, not a text"),
        (with_names(b"\xa1b"), "Delivery: the header ends within its fields"),
        (with_names(b"\xa1b\x90\x01"), "Delivery: 1 bytes follow the fields in the header"),
        (
            encode(DELIVERY)[:26] + b"\xff" + encode(DELIVERY)[27:],
            "Delivery: 56 bytes of header and 255 of attributes are announced, 67 follow",
        ),
        (encode(DELIVERY)[:12] + b"\x96" + encode(DELIVERY)[13:], "Delivery: the header is not one"),
        (encode(DELIVERY)[:14] + b"\xff" + encode(DELIVERY)[15:], "Delivery: one of (18374686479671623683, 4, 900)"),
        (control("PublishRequest", [1, 0, 0, False]), "PublishRequest: the header has 13 bytes, not 33"),
        (with_id(b"\xa0"), "PublishRequest: id"),
        (with_id(b"\x07"), "PublishRequest: id is an integer, not a text"),
        (with_id(b"\xa1x\x00"), "PublishRequest: 1 bytes follow the fields in the header"),
        (with_id(b"\xa2x"), "PublishRequest: the header ends within its fields"),
        (encode(PUBLISH._replace(id="x" * 256)), "PublishRequest: id has 256 bytes; the limit of a name is 255"),
        (encode(PUBLISH)[:27] + b"\x00" + encode(PUBLISH)[28:], "PublishRequest: the header is not one"),
        (
            encode(PUBLISH)[:26] + b"\xff" + encode(PUBLISH)[27:],
            "PublishRequest: 255 bytes of attributes are announced, 11 are left",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_an_error_names_the_wrong_field(frame: bytes, expected: str) -> None:
    assert refusal(frame).startswith(expected)


@pytest.mark.parametrize(
    ("frame", "limits", "expected"),
    [
        (PUBLISH, Limits(frame_bytes=47), "PublishRequest: the frame has 48 bytes; the limit frame_bytes is 47"),
        (DELIVERY, Limits(header_bytes=20), "Delivery: the header has 56 bytes; the limit header_bytes is 20"),
        (
            Subscribe(1, "s", "a > 1"),
            Limits(text_bytes=4),
            "Subscribe: expression has 5 bytes; the limit text_bytes is 4",
        ),
        (PublicationsAccepted((1, 2)), Limits(items=1, destinations=9), "PublicationsAccepted: answers has 2 elements"),
        (
            Hello("c", "s", capabilities=("a", "b")),
            Limits(items=1),
            "Hello: capabilities has 2 elements; the limit items is 1",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_limit_is_named_with_the_value_beyond_it(frame: ClientFrame, limits: Limits, expected: str) -> None:
    assert refusal(encode(frame), limits).startswith(expected)


def test_long_arrays_nested_by_the_hundred_claim_no_memory() -> None:
    nested = b"\xdd\x00\x00\x40\x00" * 4000
    assert refusal(with_names(b"\xa1b" + nested)) == "Delivery: subscriptions[0] is an array, not a text"


@pytest.mark.parametrize("frame", [Ping(2**64), Subscribe(1, "\ud800", "")], ids=["65 bits", "a lone surrogate"])
def test_a_frame_that_cannot_be_encoded_is_refused_by_kind(frame: ClientFrame) -> None:
    with pytest.raises(WireError, match=f"{type(frame).__name__}: cannot be written"):
        encode(frame)


def test_a_mode_reads_as_the_enumeration() -> None:
    hello = decode(encode(Hello("c", "s", mode=DeliveryMode.AT_MOST_ONCE)), LIMITS)
    assert isinstance(hello, Hello)
    assert hello.mode is DeliveryMode.AT_MOST_ONCE

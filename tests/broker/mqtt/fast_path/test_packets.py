"""The gateway's own packet codec agrees with paho's, for any split of the bytes. Bytes that are not MQTT raise a
`PacketError`."""

from __future__ import annotations

import struct
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from broker.mqtt.fast_path.packets import (
    PUBLISH,
    Message,
    PacketError,
    PacketSplitter,
    read_puback,
    read_publish,
    variable_length,
    write_pubacks,
    write_publish,
)
from broker.mqtt.fast_path.properties import packed_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
PAYLOADS = st.one_of(st.binary(max_size=300), st.integers(0, 70_000).map(bytes))


@st.composite
def paho_properties(draw: st.DrawFn) -> Properties:
    """Draws all kinds of properties that an MQTT broker may send with a message."""
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    if draw(st.booleans()):
        properties.PayloadFormatIndicator = 1
    if draw(st.booleans()):
        properties.MessageExpiryInterval = draw(st.integers(0, 2**32 - 1))
    if draw(st.booleans()):
        properties.ContentType = draw(TEXTS)
        properties.ResponseTopic = "answers/here"
        properties.CorrelationData = draw(st.binary(max_size=9))
    for number in draw(st.lists(st.integers(1, 268_435_455), max_size=2)):
        properties.SubscriptionIdentifier = number
    for pair in draw(st.lists(st.tuples(TEXTS, TEXTS), max_size=12)):
        properties.UserProperty = pair
    return properties


def user_properties(properties: Properties) -> list[tuple[str, str]]:
    return list(getattr(properties, "UserProperty", []))


def split(data: bytes, cuts: list[int]) -> list[tuple[int, bytes, int]]:
    splitter = PacketSplitter()
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [packet for one, other in pairwise(places) for packet in splitter.feed(data[one:other])]


@given(TEXTS, PAYLOADS, st.integers(0, 0xFFFF), paho_properties(), st.lists(st.integers(0, 80_000), max_size=6))
def test_a_message_with_pahos_properties_is_read_as_it_was_written(
    topic: str, payload: bytes, id: int, properties: Properties, cuts: list[int]
) -> None:
    packet = write_publish(packed_text(topic), payload, id, properties.pack())  # type: ignore[no-untyped-call]
    ((first, whole, start), last) = split(packet + b"\xd0\x00", cuts)
    assert (whole, last) == (packet, (0xD0, b"\xd0\x00", 2))
    assert first & 0xF0 == PUBLISH
    expected = Message(topic, payload, 1 if id else 0, False, id, user_properties(properties))
    assert read_publish(whole, start, is_version_5=True) == expected


@given(TEXTS, PAYLOADS, st.integers(0, 0xFFFF))
def test_a_message_of_mqtt_3_1_1_is_read_as_it_was_written(topic: str, payload: bytes, id: int) -> None:
    ((_, packet, start),) = PacketSplitter().feed(write_publish(packed_text(topic), payload, id, b""))
    assert read_publish(packet, start, is_version_5=False) == Message(topic, payload, 1 if id else 0, False, id, [])


@given(st.lists(st.integers(1, 0xFFFF), max_size=50), st.lists(st.integers(0, 200), max_size=5))
def test_acknowledgements_are_split_correctly_for_any_split_of_the_bytes(ids: list[int], cuts: list[int]) -> None:
    packets = split(write_pubacks(ids), cuts)
    assert [read_puback(packet, start) for _, packet, start in packets] == [(id, 0) for id in ids]


def test_an_acknowledgement_contains_the_reason_of_a_refusal() -> None:
    ((_, packet, start),) = PacketSplitter().feed(b"\x40\x04\x80\x01\x87\x00")
    assert read_puback(packet, start) == (0x8001, 0x87)


@pytest.mark.parametrize("number", [0, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455])
def test_lengths_are_read_as_they_are_written(number: int) -> None:
    encoded = variable_length(number)
    splitter = PacketSplitter()
    assert splitter.feed(b"\x30" + encoded + b"x" * min(number, 10)) == (
        [(0x30, b"\x30" + encoded, 1 + len(encoded))] if number == 0 else []
    )
    assert splitter._needed == (2 if number == 0 else 1 + len(encoded) + number)


def test_a_length_of_five_bytes_is_refused() -> None:
    with pytest.raises(PacketError, match="more than four bytes"):
        PacketSplitter().feed(b"\x30\xff\xff\xff\xff\x01")


@given(st.binary(max_size=60), st.booleans())
@example(b"\x34\x05\x00\x01a\x00\x01", False)
@example(b"\x32\x08\x00\x01a\x00\x01\x05\x26\x00", True)
@example(b"\x30\x05\x00\x01a\x80\x80", True)
@example(b"\x30\x06\x00\x01a\x02\x0b\x80", True)
def test_bytes_that_are_no_mqtt_are_a_packet_error_and_nothing_else(data: bytes, is_version_5: bool) -> None:
    with suppress(PacketError):
        for first, packet, start in PacketSplitter().feed(data):
            if first & 0xF0 == PUBLISH:
                message = read_publish(packet, start, is_version_5=is_version_5)
                assert len(message.payload) < len(packet)
            else:
                read_puback(packet, start)


@pytest.mark.parametrize("is_repeated", [True, False])
def test_a_repeated_message_is_marked(is_repeated: bool) -> None:
    packet = bytearray(write_publish(packed_text("a"), b"b", 7, b""))
    packet[0] |= 8 * is_repeated
    assert read_publish(bytes(packet), 2, is_version_5=False) == Message("a", b"b", 1, False, 7, [], is_repeated)


def test_a_message_of_qos_2_is_refused() -> None:
    packet = b"\x34" + struct.pack("!BH", 5, 1) + b"a\x00\x01"
    with pytest.raises(PacketError, match="QoS 2"):
        read_publish(packet, 2, is_version_5=False)

"""Frames decode to what was encoded: every kind of message, every field, every byte of a body, in any pieces."""

from __future__ import annotations

from typing import Any, get_args

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.wire.broker_codec import NAMES, Limits, WireError, decode, encode, header_size, size
from broker.wire.framing import FrameSplitter
from routing.messages import (
    Change,
    Credit,
    EntryId,
    LinkState,
    Message,
    PublicationId,
    Publish,
    Subscribe,
    Turn,
    Update,
)
from tests.harness.wire_strategies import (
    BODIES,
    CHANGE_FIELDS,
    LINK_STATE_FIELDS,
    MESSAGE_FIELDS,
    messages_of,
    numbered_messages,
)

LIMITS = Limits()

PUBLISH = Publish(
    PublicationId("b1", 3, 700),
    source="b1",
    domain="west",
    local=("b2", "b3"),
    transit=("b3",),
    attributes=b"\x81\xa1a\x01",
    payload=b"hello",
    crossed=("west",),
    tree=EntryId("b1", 3, 5),
    hops=2,
    expires=None,
    hop_limit=62,
)


def test_every_kind_of_message_has_a_number_and_a_test() -> None:
    kinds = {kind.__name__ for kind in get_args(Message)}
    assert set(NAMES.values()) == kinds
    assert {kind.__name__ for kind in MESSAGE_FIELDS} == kinds
    assert set(CHANGE_FIELDS) == set(get_args(Change))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [*MESSAGE_FIELDS.items(), *CHANGE_FIELDS.items(), (LinkState, LINK_STATE_FIELDS)],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_no_field_of_a_message_is_left_out_of_the_tests(kind: Any, fields: dict[str, object]) -> None:
    assert set(fields) == set(kind.__match_args__)


@pytest.mark.parametrize("kind", MESSAGE_FIELDS, ids=lambda kind: kind.__name__)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_message_is_decoded_as_it_was_encoded(kind: type[Message], data: st.DataObject) -> None:
    message = data.draw(messages_of(kind))
    back, sequence = decode(encode(message), LIMITS)
    assert back == message
    assert type(back) is kind
    assert sequence is None
    assert encode(back) == encode(message)


@settings(deadline=None)
@given(messages_of(Publish), st.integers(0, 2**40))
def test_a_publication_has_its_number_on_the_link(message: Message, sequence: int) -> None:
    assert decode(encode(message, sequence), LIMITS) == (message, sequence)


@settings(deadline=None)
@given(BODIES, BODIES)
def test_any_attributes_and_payload_are_decoded_byte_for_byte(attributes: bytes, payload: bytes) -> None:
    sent = PUBLISH._replace(attributes=attributes, payload=payload)
    frame = encode(sent, 1)
    assert frame.endswith(attributes + payload)
    back, _ = decode(frame, LIMITS)
    assert isinstance(back, Publish)
    assert (back.attributes, back.payload) == (attributes, payload)
    assert type(back.attributes) is type(back.payload) is bytes


def test_a_body_as_large_as_the_frame_allows_is_accepted() -> None:
    room = LIMITS.frame_bytes - header_size(PUBLISH._replace(attributes=b"\xc1" * 70_000), 9)
    large = PUBLISH._replace(attributes=b"\xc1" * 70_000, payload=b"\xdc" * (room - 70_000))
    assert size(large, 9) == LIMITS.frame_bytes
    assert decode(encode(large, 9), LIMITS) == (large, 9)


@settings(deadline=None)
@given(numbered_messages())
def test_sizes_are_those_of_the_frame(numbered: tuple[Message, int | None]) -> None:
    message, sequence = numbered
    body = len(message.attributes) + len(message.payload) if isinstance(message, Publish) else 0
    assert size(message, sequence) == len(encode(message, sequence))
    assert header_size(message, sequence) == len(encode(message, sequence)) - body


def test_the_format_of_version_2_stays_as_it_is() -> None:
    credit = encode(Credit(300))
    assert credit.hex(" ") == "00 00 00 0c 94 02 03 ce 00 00 00 0c 91 cd 01 2c"
    publish = encode(PUBLISH, 17)
    assert publish[:4] == (len(publish) - 4).to_bytes(4, "big")
    assert publish[-9:] == PUBLISH.attributes + PUBLISH.payload
    id, tree = ["b1", 3, 700], ["b1", 3, 5]
    fields = [17, 4, id, "b1", "west", ["b2", "b3"], ["b3"], ["west"], tree, 2, None, 62, False]
    assert msgpack.unpackb(publish[4:-9]) == [2, 1, len(publish) - 13, fields]
    update = Update("b1", 1, "", (Turn("b2", 0, 4),), (Subscribe(EntryId("b1", 1, 2), "a > 1", ("x",), since=700),), 9)
    changes = [[3, ["b1", 1, 2], "a > 1", ["x"], None, False, 700]]
    assert msgpack.unpackb(encode(update)[4:])[3] == ["b1", 1, "", [["b2", 0, 4]], changes, 9, False]


def test_only_publications_are_numbered() -> None:
    with pytest.raises(WireError, match="Credit: only publications are numbered"):
        encode(Credit(1), 5)


@pytest.mark.parametrize(
    "message",
    [Credit(2**64), PUBLISH._replace(source="\ud800")],
    ids=["65 bits", "a lone surrogate"],
)
def test_a_frame_that_cannot_be_encoded_is_refused_by_kind(message: Message) -> None:
    with pytest.raises(WireError, match=f"{type(message).__name__}: cannot be written"):
        encode(message)


@settings(deadline=None)
@given(st.lists(numbered_messages(), max_size=6), st.data())
def test_a_stream_gives_the_same_frames_for_any_pieces(
    sent: list[tuple[Message, int | None]], data: st.DataObject
) -> None:
    stream = b"".join(encode(*each) for each in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    splitter = FrameSplitter(LIMITS)
    frames = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        frames += splitter.feed(stream[start:end])
    assert [decode(frame, LIMITS) for frame in frames] == sent


def test_a_stream_read_byte_by_byte_gives_each_frame_with_its_last_byte() -> None:
    frames = [encode(PUBLISH, 1), encode(Credit(4)), encode(PUBLISH, 2)]
    splitter = FrameSplitter(LIMITS)
    seen = []
    for count, byte in enumerate(b"".join(frames), start=1):
        seen += [(count, frame) for frame in splitter.feed(bytes([byte]))]
    ends = [len(b"".join(frames[: index + 1])) for index in range(3)]
    assert seen == list(zip(ends, frames, strict=True))

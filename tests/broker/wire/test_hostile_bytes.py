"""For any bytes, decoding returns a message or raises `WireError`, and takes little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import get_args

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.wire import link_handshake
from broker.wire.broker_codec import NAMES, Limits, WireError, decode, encode
from broker.wire.framing import FrameSplitter
from routing.messages import Message
from tests.harness.wire_strategies import NUMBERS, TEXTS, frame_of, frame_with, messages_of, numbered_messages

LIMITS = Limits()
KINDS = st.sampled_from(sorted(NAMES))


def decoded(frame: bytes, limits: Limits = LIMITS) -> bool:
    """Whether the bytes are a frame. Checks that encoding and decoding the message again gives the same message."""
    try:
        message, sequence = decode(frame, limits)
    except WireError:
        return False
    assert decode(encode(message, sequence), Limits(frame_bytes=2**31, header_bytes=2**31)) == (message, sequence)
    return True


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_are_refused(frame: bytes) -> None:
    assert not decoded(frame)


@settings(max_examples=120, deadline=None)
@given(KINDS, st.binary(min_size=1, max_size=100), st.binary(max_size=20))
def test_random_bytes_in_place_of_the_fields_are_refused_or_read(kind: int, packed: bytes, body: bytes) -> None:
    decoded(frame_of(kind, packed, body))


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | NUMBERS
    | st.floats()
    | TEXTS
    | st.binary(max_size=70)
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=3))
)
THINGS = st.recursive(
    SCALARS,
    lambda things: st.lists(things, max_size=12) | st.dictionaries(TEXTS | st.integers(0, 9), things, max_size=3),
    max_leaves=30,
)


@settings(max_examples=120, deadline=None)
@given(KINDS, THINGS, st.binary(max_size=20))
def test_any_messagepack_in_place_of_the_fields_is_refused_or_read(kind: int, fields: object, body: bytes) -> None:
    decoded(frame_with(kind, fields, body))


def _replaced(value: object, path: list[int], by: object) -> object:
    """Returns `value` with the element at `path` replaced."""
    if not path or not isinstance(value, list) or not value:
        return by
    index = path[0] % len(value)
    return [*value[:index], _replaced(value[index], path[1:], by), *value[index + 1 :]]


@settings(max_examples=120, deadline=None)
@given(numbered_messages(), st.lists(st.integers(0, 30), min_size=1, max_size=5), THINGS)
def test_a_message_with_one_element_exchanged_is_refused_or_read(
    numbered: tuple[Message, int | None], path: list[int], thing: object
) -> None:
    frame = encode(*numbered)
    end = 4 + int.from_bytes(frame[8:12], "big")
    fields = _replaced(msgpack.unpackb(frame[12:end]), path, thing)
    decoded(frame_with(frame[6], fields, frame[end:]))


@settings(max_examples=120, deadline=None)
@given(numbered_messages(), st.data())
def test_flipped_bits_are_refused_or_read(numbered: tuple[Message, int | None], data: st.DataObject) -> None:
    frame = bytearray(encode(*numbered))
    for position in data.draw(st.lists(st.integers(0, 8 * len(frame) - 1), min_size=1, max_size=4)):
        frame[position // 8] ^= 1 << position % 8
    decoded(bytes(frame))


@pytest.mark.parametrize("kind", get_args(Message), ids=lambda kind: kind.__name__)
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_a_frame_cut_short_anywhere_is_refused_and_a_reader_waits(kind: type[Message], data: st.DataObject) -> None:
    frame = encode(data.draw(messages_of(kind)))
    for end in range(len(frame)):
        with pytest.raises(WireError):
            decode(frame[:end], LIMITS)
        splitter = FrameSplitter(LIMITS)
        assert splitter.feed(frame[:end]) == []
        assert splitter.feed(frame[end:]) == [frame]


@pytest.mark.parametrize("kind", get_args(Message), ids=lambda kind: kind.__name__)
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_a_header_cut_short_anywhere_is_refused_even_if_its_lengths_agree(
    kind: type[Message], data: st.DataObject
) -> None:
    frame = encode(data.draw(messages_of(kind)))
    header_end = 4 + int.from_bytes(frame[8:12], "big")
    for end in range(12, header_end):
        with pytest.raises(WireError):
            decode(frame_of(frame[6], frame[12:end], frame[header_end:]), LIMITS)


SHORT_FRAMES = st.binary(max_size=60).map(lambda rest: len(rest).to_bytes(4, "big") + rest)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40) | SHORT_FRAMES, max_size=10))
def test_a_reader_of_random_bytes_gives_frames_or_refuses(pieces: list[bytes]) -> None:
    splitter = FrameSplitter(Limits(frame_bytes=60))
    frames: list[bytes] = []
    refused = False
    # The splitter returns the frames before a refused one first. One more attempt shows whether a frame was refused.
    for piece in (*pieces, b""):
        try:
            frames += splitter.feed(piece)
        except WireError:
            refused = True
    rest = b"".join(pieces).removeprefix(b"".join(frames))
    assert len(rest) == sum(map(len, pieces)) - sum(map(len, frames))
    announced = int.from_bytes(rest[:4], "big") + 4
    assert refused == (len(rest) >= 4 and announced > 60)
    assert refused or len(rest) < 4 or len(rest) < announced


def test_a_reader_that_refused_keeps_no_further_bytes() -> None:
    splitter = FrameSplitter(LIMITS)
    with pytest.raises(WireError):
        splitter.feed(b"\xff" * 500_000)
    tracemalloc.start()
    try:
        for _ in range(20):
            with pytest.raises(WireError):
                splitter.feed(bytes(500_000))
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


def claimed_bytes(frame: bytes, read: Callable[[bytes, Limits], object] = decode) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            read(frame, LIMITS)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", sorted(NAMES), ids=lambda kind: NAMES[kind])
@pytest.mark.parametrize("long_array", [b"\xdc\x40\x00", b"\xdd\x00\x00\x40\x00"], ids=["16 bits", "32 bits"])
def test_a_nest_of_long_arrays_is_refused_before_room_is_made_for_it(kind: int, long_array: bytes) -> None:
    """A reader that trusted these lengths would claim some hundred times as much memory."""
    nest = long_array * 1000 + b"\xc0" * 20_000
    assert claimed_bytes(frame_of(kind, nest)) < 1_000_000


@pytest.mark.parametrize("kind", link_handshake.KINDS)
def test_so_it_is_with_the_first_frames_of_a_link_which_anybody_can_send(kind: int) -> None:
    nest = b"\xdc\x40\x00" * 1000 + b"\xc0" * 20_000
    assert claimed_bytes(frame_of(kind, nest), link_handshake.decode) < 1_000_000


def test_a_frame_of_the_largest_size_claims_a_bounded_multiple_of_it() -> None:
    """Each level of a header's lists may announce as many elements as there are bytes."""
    long = b"\xdd" + (LIMITS.header_bytes // 2).to_bytes(4, "big")
    state = b"\x98\xa0\x00\x00\xa0" + long + b"\x92\xa0\x00"
    nest = b"\x91" + long + state
    frame = frame_of(5, nest + b"\xc0" * (LIMITS.frame_bytes - 12 - len(nest)))
    assert claimed_bytes(frame) < 16 * LIMITS.frame_bytes


def test_a_list_of_the_most_elements_claims_a_bounded_multiple_of_it() -> None:
    count = (LIMITS.header_bytes - 100) // 4
    names = b"".join(b"\xa3" + f"{index % 1000:03}".encode() for index in range(count))
    nest = b"\x96\xa0\xa0\xdd" + count.to_bytes(4, "big") + names + b"\x90\x00\x00"
    assert claimed_bytes(frame_of(2, nest)) < 32 * LIMITS.frame_bytes

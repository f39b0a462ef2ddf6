"""Bytes that are no frame, and frames beyond a limit, are refused. The message names the kind, the field and the
value."""

from __future__ import annotations

import math

import msgpack
import pytest
from msgspec.structs import replace

from broker.wire.broker_codec import NAMES, Limits, WireError, decode, encode
from broker.wire.framing import FrameSplitter
from routing.messages import (
    LARGEST_NUMBER,
    Advertise,
    Credit,
    EntryId,
    Heartbeat,
    LinkState,
    LinkStates,
    Message,
    Neighbour,
    PublicationId,
    Publish,
    Settled,
    Subscribe,
    Turn,
    Unadvertise,
    Unsubscribe,
    Update,
)
from tests.harness.wire_strategies import frame_of, frame_with

LIMITS = Limits()
NUMBER_OF = {name: number for number, name in NAMES.items()}

PUBLISH = Publish(PublicationId("b1", 1, 1), "b1", "", ("b2", "b3", "b4"), (), b"", b"p" * 200)
ENTRY = EntryId("b1", 1, 1)
THREE_TURNS = tuple(Turn(name, 0, 0) for name in ("b2", "b3", "b4"))
THREE_CHANGES = (Advertise(ENTRY, "a > 1"), Unadvertise(ENTRY), Unsubscribe(ENTRY))
THREE_NAMES = ("x", "y", "z")
STATE = LinkState("b1", 1, 1, "", ())


def refusal(frame: bytes, limits: Limits = LIMITS) -> str:
    with pytest.raises(WireError) as refused:
        decode(frame, limits)
    return str(refused.value)


@pytest.mark.parametrize(
    ("message", "limits", "expected"),
    [
        (PUBLISH, Limits(frame_bytes=241), "Publish: the frame has 242 bytes; the limit frame_bytes is 241"),
        (PUBLISH, Limits(header_bytes=37), "Publish: the header has 38 bytes; the limit header_bytes is 37"),
        (PUBLISH, Limits(destinations=2), "Publish: local has 3 elements; the limit destinations is 2"),
        (
            PUBLISH._replace(local=(), transit=THREE_NAMES),
            Limits(destinations=2),
            "Publish: transit has 3 elements; the limit destinations is 2",
        ),
        (
            PUBLISH._replace(crossed=THREE_NAMES),
            Limits(items=2),
            "Publish: crossed has 3 elements; the limit items is 2",
        ),
        (
            PUBLISH._replace(source="é" * 50),
            Limits(text_bytes=99),
            "Publish: source has 100 bytes; the limit text_bytes is 99",
        ),
        (
            PUBLISH._replace(local=tuple(map(str, range(20_000)))),
            LIMITS,
            "Publish: local has 20000 elements; the limit destinations is 4096",
        ),
        (
            Update("b1", 1, "", THREE_TURNS, ()),
            Limits(destinations=2),
            "Update: turns has 3 elements; the limit destinations is 2",
        ),
        (
            Update("b1", 1, "", (), THREE_CHANGES),
            Limits(changes=2),
            "Update: changes has 3 elements; the limit changes is 2",
        ),
        (
            Update("b1", 1, "", (), (Subscribe(ENTRY, "a > 1", THREE_NAMES),)),
            Limits(items=2),
            "Update: changes[0].crossed has 3 elements; the limit items is 2",
        ),
        (
            Update("b1", 1, "", (), (Advertise(ENTRY, "a > 1", THREE_NAMES),)),
            Limits(items=2),
            "Update: changes[0].crossed has 3 elements; the limit items is 2",
        ),
        (
            Update("b1", 1, "", (), (Subscribe(ENTRY, "price > 100"),)),
            Limits(text_bytes=10),
            "Update: changes[0].expression has 11 bytes; the limit text_bytes is 10",
        ),
        (
            Settled("b1", "", THREE_NAMES, ()),
            Limits(destinations=2),
            "Settled: destinations has 3 elements; the limit destinations is 2",
        ),
        (
            Settled("b1", "", (), (PublicationId("b1", 1, 1),) * 3),
            Limits(items=2),
            "Settled: publications has 3 elements; the limit items is 2",
        ),
        (LinkStates((STATE,) * 3), Limits(items=2), "LinkStates: states has 3 elements; the limit items is 2"),
        (
            LinkStates((replace(STATE, neighbours=tuple(Neighbour(name, 1) for name in THREE_NAMES)),)),
            Limits(items=2),
            "LinkStates: states[0].neighbours has 3 elements; the limit items is 2",
        ),
        (
            LinkStates((replace(STATE, clusters=THREE_NAMES),)),
            Limits(items=2),
            "LinkStates: states[0].clusters has 3 elements; the limit items is 2",
        ),
        (Heartbeat(1, THREE_NAMES), Limits(items=2), "Heartbeat: clusters has 3 elements; the limit items is 2"),
        (
            Heartbeat(1, (), tuple((name, b"") for name in THREE_NAMES)),
            Limits(items=2),
            "Heartbeat: known has 3 elements; the limit items is 2",
        ),
        (
            Heartbeat(1, (), (("x", bytes(65)),)),
            LIMITS,
            "Heartbeat: known[0][1] has the length 65; it must be <= 64",
        ),
    ],
)
def test_a_limit_is_named_with_the_value_beyond_it(message: Message, limits: Limits, expected: str) -> None:
    assert refusal(encode(message), limits) == expected


@pytest.mark.parametrize(
    ("message", "limits"),
    [
        (PUBLISH, Limits(frame_bytes=242, header_bytes=38, destinations=3, text_bytes=2, changes=0, items=0)),
        (Update("b1", 1, "", THREE_TURNS, THREE_CHANGES), Limits(destinations=3, changes=3, text_bytes=5, items=0)),
        (LinkStates((replace(STATE, clusters=THREE_NAMES),) * 3), Limits(items=3, text_bytes=2)),
        (Heartbeat(1, (), (("x", bytes(64)),)), Limits(items=1, text_bytes=1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_messages_that_just_reach_the_limits_are_accepted(message: Message, limits: Limits) -> None:
    assert decode(encode(message), limits) == (message, None)


ID = ["b1", 1, 1]
PUBLISH_FIELDS: dict[str, object] = {
    "sequence": None,
    "attributes": 0,
    "id": ID,
    "source": "b1",
    "domain": "",
    "local": ["b2"],
    "transit": [],
    "crossed": [],
    "tree": None,
    "hops": 0,
    "expires": None,
    "hop_limit": 64,
    "is_traced": False,
}


def publish_with(**changed: object) -> list[object]:
    return list({**PUBLISH_FIELDS, **changed}.values())


def test_the_hand_made_publication_is_one() -> None:
    message, sequence = decode(frame_with(1, publish_with()), LIMITS)
    assert message == Publish(PublicationId("b1", 1, 1), "b1", "", ("b2",), (), b"", b"")
    assert sequence is None


NO_CHANGES: list[tuple[object, str]] = [
    (None, "changes[0] is nil, not an array"),
    (1, "changes[0] is an integer, not an array"),
    ([], "changes[0] has 0 fields, not at least 1"),
    (["1"], "changes[0].kind is a text, not an integer"),
    ([True, ID], "changes[0].kind is a boolean, not an integer"),
    ([[]], "changes[0].kind is an array, not an integer"),
]
NEGATIVE = "it must be >= 0"
TOO_LARGE = f"it must be <= {LARGEST_NUMBER}"


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("Publish", None, "the header is nil, not an array"),
        ("Publish", 3, "the header is an integer, not an array"),
        ("Publish", publish_with()[:-1], "the header has 12 fields, not at least 13"),
        ("Publish", [*publish_with(), None, 0], "the header has 15 fields, not at most 14"),
        ("Publish", [*publish_with(), "once"], "once is a text, not an array or nil"),
        ("Publish", [*publish_with(), ["c"]], "once has 1 fields, not 2"),
        ("Publish", publish_with(source=3), "source is an integer, not a text"),
        ("Publish", publish_with(source=b"b1"), "source is bytes, not a text"),
        ("Publish", publish_with(hops=True), "hops is a boolean, not an integer"),
        ("Publish", publish_with(hops=1.0), "hops is a float, not an integer"),
        ("Publish", publish_with(expires="soon"), "expires is a text, not an integer or nil"),
        ("Publish", publish_with(sequence=-1), f"sequence is -1; {NEGATIVE}"),
        ("Publish", publish_with(hops=-3), f"hops is -3; {NEGATIVE}"),
        ("Publish", publish_with(expires=2**63), f"expires is {2**63}; {TOO_LARGE}"),
        ("Publish", publish_with(attributes=-1), f"attributes_bytes is -1; {NEGATIVE}"),
        ("Publish", publish_with(attributes=9), "9 bytes of attributes are announced, 5 bytes are left"),
        ("Publish", publish_with(id=["b1", 1]), "id has 2 fields, not 3"),
        ("Publish", publish_with(id=["b1", 1, -1]), f"id.counter is -1; {NEGATIVE}"),
        ("Publish", publish_with(tree=["b1", "1", 1]), "tree.incarnation is a text, not an integer"),
        ("Publish", publish_with(local="b2"), "local is a text, not an array"),
        ("Publish", publish_with(local=["b2", 3]), "local[1] is an integer, not a text"),
        ("Publish", publish_with(local=["b2", "b3", "b2"]), "local names 'b2' twice"),
        ("Publish", publish_with(transit=[["b2"]]), "transit[0] is an array, not a text"),
        ("Publish", publish_with(crossed=[None]), "crossed[0] is nil, not a text"),
        ("Credit", [], "the header has 0 fields, not at least 1"),
        ("Credit", [{}], "acknowledged_through is a map, not an integer"),
        ("Credit", [{"a": 1}], "acknowledged_through is a map, not an integer"),
        ("Credit", [msgpack.ExtType(5, b"")], "acknowledged_through is a MessagePack extension, not an integer"),
        ("Credit", [msgpack.Timestamp(1)], "acknowledged_through is a MessagePack extension, not an integer"),
        ("Heartbeat", [1, [], [["x"]]], "known[0] has 1 fields, not 2"),
        ("Heartbeat", [1, [], [["x", "text"]]], "known[0][1] is a text, not bytes"),
        ("Heartbeat", [1, [], [["x", b"1"], ["x", b"2"]]], "known names 'x' twice"),
        ("Settled", ["b1", "", ["b2", "b2"], [], 9, 3], "destinations names 'b2' twice"),
        ("Settled", ["b1", "", ["b2"], [7], 9, 3], "publications[0] is an integer, not an array"),
        ("Update", ["b1", 1, "", [["b2", 0, -1]], [], 9, False], f"turns[0].sequence is -1; {NEGATIVE}"),
        ("Update", ["b1", 1, "", [["b2", 0, 0], ["b2", 0, 1]], [], 9, False], "turns names 'b2' twice"),
        ("Update", ["b1", 1, "", [], [], 9, 0], "is_unfinished is an integer, not a boolean"),
        ("Update", ["b1", 1, "", [], [[5, ID]], 9, False], "changes[0].kind is '5', not 1 or 2 or 3 or 4"),
        ("Update", ["b1", 1, "", [], [[2, ID, 0]], 9, False], "changes[0] has 2 fields, not at most 1"),
        (
            "Update",
            ["b1", 1, "", [], [[1, ID, 5, [], False]], 9, False],
            "changes[0].expression is an integer, not a text",
        ),
        (
            "Update",
            ["b1", 1, "", [], [[3, ID, "", [], 0, False, 0]], 9, False],
            "changes[0].tree is an integer, not an array or nil",
        ),
        *(("Update", ["b1", 1, "", [], [change], 9, False], expected) for change, expected in NO_CHANGES),
        ("LinkStates", [[["b1", 1, 1, "", [], [], "", 0]]], "states[0].has_left is an integer, not a boolean"),
        (
            "LinkStates",
            [[["b1", 1, 1, "", [["b2", -1]], [], "", False]]],
            f"states[0].neighbours[0].cost is -1; {NEGATIVE}",
        ),
        ("LinkStates", [[["b1", 1, 1, "", [["b2", 1], ["b2", 2]], [], "", False]]], "neighbours names 'b2' twice"),
        ("Propose", ["b1", "", ["b2"], math.nan, 0.0, "", 9], "gain is not a number"),
        ("Propose", ["b1", "", ["b2"], 0.0, math.nan, "", 9], "minimal_loss is not a number"),
        ("Propose", ["b1", "", ["b2"], "1", 0.0, "", 9], "gain is a text, not a float"),
        ("ProposalAnswered", ["b1", "", ["b2"], 1, "", 9], "accepted is an integer, not a boolean"),
        ("UpdateAcknowledged", ["b1", 1, "", ["b2"], 1, 0, -1, 9, False], f"sequence is -1; {NEGATIVE}"),
        ("Resend", ["b1", 1, "", ["b2"], None, 9], "epoch is nil, not an integer"),
    ],
)
def test_fields_of_another_shape_are_refused_by_name(kind: str, fields: object, expected: str) -> None:
    body = b"12345" if kind == "Publish" else b""
    said = refusal(frame_with(NUMBER_OF[kind], fields, body))
    assert said.startswith(f"{kind}: ")
    assert expected in said


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\xc0"


@pytest.mark.parametrize(
    ("packed", "expected"),
    [
        (nested(2), "acknowledged_through is an array, not an integer"),
        (nested(2000), "acknowledged_through is an array, not an integer"),
        (nested(500_000), "acknowledged_through is an array, not an integer"),
        (b"\x81" * 2000, "the header is a map, not an array"),
        (b"\xdd\xff\xff\xff\xff", "the header ends within its fields, after 5 bytes"),
        (b"\xdc\x40\x00", "the header ends within its fields, after 3 bytes"),
        (b"\xdc\x40", "the header ends within its fields, after 2 bytes"),
        (b"\xdb\xff\xff\xff\xff", "the header ends within its fields, after 5 bytes"),
        (b"\x91\xd9\x05abc", "the header ends within its fields, after 6 bytes"),
        (b"\x91\xc6\xff\xff\xff\xff", "the header ends within its fields, after 6 bytes"),
        (b"\xdf\xff\xff\xff\xff", "the header is a map, not an array"),
        (b"\x91\xc1", "byte 0xc1 starts nothing that a header may hold"),
        (b"\x91\xcf\x00", "the header ends within its fields, after 3 bytes"),
        (b"\x91", "the header ends within its fields, after 1 bytes"),
        (b"\x91\x05\x05", "1 bytes follow the fields in the header"),
    ],
)
def test_bytes_without_fields_are_refused_with_the_reason(packed: bytes, expected: str) -> None:
    assert refusal(frame_of(NUMBER_OF["Credit"], packed)).startswith(f"Credit: {expected}")


@pytest.mark.parametrize(
    ("packed", "expected"),
    [
        (b"\xd9\x05abc", "the header ends within its fields, after"),
        (b"\xdb\xff\xff\xff\xff", "the header ends within its fields, after"),
        (b"\xa2\xff\xff", "the header cannot be read: 'utf-8' codec can't decode byte 0xff"),
        (b"\xa3\xed\xa0\x80", "the header cannot be read: 'utf-8' codec can't decode byte 0xed"),
    ],
)
def test_texts_that_are_none_are_refused(packed: bytes, expected: str) -> None:
    assert refusal(frame_of(NUMBER_OF["Settled"], b"\x96" + packed)).startswith(f"Settled: {expected}")


def test_the_value_is_left_out_where_the_lookup_would_use_much_memory() -> None:
    long = ["b1", "", ["b2"], [["b1", 1, 1]] * 16_000, -1, 3]
    assert "hop_limit is too large to show; it must be >= 0" in refusal(frame_with(NUMBER_OF["Settled"], long))


CREDIT = encode(Credit(7))


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (b"", "a frame of 0 bytes is shorter than any header"),
        (CREDIT[:11], "a frame of 11 bytes is shorter than any header"),
        (CREDIT[:-1], "Credit: 10 bytes are announced, 9 follow"),
        (CREDIT + b"x", "Credit: 10 bytes are announced, 11 follow"),
        (frame_of(3, b"\x91\x07", version=1), "version 1 is not known here; this is version 2"),
        (frame_of(0, b"\x91\x07"), "no message has the number 0; they go from 1 to 11"),
        (frame_of(12, b"\x91\x07"), "no message has the number 12; they go from 1 to 11"),
        (frame_of(3, b"\x91\x07", b"xyz"), "Credit: 3 bytes follow the header"),
        (frame_of(3, b""), "Credit: the header cannot have 8 bytes in a frame of 12"),
        (CREDIT[:8] + (11).to_bytes(4, "big") + CREDIT[12:], "Credit: the header cannot have 11 bytes"),
        (CREDIT[:8] + (0).to_bytes(4, "big") + CREDIT[12:], "Credit: the header cannot have 0 bytes"),
        (CREDIT[:4] + b"\x93" + CREDIT[5:], "Credit: the header does not start as one: 930203ce0000000a"),
        (CREDIT[:7] + b"\xd2" + CREDIT[8:], "Credit: the header does not start as one: 940203d20000000a"),
    ],
)
def test_a_frame_that_does_not_fit_its_own_lengths_is_refused(frame: bytes, expected: str) -> None:
    assert refusal(frame).startswith(expected)


def test_a_length_beyond_the_limit_is_refused_as_soon_as_it_is_there() -> None:
    splitter = FrameSplitter(Limits(frame_bytes=100))
    assert splitter.feed(CREDIT + (97).to_bytes(4, "big")[:3]) == [CREDIT]
    with pytest.raises(WireError, match="frame: 101 bytes are announced; the limit frame_bytes is 100"):
        splitter.feed(b"\x61")


def test_a_frame_that_just_reaches_the_limit_is_accepted() -> None:
    assert FrameSplitter(Limits(frame_bytes=len(CREDIT))).feed(CREDIT) == [CREDIT]


def test_a_long_name_is_not_repeated_in_full() -> None:
    name = "n" * 60_000
    assert len(refusal(frame_with(1, publish_with(local=[name, name])))) < 200


def test_the_command_line_ends_with_1_for_it() -> None:
    assert WireError("no frame").exit_code == 1

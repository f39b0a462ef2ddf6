"""Frames have the recorded bytes: version 2 between brokers and version 1 with clients, every kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import pytest

from broker.wire import broker_codec, client_codec, link_handshake
from broker.wire import client_frames as client
from broker.wire.limits import Limits
from broker.wire.link_handshake import LinkClock, LinkFrame, LinkGoodbye, LinkHello, LinkTimes, LinkWelcome
from routing.messages import (
    Advertise,
    Announce,
    Credit,
    EntryId,
    Heartbeat,
    LinkState,
    LinkStates,
    Message,
    Neighbour,
    OnceId,
    ProposalAnswered,
    Propose,
    PublicationId,
    Publish,
    Resend,
    Settled,
    Subscribe,
    Turn,
    Unadvertise,
    Unsubscribe,
    Update,
    UpdateAcknowledged,
)

LIMITS = Limits()
LARGEST = 2**63 - 1
ID = PublicationId("b1", 1_700_000_000, 65_536)
ENTRY = EntryId("brøker-☃", 3, LARGEST)
LONG = "x" * 40
STATE = LinkState("b1", 2, 3, "west", (Neighbour("b2", 1), Neighbour("b3", 70_000)), ("west", "east"), "h:7", True)
HEARTBEAT = Heartbeat(9, ("west",), (("west", bytes(range(64))), ("east", b"")))
HELLO = LinkHello("b1", 4, "shop", "merc", ("west",), "host:7100", HEARTBEAT, "secret", "b2", 3)

MESSAGES: Mapping[str, tuple[Message, int | None]] = {
    "publish": (Publish(ID, "b1", "west", ("b2", "b3"), ("b3",), b"\x81\xa1a\x01", b"hello"), 17),
    "publish-all-fields": (
        Publish(ID, LONG, "", (), (LONG,), b"", b"", ("west", "east"), ENTRY, 2, LARGEST, 62, True),
        None,
    ),
    "publish-once": (
        Publish(ID, "b1", "", ("b2",), (), b"\x80", b"", once=OnceId("desk", "order-7 ☃")),
        18,
    ),
    "settled": (Settled("b2", "west", ("b1",), (ID, PublicationId("b9", 0, 255)), 3, 1), None),
    "credit": (Credit(300), None),
    "heartbeat": (HEARTBEAT, None),
    "link-states": (LinkStates((STATE, LinkState("b2", 0, 128, "", ()))), None),
    "update": (
        Update(
            "b1",
            1,
            "west",
            (Turn("b2", 0, 4), Turn("b3", 1, 2**32)),
            (
                Advertise(ENTRY, "price > 0", ("west",), True),
                Unadvertise(ENTRY),
                Subscribe(ENTRY, "a = 'ä'", ("x",), EntryId("b4", 1, 2), True, 700),
                Subscribe(EntryId("b1", 1, 0), ""),
                Unsubscribe(ENTRY, EntryId("b4", 1, 2)),
                Unsubscribe(ENTRY),
            ),
            9,
            True,
        ),
        None,
    ),
    "update-acknowledged": (UpdateAcknowledged("b1", 1, "", ("b2",), 256, 0, 65_535, 64, True), None),
    "resend": (Resend("b1", 1, "west", ("b2", "b3"), 7), None),
    "propose": (Propose("b1", "west", ("b2",), 12.5, -0.1, "host:7100"), None),
    "proposal-answered": (ProposalAnswered("b2", "west", ("b1",), True, "host:7101", 5), None),
    "announce": (Announce("b1", "west", ("b2", "b3"), STATE), None),
}

CLIENT_FRAMES: Mapping[str, client.ClientFrame] = {
    "client-hello": client.Hello("desk", "s-1", "token", client.DeliveryMode.AT_MOST_ONCE, True, 1024, ("trace",)),
    "client-welcome": client.Welcome("b1", 3, True, 700, 1 << 20, 1 << 16, 1000, 30_000, 512, ("trace",), (3, 698)),
    "client-advertise": client.Advertise(1, "ads", "price > 0"),
    "client-unadvertise": client.Unadvertise(2, "ads"),
    "client-subscribe": client.Subscribe(3, "cheap", "price < 3 AND symbol = 'Ü'"),
    "client-unsubscribe": client.Unsubscribe(4, "cheap"),
    "client-request-accepted": client.RequestAccepted(4),
    "client-request-refused": client.RequestRefused(5, client.Reason.INVALID, "line 1"),
    "client-publish": client.PublishRequest(7, b"\x81\xa1a\x01", b"payload", 1500, True),
    "client-publish-once": client.PublishRequest(7, b"\x81\xa1a\x01", b"payload", 1500, False, "order-7 ☃"),
    "client-publications-accepted": client.PublicationsAccepted((1, 2, 130, LARGEST)),
    "client-publication-refused": client.PublicationRefused(8, client.Reason.OVERLOADED, "later"),
    "client-delivery": client.Delivery(3, ("s1", LONG), 2, ID, b"\x81\xa1a\x01", b"payload"),
    "client-acknowledge": client.Acknowledge(2**32),
    "client-ping": client.Ping(0),
    "client-pong": client.Pong(127),
    "client-goodbye": client.Goodbye(client.Reason.DONE, "", True),
    "client-trace-query": client.TraceQuery(1, ID),
    "client-trace-answer": client.TraceAnswer(1, "b1", (client.TraceStep(5, "sent", "to b2", "b2", "host:7101"),)),
}

LINK_FRAMES: Mapping[str, LinkFrame] = {
    "link-hello": HELLO,
    "link-welcome": LinkWelcome(HELLO),
    "link-goodbye": LinkGoodbye("closed", "no longer wanted"),
    "link-times": LinkTimes(1_700_000_000_000_000_000, 0),
    "link-clock": LinkClock(1_700_000_000_000_000_000, LARGEST, 250),
}


def encoded() -> dict[str, bytes]:
    return {
        **{name: broker_codec.encode(message, sequence) for name, (message, sequence) in MESSAGES.items()},
        **{name: client_codec.encode(frame) for name, frame in CLIENT_FRAMES.items()},
        **{name: link_handshake.encode(frame) for name, frame in LINK_FRAMES.items()},
    }


def recorded() -> dict[str, bytes]:
    lines = Path(__file__).with_name("golden_frames.txt").read_text(encoding="utf-8").splitlines()
    return {name: bytes.fromhex(frame) for name, _, frame in (line.partition(" ") for line in lines)}


RECORDED = recorded()


def test_every_kind_of_frame_is_recorded() -> None:
    assert {type(message) for message, _ in MESSAGES.values()} == set(get_args(Message))
    assert {type(frame) for frame in CLIENT_FRAMES.values()} == set(get_args(client.ClientFrame))
    assert {type(frame) for frame in LINK_FRAMES.values()} == set(get_args(LinkFrame))
    assert list(RECORDED) == list(encoded())


@pytest.mark.parametrize("name", RECORDED)
def test_a_frame_has_the_recorded_bytes(name: str) -> None:
    assert encoded()[name].hex() == RECORDED[name].hex()


@pytest.mark.parametrize("name", MESSAGES)
def test_a_recorded_message_decodes(name: str) -> None:
    assert broker_codec.decode(RECORDED[name], LIMITS) == MESSAGES[name]


@pytest.mark.parametrize("name", CLIENT_FRAMES)
def test_a_recorded_frame_of_a_client_decodes(name: str) -> None:
    assert client_codec.decode(RECORDED[name], LIMITS) == CLIENT_FRAMES[name]


@pytest.mark.parametrize("name", LINK_FRAMES)
def test_a_recorded_frame_of_a_link_decodes(name: str) -> None:
    assert link_handshake.decode(RECORDED[name], LIMITS) == LINK_FRAMES[name]

"""Hypothesis strategies for the frames between clients and brokers."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from broker.wire.client_frames import (
    Acknowledge,
    Advertise,
    ClientFrame,
    Delivery,
    DeliveryMode,
    Goodbye,
    Hello,
    Ping,
    Pong,
    PublicationRefused,
    PublicationsAccepted,
    PublishRequest,
    RequestAccepted,
    RequestRefused,
    Subscribe,
    TraceAnswer,
    TraceQuery,
    TraceStep,
    Unadvertise,
    Unsubscribe,
    Welcome,
)
from routing.messages import LARGEST_NUMBER, PublicationId

NUMBERS = st.integers(0, LARGEST_NUMBER) | st.integers(0, 300)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
CLIENT_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
BODIES = st.binary(max_size=40)
IDS = st.builds(PublicationId, TEXTS, NUMBERS, NUMBERS)
LISTS = st.lists(TEXTS, max_size=4).map(tuple)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=20).map(lambda pairs: tuple(n for pair in pairs for n in pair))
STEPS = st.lists(st.builds(TraceStep, NUMBERS, TEXTS, TEXTS, TEXTS, TEXTS), max_size=4).map(tuple)

FRAMES: dict[type[ClientFrame], SearchStrategy[ClientFrame]] = {
    Hello: st.builds(
        Hello,
        CLIENT_NAMES,
        CLIENT_NAMES,
        TEXTS,
        st.sampled_from(DeliveryMode),
        st.booleans(),
        st.integers(1, LARGEST_NUMBER),
        LISTS,
    ),
    Welcome: st.builds(
        Welcome,
        TEXTS,
        NUMBERS,
        st.booleans(),
        NUMBERS,
        NUMBERS,
        NUMBERS,
        st.integers(1, LARGEST_NUMBER),
        NUMBERS,
        st.integers(1, LARGEST_NUMBER),
        LISTS,
        st.lists(NUMBERS, max_size=5).map(tuple),
    ),
    Advertise: st.builds(Advertise, NUMBERS, CLIENT_NAMES, TEXTS),
    Unadvertise: st.builds(Unadvertise, NUMBERS, CLIENT_NAMES),
    Subscribe: st.builds(Subscribe, NUMBERS, CLIENT_NAMES, TEXTS),
    Unsubscribe: st.builds(Unsubscribe, NUMBERS, CLIENT_NAMES),
    RequestAccepted: st.builds(RequestAccepted, NUMBERS),
    RequestRefused: st.builds(RequestRefused, NUMBERS, TEXTS, TEXTS),
    PublishRequest: st.builds(PublishRequest, NUMBERS, BODIES, BODIES, NUMBERS, st.booleans(), TEXTS),
    PublicationsAccepted: st.builds(PublicationsAccepted, PAIRS),
    PublicationRefused: st.builds(PublicationRefused, NUMBERS, TEXTS, TEXTS),
    Delivery: st.builds(Delivery, NUMBERS, LISTS, st.integers(0, 2**32 - 1), IDS, BODIES, BODIES),
    Acknowledge: st.builds(Acknowledge, NUMBERS),
    Ping: st.builds(Ping, NUMBERS),
    Pong: st.builds(Pong, NUMBERS),
    Goodbye: st.builds(Goodbye, TEXTS, TEXTS, st.booleans()),
    TraceQuery: st.builds(TraceQuery, NUMBERS, IDS),
    TraceAnswer: st.builds(TraceAnswer, NUMBERS, TEXTS, STEPS),
}
ANY_FRAME: SearchStrategy[ClientFrame] = st.one_of(*FRAMES.values())

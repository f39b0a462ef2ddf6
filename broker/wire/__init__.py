"""The wire format between brokers, and between clients and brokers. `broker_codec` encodes and decodes messages between
brokers, `client_codec` frames between a client and its broker, and `link_handshake` the frames that open a link.
`framing` splits a byte stream into frames. It may import `routing.messages`, and nothing else of the project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.wire.client_codec import DeliveryWriter
    from broker.wire.client_frames import (
        Acknowledge,
        Advertise,
        ClientFrame,
        Delivery,
        DeliveryMode,
        FromBroker,
        Goodbye,
        Hello,
        Ping,
        Pong,
        PublicationRefused,
        PublicationsAccepted,
        PublishRequest,
        Reason,
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
    from broker.wire.framing import FrameSplitter
    from broker.wire.limits import Limits, WireError
    from broker.wire.link_handshake import LinkGoodbye, LinkHello, LinkTimes, LinkWelcome

__all__ = [
    "Acknowledge",
    "Advertise",
    "ClientFrame",
    "Delivery",
    "DeliveryMode",
    "DeliveryWriter",
    "FrameSplitter",
    "FromBroker",
    "Goodbye",
    "Hello",
    "Limits",
    "LinkGoodbye",
    "LinkHello",
    "LinkTimes",
    "LinkWelcome",
    "Ping",
    "Pong",
    "PublicationRefused",
    "PublicationsAccepted",
    "PublishRequest",
    "Reason",
    "RequestAccepted",
    "RequestRefused",
    "Subscribe",
    "TraceAnswer",
    "TraceQuery",
    "TraceStep",
    "Unadvertise",
    "Unsubscribe",
    "Welcome",
    "WireError",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "Acknowledge": "broker.wire.client_frames",
        "Advertise": "broker.wire.client_frames",
        "ClientFrame": "broker.wire.client_frames",
        "Delivery": "broker.wire.client_frames",
        "DeliveryMode": "broker.wire.client_frames",
        "DeliveryWriter": "broker.wire.client_codec",
        "FrameSplitter": "broker.wire.framing",
        "FromBroker": "broker.wire.client_frames",
        "Goodbye": "broker.wire.client_frames",
        "Hello": "broker.wire.client_frames",
        "Limits": "broker.wire.limits",
        "LinkGoodbye": "broker.wire.link_handshake",
        "LinkHello": "broker.wire.link_handshake",
        "LinkTimes": "broker.wire.link_handshake",
        "LinkWelcome": "broker.wire.link_handshake",
        "Ping": "broker.wire.client_frames",
        "Pong": "broker.wire.client_frames",
        "PublicationRefused": "broker.wire.client_frames",
        "PublicationsAccepted": "broker.wire.client_frames",
        "PublishRequest": "broker.wire.client_frames",
        "Reason": "broker.wire.client_frames",
        "RequestAccepted": "broker.wire.client_frames",
        "RequestRefused": "broker.wire.client_frames",
        "Subscribe": "broker.wire.client_frames",
        "TraceAnswer": "broker.wire.client_frames",
        "TraceQuery": "broker.wire.client_frames",
        "TraceStep": "broker.wire.client_frames",
        "Unadvertise": "broker.wire.client_frames",
        "Unsubscribe": "broker.wire.client_frames",
        "Welcome": "broker.wire.client_frames",
        "WireError": "broker.wire.limits",
    },
)

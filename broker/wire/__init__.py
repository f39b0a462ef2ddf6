"""The wire format between brokers, and between clients and brokers.

`broker_codec` encodes and decodes messages between brokers, `client_codec` frames between a client and its broker, and
`link_handshake` the frames that open a link. `framing` splits a byte stream into frames. This package imports routing's
messages and nothing else of the brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.wire.framing import FrameSplitter
    from broker.wire.limits import Limits, WireError

__all__ = ["FrameSplitter", "Limits", "WireError"]

__getattr__ = lazy_exports(
    __name__,
    {
        "FrameSplitter": "broker.wire.framing",
        "Limits": "broker.wire.limits",
        "WireError": "broker.wire.limits",
    },
)

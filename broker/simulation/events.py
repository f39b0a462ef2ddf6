"""Events of SimPy's that are sure to happen, each with what is needed when it does.

A run makes millions of them. Compared with a timeout and a closure, each is one small object, and its list of callbacks
is shared by all of its kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import simpy

from broker.core.broker import Broker
from broker.core.effects import Effect, Send
from broker.simulation.broker_node import BrokerNode
from broker.simulation.links import SimulatedLink

Callbacks = list[Callable[[Any], None]]


class SureEvent(simpy.Event):
    """Schedule it once. SimPy asks an event for `callbacks`, and whether it failed."""

    __slots__ = ("callbacks",)
    _ok = True
    _value = None


class FrameArrives(SureEvent):
    __slots__ = ("body_bytes", "effect", "header_bytes", "life", "link", "sender", "sent")

    def __init__(
        self,
        callbacks: Callbacks,
        link: SimulatedLink,
        sender: str,
        effect: Send,
        header_bytes: int,
        body_bytes: int,
        sent: int,
    ) -> None:
        self.callbacks = callbacks
        self.link = link
        self.life = link.life
        self.sender = sender
        self.effect = effect
        self.header_bytes = header_bytes
        self.body_bytes = body_bytes
        self.sent = sent


class WorkEnds(SureEvent):
    __slots__ = ("broker", "effects", "node")

    def __init__(self, callbacks: Callbacks, node: BrokerNode, broker: Broker, effects: list[Effect]) -> None:
        self.callbacks = callbacks
        self.node = node
        self.broker = broker
        self.effects = effects


class ActionFallsDue(SureEvent):
    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.callbacks = _ACT
        self.action = action


def _act(event: ActionFallsDue) -> None:
    event.action()


_ACT: Callbacks = [_act]

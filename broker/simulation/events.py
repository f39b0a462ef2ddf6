"""SimPy events of the simulation. They never fail, and each carries the data that its callbacks need.

A run creates millions of them. A timeout with a closure would take several objects. Each of these events is one small
object, and all events of a kind share one list of callbacks.
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


class ScheduledEvent(simpy.Event):
    """An event that is scheduled once. SimPy reads its `callbacks`, and `_ok` for whether it failed."""

    __slots__ = ("callbacks",)
    _ok = True
    _value = None


class FrameArrives(ScheduledEvent):
    __slots__ = ("body_bytes", "effect", "generation", "header_bytes", "link", "sender", "sent")

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
        self.generation = link.generation
        self.sender = sender
        self.effect = effect
        self.header_bytes = header_bytes
        self.body_bytes = body_bytes
        self.sent = sent


class WorkEnds(ScheduledEvent):
    __slots__ = ("broker", "effects", "node")

    def __init__(self, callbacks: Callbacks, node: BrokerNode, broker: Broker, effects: list[Effect]) -> None:
        self.callbacks = callbacks
        self.node = node
        self.broker = broker
        self.effects = effects


class ActionDue(ScheduledEvent):
    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.callbacks = _ACT
        self.action = action


def _act(event: ActionDue) -> None:
    event.action()


_ACT: Callbacks = [_act]

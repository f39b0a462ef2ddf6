"""Traces a publication: publishes a marked one, and queries each broker on its route for the steps it performed.

A broker's answer names the neighbours to which it sent the publication, with their addresses. These are queried next,
until no broker reports a new step.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from broker.client.client import Client, connect
from broker.client.credentials import environment_credentials
from broker.client.errors import ClientError
from broker.wire.client_frames import TraceStep
from matching.expressions.values import Value
from routing.messages import PublicationId

QUIET_S = 0.3
"""Without a new step for this time, the trace is complete."""
POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class BrokerStep:
    broker: str
    step: TraceStep


@dataclass(frozen=True, slots=True)
class LiveTrace:
    publication: PublicationId
    steps: tuple[BrokerStep, ...]
    """Ordered by time, according to the brokers' clocks."""
    unreachable: Mapping[str, str]
    """Brokers on the route that could not be queried, with the reason."""

    def lines(self) -> Iterator[str]:
        start = self.steps[0].step.at_ns if self.steps else 0
        width = max((len(each.broker) for each in self.steps), default=0)
        for each in self.steps:
            what = f"{each.step.what} {_towards(each.step)}".strip()
            yield f"{(each.step.at_ns - start) / 1e6:10.3f} ms  {each.broker:{width}}  {what}: {each.step.text}"
        for broker, reason in self.unreachable.items():
            yield f"             {broker} could not be asked: {reason}"

    def summary(self) -> str:
        delivered = [each for each in self.steps if each.step.what == "delivered"]
        dropped = sum(each.step.what == "dropped" for each in self.steps)
        brokers = len({each.broker for each in self.steps})
        clients = ", ".join(f"{each.step.peer} at {each.broker}" for each in delivered) or "nobody"
        drops = f", dropped {dropped} times" if dropped else ""
        return f"{self.publication} passed {brokers} broker{'s' * (brokers != 1)} and was delivered to {clients}{drops}"

    def verdict(self, client: str) -> str:
        for each in self.steps:
            if each.step.what == "delivered" and each.step.peer == client:
                return f"{client} got it at {each.broker}, {each.step.text}"
        return f"{client} did not get it: no broker on the way found a subscription of that client that matches"

    def as_json(self) -> str:
        steps = [{"broker": each.broker, **each.step._asdict()} for each in self.steps]
        return json.dumps(
            {"publication": str(self.publication), "steps": steps, "unreachable": dict(self.unreachable)}, indent=2
        )


def _towards(step: TraceStep) -> str:
    if not step.peer or step.what == "accepted":
        return ""
    return f"{'from' if step.what == 'received' else 'to'} {step.peer}"


async def trace_live(servers: str, attributes: Mapping[str, Value], payload: bytes, within_s: float) -> LiveTrace:
    """Publishes a traced publication, and collects its steps at all brokers that it reaches."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(connect(servers, timeout=within_s, **environment_credentials()))
        id = await first.publish(attributes, payload, is_traced=True)
        if id is None:
            raise ClientError("the connection broke while publishing, and the publication's id is not known; try again")
        collector = _TraceCollector(id, stack, first, within_s)
        await collector.run()
        ordered = sorted(collector.steps, key=lambda each: each.step.at_ns)
        return LiveTrace(id, tuple(ordered), collector.unreachable)


class _TraceCollector:
    def __init__(self, id: PublicationId, stack: AsyncExitStack, first: Client, within_s: float) -> None:
        self.steps: list[BrokerStep] = []
        self.unreachable: dict[str, str] = {}
        self._id = id
        self._stack = stack
        self._within_s = within_s
        self._brokers = {first.broker: first}
        self._known: dict[str, int] = {}

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._within_s
        latest_step_at = loop.time()
        while loop.time() < min(end, latest_step_at + QUIET_S):
            if await self._query_all():
                latest_step_at = loop.time()
            await asyncio.sleep(POLL_S)

    async def _query_all(self) -> bool:
        """Queries all known brokers. Returns whether one reported a new step."""
        has_new_step = False
        for broker, client in list(self._brokers.items()):
            answer = await client.trace_steps(self._id)
            new = answer.steps[self._known.get(broker, 0) :]
            self._known[broker] = len(answer.steps)
            self.steps += [BrokerStep(broker, step) for step in new]
            has_new_step = has_new_step or bool(new)
            for step in new:
                if step.what == "sent" and step.peer not in self._brokers and step.peer not in self.unreachable:
                    await self._connect(step.peer, step.address)
        return has_new_step

    async def _connect(self, broker: str, address: str) -> None:
        try:
            client = connect(f"mercast://{address}", timeout=self._within_s, **environment_credentials())
            self._brokers[broker] = await self._stack.enter_async_context(client)
        except ClientError as error:
            self.unreachable[broker] = str(error)

"""Records the events of a simulated overlay as rows of a trace."""

from __future__ import annotations

from broker.core.effects import Accept, Deliver, DroppedRow, Effect, MatchedRow, Record
from broker.core.inputs import Published
from broker.simulation.broker_node import BrokerNode
from broker.simulation.costs import CostProfile
from broker.simulation.events import FrameArrives
from broker.simulation.links import SimulatedLink
from broker.simulation.memory_estimate import estimated_bytes
from broker.trace.schema import (
    NANOSECONDS,
    BrokerRow,
    DeliveryRow,
    DropRow,
    HopRow,
    LinkRow,
    MatchRow,
    PublicationRow,
    Trace,
    seconds,
)
from matching.matcher import unpack_attributes
from routing.messages import Message, PublicationId, Publish
from routing.multicast import destinations_of


class SimulationRecorder:
    def __init__(self, trace: Trace, profile: CostProfile) -> None:
        self._trace = trace
        self._profile = profile
        self._kinds: dict[type[Message], str] = {}

    def hop(self, frame: FrameArrives, received: int) -> None:
        """Records a frame that went over a link."""
        message = frame.effect.message
        if isinstance(message, Publish):
            name, kind, hop = str(message.id), "publish", message.hops + 1
            source, destinations = message.source, len(destinations_of(message))
        else:
            name = kind = self._kind(message)
            hop = 0
            source = getattr(message, "source", frame.sender)
            destinations = len(getattr(message, "destinations", (frame.effect.peer,)))
        self._trace.record(
            HopRow(
                name,
                kind,
                source,
                frame.sender,
                frame.effect.peer,
                hop,
                destinations,
                frame.header_bytes,
                frame.body_bytes,
                frame.sent / NANOSECONDS,
                received / NANOSECONDS,
            )
        )

    def _kind(self, message: Message) -> str:
        """The name of a message's kind, in lower case. It also identifies the message, unless it is a publication."""
        kind = self._kinds.get(type(message))
        if kind is None:
            kind = self._kinds[type(message)] = type(message).__name__.lower()
        return kind

    def work(self, broker: str, effects: list[Effect], now: int) -> None:
        """Records the table lookups and the drops among the effects of an input."""
        for effect in effects:
            if isinstance(effect, Record):
                if isinstance(effect.row, MatchedRow):
                    self._match(broker, effect.row, now)
                else:
                    self.drop(broker, effect.row, now)

    def _match(self, broker: str, row: MatchedRow, now: int) -> None:
        work = row.work
        self._trace.record(
            MatchRow(
                broker=broker,
                message=str(row.publication),
                table=work.table,
                stored=work.stored,
                candidates=work.candidates,
                evaluated=work.evaluated,
                matched=work.matched,
                started_s=seconds(now),
                cost_s=seconds(round(self._profile.match_cost(work))),
            )
        )

    def drop(self, broker: str, row: DroppedRow, now: int) -> None:
        publication = str(row.publication) if row.publication is not None else None
        self._trace.record(DropRow(seconds(now), broker, row.reason, publication, row.detail))

    def accepted(self, broker: str, id: PublicationId, accept: Accept, request: Published, at: int) -> None:
        self._trace.record(
            PublicationRow(
                publication=str(id),
                broker=broker,
                client=accept.client,
                published_s=seconds(at),
                attribute_count=len(unpack_attributes(request.attributes)),
                bytes=len(request.attributes) + len(request.payload),
            )
        )

    def delivered(self, broker: str, delivery: Deliver, published: int, now: int) -> None:
        self._trace.record(
            DeliveryRow(
                publication=str(delivery.publication),
                broker=broker,
                client=delivery.client,
                hops=delivery.hops,
                published_s=seconds(published),
                delivered_s=seconds(now),
            )
        )

    def link(self, link: SimulatedLink, down: int | None) -> None:
        """Records when a link came up, and when it went down. None: it is up at the end of the run."""
        down_s = None if down is None else seconds(down)
        self._trace.record(LinkRow(a=link.first, b=link.second, up_s=seconds(link.up_since), down_s=down_s))

    def broker(self, node: BrokerNode, now: int) -> None:
        """Records a broker's present state. A broker that is down has no row."""
        if node.broker is None:
            return
        counts = node.broker.router.counts()
        self._trace.record(
            BrokerRow(
                broker=node.name,
                at_s=seconds(now),
                busy_s=seconds(node.busy_ns),
                queue=len(node.queue),
                advertisements=counts.advertisements,
                local_subscriptions=counts.local_subscriptions,
                remote_subscriptions=counts.remote_subscriptions,
                routing_table_bytes=counts.routing_table_bytes,
                memory_bytes=estimated_bytes(counts, len(node.queue), node.broker.in_custody),
            )
        )

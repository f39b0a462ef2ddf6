"""Turns what brokers do into rows of a trace, in a simulation and at running brokers.

Each broker has a recorder. Its driver passes the times in nanoseconds: virtual times in a simulation, wall-clock times
at a running broker. Rows that only a simulation has, expectations and faults, do not come from brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from functools import cache

from broker.core.effects import Deliver, DroppedRow, Effect, MatchedRow, Record
from broker.core.inputs import Published
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
from broker.wire.client_codec import attribute_count
from routing.messages import Message, PublicationId, Publish
from routing.multicast import destinations_of
from routing.router import Counts
from routing.tables import TableWork


class TraceRecorder:
    """The recorder of one broker.

    `published_at` are the times of publishing, by publication. The recorder adds the publications that its broker
    accepts. The driver adds those that other brokers accepted, and removes those that are not delivered any more.
    """

    def __init__(self, broker: str, trace: Trace, published_at: MutableMapping[PublicationId, int]) -> None:
        self._broker = broker
        self._trace = trace
        self._published_at = published_at
        self._requests: dict[tuple[str, int], tuple[int, int, int]] = {}
        """Time, number of attributes and bytes of publications that the broker has not answered."""

    def requested(self, request: Published, at: int) -> None:
        """Remembers the time and the size of a client's publication until the broker answers it."""
        size = len(request.attributes) + len(request.payload)
        self._requests[request.client, request.reference] = (at, attribute_count(request.attributes), size)

    def refused(self, client: str, reference: int) -> None:
        self._requests.pop((client, reference), None)

    def note_time(self, client: str, reference: int, publication: PublicationId, now: int) -> None:
        """Notes when an accepted publication was published: `now`, if the recorder does not know its request."""
        self._published_at[publication] = self._requests.get((client, reference), (now,))[0]

    def accepted(self, client: str, reference: int, publication: PublicationId, now: int) -> int:
        """Records an accepted publication, and notes and returns the time of its publishing."""
        at, attributes, size = self._requests.pop((client, reference), (now, 0, 0))
        self._published_at[publication] = at
        self._trace.record(
            PublicationRow(
                publication=str(publication),
                broker=self._broker,
                client=client,
                published_s=seconds(at),
                attribute_count=attributes,
                bytes=size,
            )
        )
        return at

    def delivered(self, effect: Deliver, published: int, at: int) -> None:
        self._trace.record(
            DeliveryRow(
                publication=str(effect.publication),
                broker=self._broker,
                client=effect.client,
                hops=effect.hops,
                published_s=seconds(published),
                delivered_s=seconds(at),
            )
        )

    def handled(self, effects: Iterable[Effect], at: int, match_cost: Callable[[TableWork], float]) -> None:
        """Records the table lookups and the drops among the effects of an input that the core handled at this time.

        `match_cost` returns the duration of a lookup.
        """
        for effect in effects:
            if isinstance(effect, Record):
                if isinstance(effect.row, MatchedRow):
                    self._matched(effect.row, at, round(match_cost(effect.row.work)))
                else:
                    self.dropped(effect.row, at)

    def _matched(self, row: MatchedRow, started: int, cost: int) -> None:
        work = row.work
        self._trace.record(
            MatchRow(
                broker=self._broker,
                message=str(row.publication),
                table=work.table,
                stored=work.stored,
                candidates=work.candidates,
                evaluated=work.evaluated,
                matched=work.matched,
                started_s=seconds(started),
                cost_s=seconds(cost),
            )
        )

    def dropped(self, row: DroppedRow, at: int) -> None:
        publication = str(row.publication) if row.publication is not None else None
        self._trace.record(DropRow(seconds(at), self._broker, row.reason, publication, row.detail))

    def received(
        self, sender: str, message: Message, header_bytes: int, body_bytes: int, sent: int, received: int
    ) -> None:
        """Records a frame that came over a link."""
        if isinstance(message, Publish):
            name, kind, hop = str(message.id), "publish", message.hops + 1
            source, destinations = message.source, len(destinations_of(message))
        else:
            name = kind = _kind(type(message))
            hop = 0
            source = getattr(message, "source", sender)
            destinations = len(getattr(message, "destinations", (self._broker,)))
        self._trace.record(
            HopRow(
                name,
                kind,
                source,
                sender,
                self._broker,
                hop,
                destinations,
                header_bytes,
                body_bytes,
                sent / NANOSECONDS,
                received / NANOSECONDS,
            )
        )

    def link(self, peer: str, up: int, down: int | None) -> None:
        """Records when a link came up and when it went down. None: it is up at the end of the trace.

        The broker with the smaller id records the link. So its row exists once.
        """
        if self._broker < peer:
            down_s = None if down is None else seconds(down)
            self._trace.record(LinkRow(a=self._broker, b=peer, up_s=seconds(up), down_s=down_s))

    def state(self, counts: Counts, *, at: int, busy: int, queue: int, memory_bytes: int | None) -> None:
        """Records the broker's present state. `busy`: its working time since its start."""
        self._trace.record(
            BrokerRow(
                broker=self._broker,
                at_s=seconds(at),
                busy_s=seconds(busy),
                queue=queue,
                advertisements=counts.advertisements,
                local_subscriptions=counts.local_subscriptions,
                remote_subscriptions=counts.remote_subscriptions,
                routing_table_bytes=counts.routing_table_bytes,
                memory_bytes=memory_bytes,
            )
        )


@cache
def _kind(message_type: type[Message]) -> str:
    """The name of a kind of message, in lower case. It also identifies the message, unless it is a publication."""
    return message_type.__name__.lower()

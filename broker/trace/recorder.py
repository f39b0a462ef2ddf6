"""Records the trace of a running broker: the same rows as in a simulation, with wall-clock times.

Each broker writes a folder of its own, and completes its files every few seconds and when it stops. If two neighbours
both record, each sends the other when a frame was sent and when its publication was published (`LinkTimes`). So the
rows are the same as a simulation's. Across machines the times are as accurate as the machines' clocks.

If a trace cannot be written, for example on a full disk, it ends. The broker neither waits for its trace nor fails
because of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from broker.core.effects import Accept, Deliver, DroppedRow, Effect, MatchedRow, Record, Refuse
from broker.core.inputs import Published
from broker.core.settings import SECOND
from broker.process_memory import memory_bytes
from broker.trace.code_version import code_version
from broker.trace.files import TraceWriter
from broker.trace.schema import (
    BrokerRow,
    DeliveryRow,
    DropRow,
    HopRow,
    LinkRow,
    MatchRow,
    PublicationRow,
    Row,
    TraceWriteError,
    seconds,
)
from broker.wire.client_codec import attribute_count
from broker.wire.link_handshake import LinkTimes
from routing.messages import Message, PublicationId, Publish
from routing.router import Counts

MOST_TIMES = 100_000
"""The largest number of publications whose time of publishing is remembered."""
ROLL_EVERY = 5 * SECOND
"""The interval at which recorded rows become visible to readers."""
ROLL_IDLE_EVERY = 60 * SECOND
"""The interval if a broker has recorded only its own state. It avoids many files with few rows."""


class TraceRecorder:
    def __init__(
        self,
        folder: Path,
        broker: str,
        incarnation: int,
        overlay: str,
        protocol: str,
        now: Callable[[], int],
        on_failed: Callable[[Exception], None],
    ) -> None:
        """Calls `on_failed` once if the trace cannot be written. No row is recorded after that."""
        self._broker = broker
        self._now = now
        self._on_failed = on_failed
        self._has_failed = False
        self._folder = folder / f"{broker}-{incarnation}"
        self._trace = TraceWriter(self._folder, overlay)
        self._rolled_at = now()
        self._has_new_rows = False
        self._published: dict[PublicationId, int] = {}
        self._requests: dict[tuple[str, int], tuple[int, int, int]] = {}
        code = code_version()
        provenance = {
            "broker": broker,
            "incarnation": incarnation,
            "overlay": overlay,
            "protocol": protocol,
            "mercast": code.version,
            "commit": code.commit,
            "is_changed": code.is_changed,
        }
        (self._folder / "provenance.json").write_text(json.dumps(provenance, indent=2) + "\n", encoding="utf-8")

    def requested(self, request: Published) -> None:
        """Remembers the time and the size of a client's publication until the broker answers it."""
        size = len(request.attributes) + len(request.payload)
        self._requests[request.client, request.reference] = (self._now(), attribute_count(request.attributes), size)

    def note_times(self, effects: list[Effect]) -> None:
        """Remembers when accepted publications were published. Call this before the effects are performed, because the
        broker sends that time to other brokers before the publication."""
        for effect in effects:
            if isinstance(effect, Accept) and effect.publication is not None:
                at, _, _ = self._requests.get((effect.client, int(effect.reference)), (self._now(), 0, 0))
                self._remember(effect.publication, at)

    def handled(self, effects: list[Effect], started: int, duration: int) -> None:
        """Records the effects of an input that the core handled from `started` on, for `duration` nanoseconds."""
        for effect in effects:
            match effect:
                case Accept():
                    self.accepted(effect)
                case Refuse(client, int(reference)):
                    self.refused(client, reference)
                case Deliver():
                    self.delivered(effect)
                case Record(MatchedRow() as row):
                    self.matched(row, started, duration)
                case Record(DroppedRow() as row):
                    self.dropped(row)

    def refused(self, client: str, reference: int) -> None:
        self._requests.pop((client, reference), None)

    def accepted(self, effect: Accept) -> None:
        if effect.publication is None or not isinstance(effect.reference, int):
            return
        at, attributes, size = self._requests.pop((effect.client, effect.reference), (self._now(), 0, 0))
        self._record(
            PublicationRow(
                publication=str(effect.publication),
                broker=self._broker,
                client=effect.client,
                published_s=seconds(at),
                attribute_count=attributes,
                bytes=size,
            )
        )

    def _remember(self, publication: PublicationId, at: int) -> None:
        if len(self._published) >= MOST_TIMES:
            del self._published[next(iter(self._published))]
        self._published[publication] = at

    def times_of(self, message: Message) -> LinkTimes:
        """The frame that a neighbour receives before the message."""
        published = self._published.get(message.id, 0) if isinstance(message, Publish) else 0
        return LinkTimes(self._now(), published)

    def received(self, peer: str, message: Message, frame: bytes, times: LinkTimes | None) -> None:
        """Records a received frame. Without the neighbour's times, the time of arrival replaces that of sending."""
        now = self._now()
        body = 0
        if isinstance(message, Publish):
            body = len(message.attributes) + len(message.payload)
            self._remember(message.id, times.published if times is not None and times.published else now)
        self._record(
            HopRow(
                message=str(message.id) if isinstance(message, Publish) else type(message).__name__.lower(),
                kind=type(message).__name__.lower(),
                source=getattr(message, "source", peer),
                sender=peer,
                receiver=self._broker,
                hop=message.hops + 1 if isinstance(message, Publish) else 0,
                destinations=len(getattr(message, "destinations", (self._broker,))),
                header_bytes=len(frame) - body,
                body_bytes=body,
                sent_s=seconds(times.sent if times is not None else now),
                received_s=seconds(now),
            )
        )

    def matched(self, row: MatchedRow, started: int, duration: int) -> None:
        work = row.work
        self._record(
            MatchRow(
                broker=self._broker,
                message=str(row.publication),
                table=work.table,
                stored=work.stored,
                candidates=work.candidates,
                evaluated=work.evaluated,
                matched=work.matched,
                started_s=seconds(started),
                cost_s=seconds(duration),
            )
        )

    def dropped(self, row: DroppedRow) -> None:
        publication = str(row.publication) if row.publication is not None else None
        self._record(
            DropRow(
                at_s=seconds(self._now()),
                broker=self._broker,
                reason=row.reason,
                publication=publication,
                detail=row.detail,
            )
        )

    def delivered(self, effect: Deliver) -> None:
        now = self._now()
        self._record(
            DeliveryRow(
                publication=str(effect.publication),
                broker=self._broker,
                client=effect.client,
                hops=effect.hops,
                published_s=seconds(self._published.get(effect.publication, now)),
                delivered_s=seconds(now),
            )
        )

    def link(self, peer: str, up: int, down: int | None) -> None:
        """Records a link at the broker with the smaller id, so that it is in one trace only."""
        if self._broker < peer:
            down_s = None if down is None else seconds(down)
            self._record(LinkRow(a=self._broker, b=peer, up_s=seconds(up), down_s=down_s))

    def state(self, counts: Counts, queue: int) -> None:
        self._put(
            BrokerRow(
                broker=self._broker,
                at_s=seconds(self._now()),
                busy_s=time.process_time(),
                queue=queue,
                advertisements=counts.advertisements,
                local_subscriptions=counts.local_subscriptions,
                remote_subscriptions=counts.remote_subscriptions,
                routing_table_bytes=counts.routing_table_bytes,
                memory_bytes=memory_bytes(),
            )
        )
        if self._now() - self._rolled_at >= (ROLL_EVERY if self._has_new_rows else ROLL_IDLE_EVERY):
            self._rolled_at = self._now()
            self._has_new_rows = False
            self._write(self._trace.roll)

    def _record(self, row: Row) -> None:
        self._has_new_rows = True
        self._put(row)

    def _put(self, row: Row) -> None:
        if not self._has_failed:
            try:
                self._trace.record(row)
            except TraceWriteError as error:
                self._end(error)

    def close(self) -> None:
        self._write(self._trace.close)

    def _write(self, write: Callable[[], None]) -> None:
        if not self._has_failed:
            try:
                write()
            except (TraceWriteError, OSError) as error:
                self._end(error)

    def _end(self, error: Exception) -> None:
        """Ends the trace. Files that readers can see stay, the others are removed."""
        self._has_failed = True
        self._requests.clear()
        self._published.clear()
        # A file that cannot be written often cannot be removed either.
        with suppress(OSError):
            self._trace.discard()
        self._on_failed(error)

"""Records the trace of a running broker with wall-clock times.

If two neighbours both record, each sends the other when a frame was sent and when its publication was published
(`LinkTimes`). So the rows are the same as a simulation's. Across machines the times are as accurate as the machines'
clocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from broker.core.effects import Accept, Deliver, Effect, Refuse
from broker.core.inputs import Published
from broker.process_memory import memory_bytes
from broker.trace.recorder import TraceRecorder
from broker.trace.rolling_trace import RollingTrace
from broker.wire.link_handshake import LinkTimes
from routing.messages import Message, PublicationId, Publish
from routing.router import Counts

MOST_TIMES = 100_000
"""The largest number of publications whose time of publishing is remembered."""


class RecentTimes(dict[PublicationId, int]):
    """The times of publishing of the latest publications, at most `MOST_TIMES`."""

    def __setitem__(self, publication: PublicationId, at: int) -> None:
        if len(self) >= MOST_TIMES and publication not in self:
            del self[next(iter(self))]
        super().__setitem__(publication, at)


class BrokerTrace:
    def __init__(self, broker: str, trace: RollingTrace, now: Callable[[], int]) -> None:
        self._now = now
        self._trace = trace
        self._published_at = RecentTimes()
        self._recorder = TraceRecorder(broker, trace, self._published_at)

    def requested(self, request: Published) -> None:
        """Remembers the time and the size of a client's publication until the broker answers it."""
        self._recorder.requested(request, self._now())

    def note_times(self, effects: list[Effect]) -> None:
        """Notes when accepted publications were published. Call this before the effects are performed, because the
        broker sends that time to other brokers before the publication."""
        for effect in effects:
            match effect:
                case Accept(client, int(reference), PublicationId() as publication):
                    self._recorder.note_time(client, reference, publication, self._now())

    def handled(self, effects: list[Effect], started: int, duration: int) -> None:
        """Records the effects of an input that the core handled from `started` on, for `duration` nanoseconds."""
        recorder = self._recorder
        recorder.handled(effects, started, lambda _: duration)
        for effect in effects:
            match effect:
                case Accept(client, int(reference), PublicationId() as publication):
                    recorder.accepted(client, reference, publication, self._now())
                case Refuse(client, int(reference)):
                    recorder.refused(client, reference)
                case Deliver():
                    now = self._now()
                    recorder.delivered(effect, self._published_at.get(effect.publication, now), now)

    def times_of(self, message: Message) -> LinkTimes:
        """The frame that a neighbour receives before the message."""
        published = self._published_at.get(message.id, 0) if isinstance(message, Publish) else 0
        return LinkTimes(self._now(), published)

    def received(self, peer: str, message: Message, frame: bytes, times: LinkTimes | None) -> None:
        """Records a received frame. Without the neighbour's times, the time of arrival replaces that of sending."""
        now = self._now()
        body = 0
        if isinstance(message, Publish):
            body = len(message.attributes) + len(message.payload)
            self._published_at[message.id] = times.published if times is not None and times.published else now
        sent = times.sent if times is not None else now
        self._recorder.received(peer, message, len(frame) - body, body, sent, now)

    def link(self, peer: str, up: int, down: int | None) -> None:
        self._recorder.link(peer, up, down)

    def state(self, counts: Counts, queue: int) -> None:
        """Records the broker's present state, and shows readers the rows so far if the interval is over."""
        now, busy = self._now(), time.process_time_ns()
        self._recorder.state(counts, at=now, busy=busy, queue=queue, memory_bytes=memory_bytes())
        self._trace.roll_if_due(now)

    def close(self) -> None:
        self._trace.close()

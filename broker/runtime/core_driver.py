"""Drives the core: passes it inputs with the time, performs and records its effects, and counts publications.

Only the event loop calls the core, and the core never blocks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from broker.config.overlay_config import OverlayConfig
from broker.core.broker import Broker
from broker.core.effects import Accept, Effect, Refuse
from broker.core.inputs import Input, LeaveRequested, Published, Restored, TimerFired
from broker.core.publications import SETTLE
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.publication_tracer import PublicationTracer
from broker.runtime.store_records import Key
from routing.messages import Publish

if TYPE_CHECKING:
    from broker.runtime.broker_trace import BrokerTrace


class Executor(Protocol):
    """Performs effects. The executor of a broker passes inputs to its driver, so the driver does not import it."""

    sent: int
    delivered: int

    def perform(self, effects: list[Effect]) -> None: ...


class CoreDriver:
    """Call `connect`, then `start`. Inputs may follow."""

    core: Broker
    executor: Executor
    tracer: PublicationTracer

    def __init__(self, errors: InternalErrors) -> None:
        self.published_here = 0
        self.received = 0
        """Publications from neighbours."""
        self.recorder: BrokerTrace | None = None
        self.trace_state = ""
        """The word `recording`, or the reason why recording ended. Empty without a trace."""
        self.is_stopping = False
        """Whether the broker stops. It closes its links then, and the trace does not record them as down."""
        self.is_ready = False
        """Whether the required links are up, or the time for it is over."""
        self._errors = errors
        self._clock_offset = time.time_ns() - time.monotonic_ns()
        self._traced_requests: set[tuple[str, int]] = set()

    def connect(self, executor: Executor, tracer: PublicationTracer) -> None:
        self.executor = executor
        self.tracer = tracer

    def start(self, core: Broker, records: Mapping[Key, object], overlay: OverlayConfig, trace: Path | None) -> None:
        """Restores the core from the records of its store and starts it. `trace`: the folder to record a trace into."""
        self.core = core
        self.is_ready = False
        if records:
            self.handle(Restored(records))
        if trace is not None:
            # Imports pyarrow, which nothing else here needs.
            from broker.runtime.broker_trace import BrokerTrace
            from broker.trace.rolling_trace import RollingTrace

            names = (core.me, core.incarnation, overlay.name, overlay.protocol)
            files = RollingTrace(trace, *names, self.now(), self._trace_failed)
            self.recorder = BrokerTrace(core.me, files, self.now)
            self.trace_state = "recording"
        self._perform(core.start(self.now()))

    def finish(self, *, leaves: bool) -> None:
        """Gives the core its last inputs. With `leaves` the broker leaves the overlay for good."""
        # Sends collected acknowledgements now, so that other brokers do not wait for them.
        self.handle(TimerFired(SETTLE))
        if leaves:
            self.handle(LeaveRequested())

    def close_trace(self) -> None:
        if self.recorder is not None:
            self.recorder.close()

    def now(self) -> int:
        """Wall-clock nanoseconds. The value never decreases while the broker runs."""
        return time.monotonic_ns() + self._clock_offset

    def handle(self, input: Input) -> None:
        """Passes an input to the core and performs its effects."""
        if self.recorder is not None:
            self._handle_recorded(input, self.recorder)
            return
        effects = self.core.handle(input, self.now())
        if effects:
            self._perform(effects)

    def _handle_recorded(self, input: Input, recorder: BrokerTrace) -> None:
        """Performs the effects before it records them, because nothing may depend on the trace."""
        if isinstance(input, Published):
            recorder.requested(input)
        started = self.now()
        effects = self.core.handle(input, started)
        took_ns = self.now() - started
        recorder.note_times(effects)
        self._perform(effects)
        recorder.handled(effects, started, took_ns)

    def _trace_failed(self, error: Exception) -> None:
        """Ends the trace. The broker continues without it."""
        self.recorder = None
        self.trace_state = f"ended: {error}"
        self._errors.report("trace not written", error)

    @property
    def accepts_publications(self) -> bool:
        """Whether the broker has room for a publication and knows which brokers want it."""
        return self.is_ready and self.core.admits

    def publish(self, request: Published) -> None:
        if self.core.is_repeated(request):
            # The core may have answered it already, and then does not answer again: nothing may wait for an answer.
            return
        self.published_here += 1
        if request.is_traced:
            self._traced_requests.add((request.client, request.reference))
        self.handle(request)

    def publication_received(self, peer: str, message: Publish) -> None:
        self.received += 1
        if message.is_traced:
            self.tracer.received(message, peer)

    def record_link_down(self, peer: str, up_since: int) -> None:
        if self.recorder is not None:
            self.recorder.link(peer, up_since, None if self.is_stopping else self.now())

    def totals(self) -> dict[str, int]:
        """Counts of publications since the start."""
        return {
            "published": self.published_here,
            "received": self.received,
            "sent": self.executor.sent,
            "delivered": self.executor.delivered,
        }

    def _perform(self, effects: list[Effect]) -> None:
        if self._traced_requests:
            self._trace_accepted(effects)
        if self.tracer.steps:
            self.tracer.add_effects(effects)
        self.executor.perform(effects)

    def _trace_accepted(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Accept | Refuse) and (effect.client, effect.reference) in self._traced_requests:
                self._traced_requests.discard((effect.client, int(effect.reference)))
                if isinstance(effect, Accept):
                    self.tracer.accepted(effect)

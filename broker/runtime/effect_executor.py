"""Performs the core's effects: sends frames to clients and neighbours, sets timers, writes records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from broker.core.effects import (
    Accept,
    CloseLink,
    Deliver,
    Disconnect,
    DroppedRow,
    Effect,
    Failed,
    Forget,
    Greet,
    OpenLink,
    Persist,
    Record,
    Refuse,
    ResetLink,
    Send,
    SetTimer,
)
from broker.core.inputs import Persisted, TimerFired
from broker.core.settings import SECOND
from broker.log import Log
from broker.runtime.client_session import ClientSession
from broker.runtime.core_driver import CoreDriver
from broker.runtime.internal_errors import InternalErrors
from broker.runtime.neighbours import Neighbours
from broker.runtime.store import Store
from broker.runtime.violations import Violations
from broker.wire import link_handshake
from broker.wire.broker_codec import encode
from broker.wire.client_codec import DeliveryWriter, pack_subscriptions
from broker.wire.client_frames import Reason
from broker.wire.limits import WireError
from routing.messages import PublicationId, Publish, is_free

MAX_PACKED_NAMES = 50_000


class EffectExecutor:
    def __init__(
        self,
        driver: CoreDriver,
        sessions: Mapping[str, ClientSession],
        neighbours: Neighbours,
        store: Store | None,
        violations: Violations,
        errors: InternalErrors,
        log: Log,
    ) -> None:
        """`sessions`: those of connected clients, by name. Without a store every record counts as stored at once."""
        self.sent = 0
        """Publications sent to neighbours."""
        self.delivered = 0
        self._driver = driver
        self._sessions = sessions
        self._links = neighbours.links
        self._store = store
        self._violations = violations
        self._errors = errors
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._writer: DeliveryWriter | None = None
        self._writer_for: PublicationId | None = None
        self._packed_names: dict[tuple[str, ...], bytes] = {}
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            Deliver: self._deliver,
            Send: self._send,
            Accept: self._accept,
            Refuse: self._refuse,
            Greet: self._greet,
            Disconnect: self._disconnect,
            SetTimer: self._set_timer,
            Persist: self._persist,
            Forget: self._forget,
            Record: self._record,
            ResetLink: lambda effect: neighbours.reset(effect.peer),
            OpenLink: lambda effect: neighbours.open(effect.peer, effect.address),
            CloseLink: lambda effect: neighbours.close(effect.peer),
            Failed: lambda effect: errors.report("core failed", effect.error, input=effect.input),
        }

    def perform(self, effects: list[Effect]) -> None:
        """Performs all effects. An effect that cannot be encoded as a frame is reported, and the others follow."""
        handlers = self._handlers
        for effect in effects:
            try:
                handlers[type(effect)](effect)
            except WireError as error:
                self._errors.report("frame not written", error, effect=type(effect).__name__)

    def _deliver(self, effect: Deliver) -> None:
        session = self._sessions.get(effect.client)
        if session is None:
            return
        writer = self._writer
        if writer is None or effect.publication is not self._writer_for:
            writer = DeliveryWriter(effect.publication, effect.hops, effect.attributes, effect.payload)
            self._writer, self._writer_for = writer, effect.publication
        packed = self._packed_names.get(effect.subscriptions)
        if packed is None:
            if len(self._packed_names) >= MAX_PACKED_NAMES:
                self._packed_names.clear()
            packed = self._packed_names[effect.subscriptions] = pack_subscriptions(effect.subscriptions)
        session.deliver(writer, effect.number, packed)
        self.delivered += 1

    def _send(self, effect: Send) -> None:
        link = self._links.get(effect.peer)
        if link is None:
            return
        message = effect.message
        if not link.reads_once_ids and isinstance(message, Publish):
            message = message._replace(once=None)
        frame = encode(message, effect.sequence)
        if effect.sequence is not None:
            self.sent += 1
        if link.wants_times and (recorder := self._driver.recorder) is not None and not is_free(effect.message):
            link.connection.send(link_handshake.encode(recorder.times_of(effect.message)))
        link.connection.send(frame)

    def _accept(self, effect: Accept) -> None:
        session = self._sessions.get(effect.client)
        if session is not None:
            session.accept(effect)

    def _refuse(self, effect: Refuse) -> None:
        session = self._sessions.get(effect.client)
        if session is not None:
            session.refuse(effect)

    def _greet(self, effect: Greet) -> None:
        self._sessions[effect.client].greet(effect)

    def _disconnect(self, effect: Disconnect) -> None:
        session = self._sessions.get(effect.client)
        if session is not None:
            self._violations.count("slow", effect.client)
            session.end(Reason.SLOW, effect.reason)

    def _set_timer(self, effect: SetTimer) -> None:
        earlier = self._timers.get(effect.name)
        if earlier is not None:
            earlier.cancel()
        delay = (effect.at - self._driver.now()) / SECOND
        self._timers[effect.name] = self._loop.call_later(delay, self._driver.handle, TimerFired(effect.name))

    def _persist(self, effect: Persist) -> None:
        if self._store is not None:
            self._store.put(effect.key, effect.record)
        else:
            self._driver.handle(Persisted(effect.key))

    def _forget(self, effect: Forget) -> None:
        if self._store is not None:
            self._store.remove(effect.key)

    def _record(self, effect: Record) -> None:
        row = effect.row
        if isinstance(row, DroppedRow):
            self._log.debug("dropped", reason=row.reason, publication=str(row.publication), detail=row.detail)

    def stop(self) -> None:
        """Cancels the timers."""
        for timer in self._timers.values():
            timer.cancel()

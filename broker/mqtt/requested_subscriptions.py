"""Subscriptions that MQTT clients request, by name. The gateway enters, replaces and withdraws them at the broker.

Only the latest change of each name is queued, so the number of queued changes is bounded by the number of names. On a
new connection the MQTT broker sends all retained subscriptions. Those that it does not send are withdrawn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.client.errors import RefusedError
from broker.client.subscription import Subscription
from broker.client.validation import check_expression, check_name
from broker.config.gateway_config import GatewayConfig
from broker.mqtt.counters import GatewayCounters, SyncState

LONGEST_REPORTED = 1_024
"""The largest name in bytes for which an error is published: queued errors contain their names."""
BATCH = 500
"""The number of requests to the broker in flight."""


class RequestedSubscriptions:
    def __init__(
        self,
        config: GatewayConfig,
        longest_text: int,
        counts: GatewayCounters,
        report_error: Callable[[str, str], None],
    ) -> None:
        """`longest_text` is the broker's limit for expressions. `report_error` is called with a name and an error."""
        self._limit = config.table.names
        self._longest_text = longest_text
        self._counts = counts
        self._report_error = report_error
        self._wanted: dict[str, str] = {}
        self._changes: dict[str, str | None] = {}
        self._changed = asyncio.Event()
        self._sync: SyncState | None = None

    @property
    def names(self) -> int:
        return len(self._wanted)

    @property
    def changes_waiting(self) -> int:
        return len(self._changes)

    @property
    def is_synchronised(self) -> bool:
        return self._sync is not None and self._sync.is_done and not self._changes

    def __contains__(self, name: object) -> bool:
        return name in self._wanted

    def begin_sync(self, marker: bytes) -> None:
        """Starts a synchronisation. The MQTT broker sends all retained subscriptions, and then `marker`."""
        self._sync = SyncState(marker)

    def receive_request(self, name: str, payload: bytes) -> None:
        """Handles a message to a subscription's topic: an expression, or an empty payload to unsubscribe."""
        if not name:
            self._finish_sync(payload)
            return
        try:
            check_name(name, "subscription", self._longest_text)
        except RefusedError as error:
            self._name_refused(name, error, is_withdrawal=not payload)
            return
        if self._sync is not None and payload:
            self._sync.seen.add(name)
        if not payload:
            self._set_wanted(name, None)
            return
        try:
            expression = payload.decode()
            check_expression(name, expression, "subscription", self._longest_text)
        except UnicodeDecodeError as error:
            self._refuse(name, f"the expression is not UTF-8 text: {error.reason} at byte {error.start}")
            return
        except RefusedError as error:
            self._refuse(name, str(error))
            return
        if name not in self._wanted and len(self._wanted) >= self._limit:
            self._counts.dropped(
                "names-full", f"{name!r}: {self._limit} subscriptions are in place, and no more may be"
            )
            self._report_error(name, f"{self._limit} subscriptions are in place, and no more may be")
        else:
            self._set_wanted(name, expression)

    def _name_refused(self, name: str, error: RefusedError, *, is_withdrawal: bool) -> None:
        if is_withdrawal:
            # There is no subscription under such a name.
            return
        self._counts.dropped("name-too-long", str(error))
        if len(name.encode()) <= LONGEST_REPORTED:
            self._report_error(name, str(error))

    def _set_wanted(self, name: str, expression: str | None) -> None:
        if self._wanted.get(name) == expression:
            return
        if expression is None:
            del self._wanted[name]
        else:
            self._wanted[name] = expression
        self._changes[name] = expression
        self._changed.set()

    def _refuse(self, name: str, text: str) -> None:
        """Refuses an expression. It withdraws the previous expression, which the MQTT client has replaced."""
        self._set_wanted(name, None)
        self._report_error(name, text)

    def _finish_sync(self, payload: bytes) -> None:
        sync = self._sync
        if sync is None or sync.is_done or payload != sync.marker:
            return
        sync.is_done = True
        for name in [each for each in self._wanted if each not in sync.seen]:
            self._set_wanted(name, None)
        sync.seen.clear()

    async def apply_to(self, stream: Subscription) -> None:
        """Keeps the expressions of the stream equal to the requested ones. A new stream receives all of them."""
        self._changes = {**self._wanted, **self._changes}
        while True:
            while self._changes:
                batch = list(self._changes.items())[:BATCH]
                await asyncio.gather(*(self._change(stream, name, expression) for name, expression in batch))
                for name, expression in batch:
                    if name in self._changes and self._changes[name] == expression:
                        del self._changes[name]
            self._changed.clear()
            await self._changed.wait()

    async def _change(self, stream: Subscription, name: str, expression: str | None) -> None:
        try:
            if expression is not None:
                await stream.add(name, expression)
            elif name in stream.expressions:
                await stream.withdraw(name)
        except RefusedError as error:
            self._request_refused(name, expression, str(error))

    def _request_refused(self, name: str, expression: str | None, text: str) -> None:
        if self._wanted.get(name) == expression:
            self._wanted.pop(name, None)
        self._counts.dropped("subscription-refused", f"{name!r}: {text}")
        self._report_error(name, text)

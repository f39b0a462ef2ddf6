"""What MQTT clients asked for: subscriptions by name, entered at the broker as they come, change and go.

Changes wait under their name, so only the latest counts and their number is bounded by that of names. When a
connection was made the MQTT broker tells all subscriptions that stand; those that it does not tell are withdrawn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.client.errors import RefusedError
from broker.client.subscription import Subscription
from broker.client.validation import check_expression, check_name
from broker.config.gateway_config import GatewayConfig
from broker.mqtt.counters import GatewayCounters, SyncState

LONGEST_TOLD = 1_024
"""Bytes of a name that is too long and hears so all the same: errors wait to be told, each under its name."""
AT_ONCE = 500
"""Requests to the broker that wait for answers."""


class RequestedSubscriptions:
    def __init__(
        self, config: GatewayConfig, longest_text: int, counts: GatewayCounters, tell: Callable[[str, str], None]
    ) -> None:
        """`longest_text` is the broker's limit for expressions; `tell` is called with a name and an error."""
        self._most = config.table.names
        self._longest_text = longest_text
        self._counts = counts
        self._tell = tell
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

    def expect(self, marker: bytes) -> None:
        """The MQTT broker is about to tell all names, and then this."""
        self._sync = SyncState(marker)

    def told(self, name: str, payload: bytes) -> None:
        """A message for a subscription's topic."""
        if not name:
            self._told_all(payload)
            return
        try:
            check_name(name, "subscription", self._longest_text)
        except RefusedError as error:
            self._name_refused(name, error, is_withdrawal=not payload)
            return
        if self._sync is not None and payload:
            self._sync.seen.add(name)
        if not payload:
            self._want(name, None)
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
        if name not in self._wanted and len(self._wanted) >= self._most:
            self._counts.dropped("names-full", f"{name!r}: {self._most} subscriptions are in place, and no more may be")
            self._tell(name, f"{self._most} subscriptions are in place, and no more may be")
        else:
            self._want(name, expression)

    def _name_refused(self, name: str, error: RefusedError, *, is_withdrawal: bool) -> None:
        if is_withdrawal:
            # Nothing stands under such a name.
            return
        self._counts.dropped("name-too-long", str(error))
        if len(name.encode()) <= LONGEST_TOLD:
            self._tell(name, str(error))

    def _want(self, name: str, expression: str | None) -> None:
        if self._wanted.get(name) == expression:
            return
        if expression is None:
            del self._wanted[name]
        else:
            self._wanted[name] = expression
        self._changes[name] = expression
        self._changed.set()

    def _refuse(self, name: str, text: str) -> None:
        """What stood under the name before does not stand any more: nobody asked for it to go on."""
        self._want(name, None)
        self._tell(name, text)

    def _told_all(self, payload: bytes) -> None:
        sync = self._sync
        if sync is None or sync.is_done or payload != sync.marker:
            return
        sync.is_done = True
        for name in [each for each in self._wanted if each not in sync.seen]:
            self._want(name, None)
        sync.seen.clear()

    async def enter_into(self, stream: Subscription) -> None:
        """Makes the stream what is asked for, for ever. A new stream is told everything."""
        self._changes = {**self._wanted, **self._changes}
        while True:
            while self._changes:
                some = list(self._changes.items())[:AT_ONCE]
                await asyncio.gather(*(self._change(stream, name, expression) for name, expression in some))
                for name, expression in some:
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
            self._forget(name, expression, str(error))

    def _forget(self, name: str, expression: str | None, text: str) -> None:
        if self._wanted.get(name) == expression:
            self._wanted.pop(name, None)
        self._counts.dropped("subscription-refused", f"{name!r}: {text}")
        self._tell(name, text)

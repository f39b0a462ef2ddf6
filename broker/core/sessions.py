"""The sessions of a broker's clients: connections, entries, deliveries, and the end of a session.

A session may outlive its connections. With a store it may also outlive the broker's process. The broker stores an entry
of a stored session before it accepts the entry.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter

from broker.core.client import NO_SIZE, Client, Clients, EntrySize
from broker.core.deduplication import PublishLedger
from broker.core.delivery_queue import DeliveryQueues
from broker.core.effects import Accept, Deliver, Effect, Forget, Greet, Persist, Refuse, SetTimer
from broker.core.inputs import (
    Advertised,
    ClientConnected,
    ClientLeft,
    ClientLost,
    ClientPaused,
    ClientResumed,
    DeliveryAcknowledged,
    RightsNarrowed,
    Subscribed,
    Unadvertised,
    Unsubscribed,
)
from broker.core.pending_writes import Key, PendingWrites
from broker.core.settings import Settings
from broker.core.stored_arrivals import StoredArrivals
from matching import MatchingError
from matching.expressions.model import Expression
from matching.languages.sql import parse
from routing.messages import EntryId, PublicationId
from routing.router import Router

Request = Subscribed | Advertised | Unsubscribed | Unadvertised

WITHDRAW = "withdraw"
"""The timer at whose end more entries of ended sessions are withdrawn."""
MOST_WITHDRAWALS = 256
"""The number of entries that are withdrawn without a break."""

SESSION_RECORDS = ("client", "taken", "acknowledged")
ENTRY_RECORDS = ("subscription", "advertisement")


class Sessions:
    def __init__(
        self,
        settings: Settings,
        router: Router,
        effects: list[Effect],
        pending_writes: PendingWrites,
        drops: Counter[str],
        drop: Callable[[str, PublicationId, str], None],
        arrivals: StoredArrivals,
        new_entry: Callable[[], EntryId],
        clock: Callable[[], int],
        unadvertise: Callable[[EntryId], None],
    ) -> None:
        """`arrivals` has the records of deliveries; `drop` counts a lost delivery by its reason."""
        self.clients = Clients(settings.is_durable)
        self._settings = settings
        self._router = router
        self._effects = effects
        self._pending_writes = pending_writes
        self._drops = drops
        self._arrivals = arrivals
        self._new_entry = new_entry
        self._clock = clock
        self._unadvertise = unadvertise
        self._withdrawals: deque[tuple[str, EntryId]] = deque()
        """Entries of ended sessions, with their kinds, that the router still has."""
        self.subscriptions_added = 0
        """The number of subscriptions added since the broker's start."""
        self.delivery_queues = DeliveryQueues(settings, drop, arrivals)

    def acknowledge(self, acknowledgement: DeliveryAcknowledged, now: int) -> None:
        client = self.clients.by_name.get(acknowledgement.client)
        if client is None or not client.is_reliable:
            return
        self.delivery_queues.acknowledge(client, acknowledgement.number, now, self._effects)
        # Deliveries that were queued for an earlier session without acknowledgements have the number 0.
        client.acknowledged = max(client.acknowledged, min(acknowledgement.number, client.last_number))
        if self._settings.is_durable:
            self._effects.append(Persist(("acknowledged", client.name), client.acknowledged))

    def is_stored(self, client: Client) -> bool:
        """Whether the client's session survives a restart of the broker."""
        return self._settings.is_durable and (client.is_reliable or client.keep is None)

    def handle_client(
        self,
        happened: ClientConnected | ClientLost | ClientLeft | ClientPaused | ClientResumed | RightsNarrowed,
        now: int,
    ) -> None:
        """Handles a change of a client's connection or rights."""
        if isinstance(happened, ClientConnected):
            self._connect(happened, now)
            return
        client = self.clients.by_name.get(happened.client)
        if client is None:
            return
        if isinstance(happened, ClientPaused):
            client.has_room = False
        elif isinstance(happened, ClientResumed):
            client.has_room = True
            self.delivery_queues.send_waiting(client, now, self._effects)
        elif isinstance(happened, RightsNarrowed):
            self._revoke(client, happened)
        elif isinstance(happened, ClientLost) and client.keep != 0:
            client.disconnect(now)
        else:
            self._end_session(client)
            self.continue_withdrawals()

    def _connect(self, happened: ClientConnected, now: int) -> None:
        known = self.clients.by_name.get(happened.client)
        if known is not None and happened.session != known.session and known.keep is not None and happened.session:
            self._end_session(known)
            self.continue_withdrawals()
            known = None
        was_stored = known is not None and self.is_stored(known)
        client = self.clients.get_or_create(happened.client)
        if known is None:
            client.since = now
        client.connect()
        if happened.session:
            if client.session != happened.session:
                client.session, client.ledger = happened.session, None
                if was_stored:
                    # The new session counts its publications from 1 on.
                    self._effects.append(Forget(("taken", client.name)))
            client.is_reliable = bool(happened.is_reliable)
            if not client.is_reliable:
                client.ledger = None
            elif client.ledger is None:
                client.ledger = PublishLedger(self._settings.publish_window)
            client.keep = happened.keep
            client.window = happened.window or client.window
            if self._settings.is_durable and not client.is_reliable and client.last_number > client.acknowledged:
                self._hold(client)
            if self.is_stored(client):
                kept = (client.session, client.is_reliable, client.keep, client.since)
                self._effects.append(Persist(("client", client.name), kept))
                if not was_stored:
                    self._start_numbers_above(client, now)
                    self._store_entries(client)
            elif was_stored:
                self._forget_records(client)
            accepted_through, missing = client.ledger.resume() if client.ledger is not None else (0, ())
            self._effects.append(Greet(client.name, known is not None, accepted_through, missing))
        self.delivery_queues.send_waiting(client, now, self._effects)

    def _start_numbers_above(self, client: Client, now: int) -> None:
        """Numbers the deliveries of a new session above those of earlier sessions with the client's name.

        The store may still have records of deliveries to an earlier session, because other clients wait for them.
        Larger numbers prevent a restart from delivering these to the new session.
        """
        client.last_number = client.acknowledged = max(client.last_number, now)
        self._effects.append(Persist(("acknowledged", client.name), client.acknowledged))

    def _hold(self, client: Client) -> None:
        """Holds the deliveries of a client that stops to acknowledge, until the store counts them as acknowledged.

        The client receives them once. Sent before, they would be sent again after a crash.
        """
        client.is_held = True
        key = ("acknowledged", client.name)
        if key in self._pending_writes:
            self._pending_writes.run_after(key, partial(self._release, client))
            return
        client.acknowledged = client.last_number
        self._pending_writes.write(key, client.acknowledged, partial(self._release, client))
        if not self.is_stored(client):
            self._effects.append(Forget(key))

    def _release(self, client: Client) -> None:
        """Sends the held deliveries. Holds them again if some of them were not stored as acknowledged."""
        if self.clients.by_name.get(client.name) is not client:
            return
        if not client.is_reliable and client.last_number > client.acknowledged:
            self._hold(client)
            return
        client.is_held = False
        self.delivery_queues.send_waiting(client, self._clock(), self._effects)

    def _end_session(self, client: Client) -> None:
        if self.is_stored(client):
            self._forget_records(client)
        for delivery in client.undelivered():
            self._arrivals.forget_delivery(delivery)
        # No publication is delivered for an entry without a name, so routers may learn of the withdrawals later.
        self.clients.remove(client.name)
        self._withdrawals += (("subscription", entry) for entry in client.subscriptions.values())
        self._withdrawals += (("advertisement", entry) for entry in client.advertisements.values())

    def continue_withdrawals(self) -> None:
        """Withdraws entries of ended sessions from the router. Each call withdraws a limited number, because the
        broker serves nothing else meanwhile."""
        for _ in range(min(len(self._withdrawals), MOST_WITHDRAWALS)):
            kind, entry = self._withdrawals.popleft()
            if kind == "subscription":
                self._router.unsubscribe(entry)
            else:
                self._unadvertise(entry)
        if self._withdrawals:
            self._effects.append(SetTimer(WITHDRAW, self._clock()))

    def _revoke(self, client: Client, narrowed: RightsNarrowed) -> None:
        for name in narrowed.subscriptions:
            if name in client.subscriptions:
                self._withdraw_entry(client, "subscription", name)
        for name in narrowed.advertisements:
            if name in client.advertisements:
                self._withdraw_entry(client, "advertisement", name)
        self.delivery_queues.revoke(client, narrowed.publications)

    def _records(self, client: Client) -> dict[Key, tuple[str, int]]:
        """The client's entries as they are stored, with expression and time. Includes pending entries."""
        active = {
            (kind, client.name, name): (client.expressions[entry], client.confirmed[entry])
            for kind in ENTRY_RECORDS
            for name, entry in _entries(client, kind).items()
        }
        return active | client.pending_entries

    def _store_entries(self, client: Client) -> None:
        for key, record in self._records(client).items():
            self._effects.append(Persist(key, record))

    def _forget_records(self, client: Client) -> None:
        for key in self._records(client):
            self._effects.append(Forget(key))
        for kind in SESSION_RECORDS:
            self._effects.append(Forget((kind, client.name)))

    def end_expired(self, now: int) -> None:
        """Ends the sessions of clients that did not reconnect in time."""
        expired = self.clients.expired(now)
        for client in expired:
            self._end_session(client)
        if expired:
            self.continue_withdrawals()

    def handle_request(self, request: Request, now: int) -> None:
        """Adds or withdraws an entry, and answers the client."""
        client = self.clients.get_or_create(request.client)
        if not client.is_connected:
            # A client that sends a request is connected.
            self.handle_client(ClientConnected(client.name), now)
        self._execute(client, request)

    def _execute(self, client: Client, request: Request) -> None:
        kind = "subscription" if isinstance(request, Subscribed | Unsubscribed) else "advertisement"
        key = (kind, request.client, request.name)
        if isinstance(request, Subscribed | Advertised):
            self._request_entry(client, kind, key, request)
        elif key in self._pending_writes:
            self._execute_when_stored(key, client, request)
        elif request.name not in _entries(client, kind):
            self._refuse(request, f"no {kind} is called {request.name!r}", "unknown")
        else:
            self._withdraw_entry(client, kind, request.name)
            self._accept(request)

    def _execute_when_stored(self, key: Key, client: Client, request: Request) -> None:
        """Executes the request when the pending write for the same name is committed, if the session still exists."""
        session = client.session

        def execute_if_current() -> None:
            if self._is_current(client, session):
                self._execute(client, request)

        self._pending_writes.run_after(key, execute_if_current)

    def _is_current(self, client: Client, session: str) -> bool:
        """Whether the session exists: it has not ended, and no other session has replaced it."""
        return self.clients.by_name.get(client.name) is client and client.session == session

    def _request_entry(self, client: Client, kind: str, key: Key, request: Subscribed | Advertised) -> None:
        known = _entries(client, kind)
        expression = request.expression
        if isinstance(expression, str):
            try:
                expression = parse(expression)
            except MatchingError as error:
                self._refuse(request, str(error), "invalid")
                return
        text = str(expression)
        if key in self._pending_writes:
            self._execute_when_stored(key, client, request)
            return
        if request.name in known and client.expressions[known[request.name]] == text:
            self._accept(request)
            return
        is_new = request.name not in known
        size = EntrySize.of(expression, text)
        replaced = NO_SIZE if is_new else client.sizes[known[request.name]]
        excess = self._excess(client, kind, is_new, client.total_size.plus(size).minus(replaced))
        if excess is not None:
            limit, reason = excess
            self._drops[f"refused: limit of {limit}"] += 1
            self._refuse(request, reason, "limit")
            return
        client.total_size = client.total_size.plus(size)
        session = client.session

        def enter_when_stored() -> None:
            if client.pending_entries.pop(key, None) is not None:
                client.pending_new_names[kind] -= is_new
            if self.clients.by_name.get(client.name) is not client:
                return
            if request.name in known:
                self._remove_entry(client, kind, request.name)
            self._add_entry(client, kind, request.name, expression, text, size, self._clock())
            if self._is_current(client, session):
                # Another session's request may have the same number.
                self._accept(request)

        if self.is_stored(client):
            record = client.pending_entries[key] = (text, self._clock())
            client.pending_new_names[kind] += is_new
            self._pending_writes.write(key, record, enter_when_stored)
        else:
            enter_when_stored()

    def _excess(self, client: Client, kind: str, is_new: bool, total: EntrySize) -> tuple[str, str] | None:
        """The limit that the client would exceed with entries of this total size, and the reason for a refusal."""
        settings = self._settings
        count = len(_entries(client, kind)) + client.pending_new_names[kind]
        if is_new and count >= settings.entries_of_client:
            return f"{kind}s", f"{client.name} has {count} {kind}s, and no client may have more"
        if total.expression_bytes > settings.expression_bytes_of_client:
            most = settings.expression_bytes_of_client
            return "expression_bytes", f"{client.name} may have expressions of {most} bytes in all, not of more"
        if total.patterns > settings.patterns_of_client:
            return "patterns", f"{client.name} may have {settings.patterns_of_client} patterns in all, not more"
        return None

    def _accept(self, request: Request) -> None:
        self._effects.append(Accept(request.client, request.reference or request.name))

    def _refuse(self, request: Request, reason: str, code: str) -> None:
        self._effects.append(Refuse(request.client, request.reference or request.name, reason, code))

    def _add_entry(
        self, client: Client, kind: str, name: str, expression: Expression, text: str, size: EntrySize, since: int
    ) -> None:
        """Adds an entry whose size the client's total includes already."""
        entry = self._new_entry()
        client.sizes[entry] = size
        if kind == "subscription":
            self.subscriptions_added += 1
            self.clients.add_subscription(client, name, entry)
            self._router.subscribe(entry, client.name, expression, since)
        else:
            client.advertisements[name] = entry
            self._router.advertise(entry, client.name, expression)
        client.expressions[entry] = text
        client.confirmed[entry] = since

    def _withdraw_entry(self, client: Client, kind: str, name: str) -> None:
        """Removes the entry and its record."""
        self._remove_entry(client, kind, name)
        key = (kind, client.name, name)
        # A pending entry that replaces this one has the same key, so its record must stay.
        if self.is_stored(client) and key not in client.pending_entries:
            self._effects.append(Forget(key))

    def _remove_entry(self, client: Client, kind: str, name: str) -> None:
        if kind == "subscription":
            entry = self.clients.remove_subscription(client, name)
            self._router.unsubscribe(entry)
        else:
            entry = client.advertisements.pop(name)
            self._unadvertise(entry)
        client.total_size = client.total_size.minus(client.sizes.pop(entry))
        del client.expressions[entry], client.confirmed[entry]

    def restore(self, records: Mapping[Key, object], now: int) -> None:
        """Restores sessions and their entries from the store. All clients are disconnected."""
        for key, record in records.items():
            if key[0] in SESSION_RECORDS:
                self._restore_session(self.clients.get_or_create(key[1]), key[0], record)
        for key, record in records.items():
            if key[0] in ENTRY_RECORDS:
                # Earlier versions stored the expression alone. The time of its confirmation is unknown: 0.
                text, since = record if isinstance(record, tuple) else (str(record), 0)
                client, expression = self.clients.get_or_create(key[1]), parse(text)
                size = EntrySize.of(expression, text)
                client.total_size = client.total_size.plus(size)
                self._add_entry(client, key[0], key[2], expression, text, size, since)
        for client in self.clients:
            client.disconnect(now)

    def _restore_session(self, client: Client, kind: str, record: object) -> None:
        if kind == "client":
            assert isinstance(record, tuple)
            # Earlier versions did not store when the session began.
            client.session, client.is_reliable, client.keep, client.since = (*record, 0)[:4]
        elif kind == "taken":
            client.ledger = PublishLedger(self._settings.publish_window, record)
        else:
            assert isinstance(record, int)
            client.last_number = client.acknowledged = record

    def restore_delivery(self, delivery: Deliver) -> bool:
        """Queues a delivery from the store. Returns False if its client is gone or has acknowledged it."""
        client = self.clients.by_name.get(delivery.client)
        if client is None or delivery.number <= client.acknowledged:
            return False
        self.delivery_queues.restore(client, delivery)
        client.last_number = max(client.last_number, delivery.number)
        return True

    def sort_restored(self) -> None:
        """Sorts the restored deliveries of each client by number. The store returns them in another order."""
        for client in self.clients:
            client.waiting = deque(sorted(client.waiting, key=attrgetter("number")))


def _entries(client: Client, kind: str) -> dict[str, EntryId]:
    return client.subscriptions if kind == "subscription" else client.advertisements

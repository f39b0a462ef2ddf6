"""Clients' sessions at a broker: they come, enter and withdraw what they want, get lost, come back, and end.

A session may outlive connections, and with a store also the broker's process. Of a session that is stored, everything
that it entered is stored before it is answered for.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from operator import attrgetter

from broker.core.client import Client, Clients
from broker.core.delivery_queue import DeliveryQueues
from broker.core.effects import Accept, Deliver, Effect, Forget, Greet, Persist, Refuse
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
from broker.core.publish_ledger import PublishLedger
from broker.core.settings import Settings
from matching import MatchingError
from matching.expressions.model import Expression
from matching.languages.sql import parse
from routing.messages import EntryId, PublicationId
from routing.router import Router

Request = Subscribed | Advertised | Unsubscribed | Unadvertised

SESSION_RECORDS = ("client", "taken", "acknowledged")
ENTRY_RECORDS = ("subscription", "advertisement")


class Sessions:
    def __init__(
        self,
        settings: Settings,
        router: Router,
        effects: list[Effect],
        persisting: PendingWrites,
        drops: Counter[str],
        drop: Callable[[str, PublicationId, str], None],
        forget: Callable[[Deliver], None],
        new_entry: Callable[[], EntryId],
        clock: Callable[[], int],
        unadvertise: Callable[[EntryId], None],
    ) -> None:
        """`forget` hears of deliveries that need not be kept any more, `drop` of those that are lost."""
        self.clients = Clients(settings.is_durable)
        self._settings = settings
        self._router = router
        self._effects = effects
        self._persisting = persisting
        self._drops = drops
        self._forget = forget
        self._new_entry = new_entry
        self._clock = clock
        self._unadvertise = unadvertise
        self.subscriptions_added = 0
        """Subscriptions since the start."""
        self._deliveries = DeliveryQueues(settings, drop, forget)

    def deliver(self, deliveries: list[tuple[Client, Deliver]], now: int) -> None:
        for client, delivery in deliveries:
            # Its name may be another's by now, with numbers of its own.
            if self.clients.find(client.name) is client:
                self._deliveries.offer(client, delivery, now, self._effects)
            else:
                self._forget(delivery)

    def acknowledge(self, acknowledgement: DeliveryAcknowledged, now: int) -> None:
        client = self.clients.find(acknowledgement.client)
        if client is None or not client.is_reliable:
            return
        self._deliveries.acknowledge(client, acknowledgement.number, now, self._effects)
        # What waited for an earlier session that acknowledges nothing has the number 0.
        client.acknowledged = max(client.acknowledged, min(acknowledgement.number, client.last_number))
        if self._settings.is_durable:
            self._effects.append(Persist(("acknowledged", client.name), client.acknowledged))

    def is_stored(self, client: Client) -> bool:
        """Does its session survive a restart?"""
        return self._settings.is_durable and (client.is_reliable or client.keep is None)

    def handle_client(
        self,
        happened: ClientConnected | ClientLost | ClientLeft | ClientPaused | ClientResumed | RightsNarrowed,
        now: int,
    ) -> None:
        if isinstance(happened, ClientConnected):
            self._connected(happened, now)
            return
        client = self.clients.find(happened.client)
        if client is None:
            return
        if isinstance(happened, ClientPaused):
            client.has_room = False
        elif isinstance(happened, ClientResumed):
            client.has_room = True
            self._deliveries.send_waiting(client, now, self._effects)
        elif isinstance(happened, RightsNarrowed):
            self._narrow(client, happened)
        elif isinstance(happened, ClientLost) and client.keep != 0:
            client.disconnect(now)
        else:
            self._end(client)

    def _connected(self, happened: ClientConnected, now: int) -> None:
        known = self.clients.find(happened.client)
        if known is not None and happened.session != known.session and known.keep is not None and happened.session:
            self._end(known)
            known = None
        was_stored = known is not None and self.is_stored(known)
        client = self.clients.get_or_create(happened.client)
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
            if self.is_stored(client):
                kept = (client.session, client.is_reliable, client.keep)
                self._effects.append(Persist(("client", client.name), kept))
                if not was_stored:
                    self._number_from(client, now)
                    self._store_entries(client)
            elif was_stored:
                self._forget_records(client)
            taken, missing = client.ledger.resume() if client.ledger is not None else (0, ())
            self._effects.append(Greet(client.name, known is not None, taken, missing))
        self._deliveries.send_waiting(client, now, self._effects)

    def _number_from(self, client: Client, now: int) -> None:
        """Records of deliveries to an earlier session under the client's name may still be there: others wait for them.
        A later session's numbers are larger, so that a restart does not give it what was not for it."""
        client.last_number = client.acknowledged = max(client.last_number, now)
        self._effects.append(Persist(("acknowledged", client.name), client.acknowledged))

    def _end(self, client: Client) -> None:
        if self.is_stored(client):
            self._forget_records(client)
        for name in list(client.subscriptions):
            self._take_out(client, "subscription", name)
        for name in list(client.advertisements):
            self._take_out(client, "advertisement", name)
        for delivery in client.undelivered():
            self._forget(delivery)
        self.clients.remove(client.name)

    def _narrow(self, client: Client, narrowed: RightsNarrowed) -> None:
        for name in narrowed.subscriptions:
            if name in client.subscriptions:
                self._withdraw(client, "subscription", name)
        for name in narrowed.advertisements:
            if name in client.advertisements:
                self._withdraw(client, "advertisement", name)
        self._deliveries.revoke(client, narrowed.publications)

    def _records(self, client: Client) -> dict[Key, tuple[str, int]]:
        """What it entered, as it is stored: expression and time."""
        entered = {
            (kind, client.name, name): (client.expressions[entry], client.confirmed[entry])
            for kind in ENTRY_RECORDS
            for name, entry in _entries(client, kind).items()
        }
        return entered | client.pending_entries

    def _store_entries(self, client: Client) -> None:
        for key, record in self._records(client).items():
            self._effects.append(Persist(key, record))

    def _forget_records(self, client: Client) -> None:
        for key in self._records(client):
            self._effects.append(Forget(key))
        for kind in SESSION_RECORDS:
            self._effects.append(Forget((kind, client.name)))

    def end_expired(self, now: int) -> None:
        """Sessions whose clients did not come back in time."""
        for client in self.clients.expired(now):
            self._end(client)

    def handle_request(self, request: Request, now: int) -> None:
        client = self.clients.get_or_create(request.client)
        if not client.is_connected:
            # Whoever asks for something is here.
            self.handle_client(ClientConnected(client.name), now)
        self._do(client, request)

    def _do(self, client: Client, request: Request) -> None:
        kind = "subscription" if isinstance(request, Subscribed | Unsubscribed) else "advertisement"
        key = (kind, request.client, request.name)
        if isinstance(request, Subscribed | Advertised):
            self._enter_requested(client, kind, key, request)
        elif key in self._persisting:
            self._do_after(key, client, request)
        elif request.name not in _entries(client, kind):
            self._refuse(request, f"no {kind} is called {request.name!r}", "unknown")
        else:
            self._withdraw(client, kind, request.name)
            self._accept(request)

    def _do_after(self, key: Key, client: Client, request: Request) -> None:
        """When the store has what was asked for before under the same name, if the session that asks still is."""
        session = client.session

        def go() -> None:
            if self._is_here(client, session):
                self._do(client, request)

        self._persisting.run_after(key, go)

    def _is_here(self, client: Client, session: str) -> bool:
        """Has the session neither ended nor made room for another under the client's name?"""
        return self.clients.find(client.name) is client and client.session == session

    def _enter_requested(self, client: Client, kind: str, key: Key, request: Subscribed | Advertised) -> None:
        known = _entries(client, kind)
        try:
            expression = parse(request.expression)
        except MatchingError as error:
            self._refuse(request, str(error), "invalid")
            return
        text = str(expression)
        if key in self._persisting:
            self._do_after(key, client, request)
            return
        if request.name in known and client.expressions[known[request.name]] == text:
            self._accept(request)
            return
        is_new = request.name not in known
        count = len(known) + client.pending_new_names[kind]
        if is_new and count >= self._settings.entries_of_client:
            self._drops[f"refused: limit of {kind}s"] += 1
            self._refuse(request, f"{client.name} has {count} {kind}s, and no client may have more", "limit")
            return
        session = client.session

        def go() -> None:
            if client.pending_entries.pop(key, None) is not None:
                client.pending_new_names[kind] -= is_new
            if self.clients.find(client.name) is not client:
                return
            if request.name in known:
                self._take_out(client, kind, request.name)
            self._enter(client, kind, request.name, expression, text, self._clock())
            if self._is_here(client, session):
                # Another session's request may have the same number.
                self._accept(request)

        if self.is_stored(client):
            record = client.pending_entries[key] = (text, self._clock())
            client.pending_new_names[kind] += is_new
            self._persisting.write(key, record, go)
        else:
            go()

    def _accept(self, request: Request) -> None:
        self._effects.append(Accept(request.client, request.reference or request.name))

    def _refuse(self, request: Request, reason: str, code: str) -> None:
        self._effects.append(Refuse(request.client, request.reference or request.name, reason, code))

    def _enter(self, client: Client, kind: str, name: str, expression: Expression, text: str, since: int) -> None:
        entry = self._new_entry()
        if kind == "subscription":
            self.subscriptions_added += 1
            self.clients.add_subscription(client, name, entry)
            self._router.subscribe(entry, client.name, expression, since)
        else:
            client.advertisements[name] = entry
            self._router.advertise(entry, client.name, expression)
        client.expressions[entry] = text
        client.confirmed[entry] = since

    def _withdraw(self, client: Client, kind: str, name: str) -> None:
        self._take_out(client, kind, name)
        key = (kind, client.name, name)
        # What is to stand in its place, and is being stored, has the same record.
        if self.is_stored(client) and key not in client.pending_entries:
            self._effects.append(Forget(key))

    def _take_out(self, client: Client, kind: str, name: str) -> None:
        if kind == "subscription":
            entry = self.clients.remove_subscription(client, name)
            self._router.unsubscribe(entry)
        else:
            entry = client.advertisements.pop(name)
            self._unadvertise(entry)
        del client.expressions[entry], client.confirmed[entry]

    def restore(self, records: Mapping[Key, object], now: int) -> None:
        """Sessions and what they had entered; nobody is connected."""
        for key, record in records.items():
            if key[0] in SESSION_RECORDS:
                self._restore_session(self.clients.get_or_create(key[1]), key[0], record)
        for key, record in records.items():
            if key[0] in ENTRY_RECORDS:
                # Earlier versions stored the expression alone: it was confirmed at some time before the restart.
                text, since = record if isinstance(record, tuple) else (str(record), 0)
                self._enter(self.clients.get_or_create(key[1]), key[0], key[2], parse(text), text, since)
        for client in self.clients:
            client.disconnect(now)

    def _restore_session(self, client: Client, kind: str, record: object) -> None:
        if kind == "client":
            assert isinstance(record, tuple)
            client.session, client.is_reliable, client.keep = record
        elif kind == "taken":
            client.ledger = PublishLedger(self._settings.publish_window, record)
        else:
            assert isinstance(record, int)
            client.last_number = client.acknowledged = record

    def restore_delivery(self, delivery: Deliver) -> bool:
        """Does it still wait for its client?"""
        client = self.clients.find(delivery.client)
        if client is None or delivery.number <= client.acknowledged:
            return False
        client.enqueue(delivery)
        client.last_number = max(client.last_number, delivery.number)
        return True

    def sort_restored(self) -> None:
        for client in self.clients:
            client.waiting = deque(sorted(client.waiting, key=attrgetter("number")))


def _entries(client: Client, kind: str) -> dict[str, EntryId]:
    return client.subscriptions if kind == "subscription" else client.advertisements

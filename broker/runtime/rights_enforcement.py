"""Revokes subscriptions and advertisements that a client's rights no longer cover.

Deliveries that are queued for them are dropped.

Rights are enforced when a client connects, before any delivery, and when the access list is read again. An entry that
is being stored at that time is not active yet; it is checked after its commit. The Welcome of the next connection tells
a client with revoked entries that its session is not resumed. The client then sends all its entries again, and receives
a refusal for each one that its rights do not cover.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from broker.core.client import Client
from broker.core.inputs import RightsNarrowed
from broker.core.sessions import ENTRY_RECORDS
from broker.log import Log
from broker.runtime.core_driver import CoreDriver
from broker.security.access import Rights


class ConnectedSession(Protocol):
    def disconnect_after_revocation(self) -> None: ...


class RightsEnforcement:
    def __init__(
        self, driver: CoreDriver, sessions: Mapping[str, ConnectedSession], max_sessions: int, log: Log
    ) -> None:
        """`sessions`: those of connected clients, by name. `max_sessions`: the limit of kept sessions."""
        self.revoked_count = 0
        """Revoked subscriptions and advertisements since the start."""
        self._driver = driver
        self._sessions = sessions
        self._max_sessions = max_sessions
        self._log = log
        self._enforced: dict[str, Rights] = {}
        """The rights last enforced on each client. Equal rights are not checked again, because checking thousands of
        subscriptions takes long."""
        self._revoked_clients: set[str] = set()
        """Clients that must send all entries again, and have not received a Welcome that says so, or possibly not."""

    def enforce(self, name: str, rights: Rights, *, is_forced: bool = False) -> bool:
        """Revokes the client's entries that `rights` do not cover. Returns whether there were any.

        `is_forced`: check even if the same rights were enforced before.
        """
        # A publication that was being stored when a subscription was revoked may be queued for the client by now.
        if not is_forced and name not in self._revoked_clients and self._enforced.get(name) == rights:
            return False
        self._remember(name, rights)
        client = self._driver.core.client(name)
        revoked = revoked_entries(client, rights) if client is not None else None
        if revoked is None:
            return False
        self._driver.handle(revoked)
        self._log.warning(
            "rights withdrawn",
            client=name,
            subscriptions=revoked.subscriptions,
            advertisements=revoked.advertisements,
            deliveries=len(revoked.publications),
        )
        count = len(revoked.subscriptions) + len(revoked.advertisements)
        self.revoked_count += count
        if count:
            self._revoked_clients.add(name)
        return count > 0

    def check_stored(self, record: tuple[str, ...]) -> None:
        """Enforces rights on the entry of a committed record. The client may have requested the entry under other
        rights, over an earlier connection or in an earlier session."""
        if record[0] not in ENTRY_RECORDS:
            return
        kind, name, entry = record
        rights, client = self._enforced.get(name), self._driver.core.client(name)
        if rights is None or client is None or not exceeds_rights(client, kind, entry, rights):
            return
        session = self._sessions.get(name)
        if self.enforce(name, rights, is_forced=True) and session is not None:
            session.disconnect_after_revocation()

    def clear_revoked(self, name: str) -> bool:
        """Clears the mark of a client with revoked entries. Returns whether it was marked."""
        was_revoked = name in self._revoked_clients
        self._revoked_clients.discard(name)
        return was_revoked

    def mark_revoked(self, name: str) -> None:
        """Marks a client that must send all entries again and possibly did not receive the Welcome that says so.

        Its entries were revoked, or its session is new.
        """
        self._revoked_clients.add(name)

    def _remember(self, name: str, rights: Rights) -> None:
        """Keeps the enforced rights. Removes clients without a session when there are too many."""
        if len(self._enforced) >= 2 * self._max_sessions:
            sessions = {client.name for client in self._driver.core.clients}
            self._enforced = {each: enforced for each, enforced in self._enforced.items() if each in sessions}
            self._revoked_clients &= sessions
        self._enforced[name] = rights


def exceeds_rights(client: Client, kind: str, name: str, rights: Rights) -> bool:
    """Whether the client has an entry of this kind and name that its rights do not cover."""
    is_subscription = kind == "subscription"
    entry = (client.subscriptions if is_subscription else client.advertisements).get(name)
    if entry is None:
        return False
    refusal = rights.refusal_to_subscribe if is_subscription else rights.refusal_to_advertise
    return refusal(client.expressions[entry]) is not None


def revoked_entries(client: Client, rights: Rights) -> RightsNarrowed | None:
    """The client's entries and queued deliveries that its rights do not cover, or None."""
    subscriptions, advertisements = (
        tuple(name for name in entries if exceeds_rights(client, kind, name, rights))
        for kind, entries in (("subscription", client.subscriptions), ("advertisement", client.advertisements))
    )
    hidden = frozenset(each.publication for each in client.undelivered() if not rights.may_see(each.attributes))
    if not (subscriptions or advertisements or hidden):
        return None
    return RightsNarrowed(client.name, subscriptions, advertisements, hidden)

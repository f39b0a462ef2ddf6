"""What clients have entered and their rights do not cover any more: it is withdrawn, and what waits for it goes.

A client is held to its rights when it connects, before anything is delivered to it, and when the access list is read
again. What is being stored at that time stands only later, and is looked at then. Whoever lost something is told with
the next connection that not all is as it was: it enters everything anew, and hears of each thing that it may not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.core.client import Client
from broker.core.inputs import RightsNarrowed
from broker.core.sessions import ENTRY_RECORDS
from broker.security.access import Rights

if TYPE_CHECKING:
    from broker.runtime.server import BrokerServer


class RightsEnforcement:
    def __init__(self, server: BrokerServer) -> None:
        self.revoked_count = 0
        """Subscriptions and advertisements, since the start."""
        self._server = server
        self._enforced: dict[str, Rights] = {}
        """To which each client was held last: looking at thousands of subscriptions takes its time."""
        self._revoked_clients: set[str] = set()
        """Clients that have to enter everything anew, and were not told so, or may not have heard it."""

    def enforce(self, name: str, rights: Rights, *, is_forced: bool = False) -> bool:
        """Did the client lose a subscription or an advertisement? `again`: look, even if the rights are the same."""
        # What was on its way into the store when someone lost a subscription may have come for it since.
        if not is_forced and name not in self._revoked_clients and self._enforced.get(name) == rights:
            return False
        self._remember(name, rights)
        client = self._server.core.client(name)
        revoked = revoked_entries(client, rights) if client is not None else None
        if revoked is None:
            return False
        self._server.handle(revoked)
        self._server.log.warning(
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
        """The record is stored: what is entered with it may have been asked for under other rights, by a connection or
        a session that is no more."""
        if record[0] not in ENTRY_RECORDS:
            return
        kind, name, entry = record
        rights, client = self._enforced.get(name), self._server.core.client(name)
        if rights is None or client is None or not exceeds_rights(client, kind, entry, rights):
            return
        session = self._server.clients.get(name)
        if self.enforce(name, rights, is_forced=True) and session is not None:
            session.disconnect_after_revocation()

    def clear_revoked(self, name: str) -> bool:
        """Since the client last connected?"""
        was_revoked = name in self._revoked_clients
        self._revoked_clients.discard(name)
        return was_revoked

    def mark_revoked(self, name: str) -> None:
        """The connection was lost before the client said anything: it is told once more to enter everything anew."""
        self._revoked_clients.add(name)

    def _remember(self, name: str, rights: Rights) -> None:
        if len(self._enforced) >= 2 * self._server.config.overlay.limits.sessions:
            sessions = {client.name for client in self._server.core.clients}
            self._enforced = {each: enforced for each, enforced in self._enforced.items() if each in sessions}
            self._revoked_clients &= sessions
        self._enforced[name] = rights


def exceeds_rights(client: Client, kind: str, name: str, rights: Rights) -> bool:
    """Does the client have an entry under this name that its rights do not cover?"""
    is_subscription = kind == "subscription"
    entry = (client.subscriptions if is_subscription else client.advertisements).get(name)
    if entry is None:
        return False
    refusal = rights.refusal_to_subscribe if is_subscription else rights.refusal_to_advertise
    return refusal(client.expressions[entry]) is not None


def revoked_entries(client: Client, rights: Rights) -> RightsNarrowed | None:
    """None: the client has nothing that its rights do not cover."""
    subscriptions, advertisements = (
        tuple(name for name in entries if exceeds_rights(client, kind, name, rights))
        for kind, entries in (("subscription", client.subscriptions), ("advertisement", client.advertisements))
    )
    hidden = frozenset(each.publication for each in client.undelivered() if not rights.may_see(each.attributes))
    if not (subscriptions or advertisements or hidden):
        return None
    return RightsNarrowed(client.name, subscriptions, advertisements, hidden)

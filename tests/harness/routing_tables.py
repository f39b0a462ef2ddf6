"""A broker's routing tables as plain values, to be compared with what a paper prints."""

from __future__ import annotations

from broker.core.effects import MatchedRow
from routing.destination_based import DestinationBased
from routing.messages import GAP, EntryId, PublicationId
from routing.shortest_paths import TopologyTable
from tests.harness.fake_wire import World

Rows = list[tuple[str, str]]
"""The broker at which an entry was made, and the table's source for it."""


def router_of(world: World, broker: str) -> DestinationBased:
    router = world.broker(broker).router
    assert isinstance(router, DestinationBased)
    return router


def local_advertisements(world: World, broker: str) -> list[str]:
    """The L-SRT's clients."""
    return sorted(router_of(world, broker)._local_advertisements._clients.values())


def local_subscriptions(world: World, broker: str) -> list[str]:
    """The L-PRT's clients."""
    return sorted(client for client, _ in router_of(world, broker)._local_subscriptions._clients.values())


def remote_advertisements(world: World, broker: str, domain: str = "") -> Rows:
    table = router_of(world, broker)._domains[domain].advertisements
    return sorted((each.entry.broker, each.source) for each in table)


def remote_subscriptions(world: World, broker: str, domain: str = "") -> Rows:
    offers = router_of(world, broker)._domains[domain]._used_offers
    return sorted((entry.broker, offer.source) for entry, offer in offers.items() if entry.number != GAP)


def topology(world: World, broker: str, domain: str = "") -> TopologyTable:
    return router_of(world, broker)._domains[domain].multicast.topology


def holders(world: World, entry_of: str) -> list[str]:
    """The brokers with a subscription made at the given broker in an R-PRT."""
    return [name for name in world.seats if any(entry.broker == entry_of for entry in _remote_entries(world, name))]


def _remote_entries(world: World, broker: str) -> list[EntryId]:
    return [entry for domain in router_of(world, broker)._domains.values() for entry in domain._used_offers]


def matching_brokers(world: World, publication: PublicationId) -> list[str]:
    """The brokers that matched a publication, in the order in which they did; each once however many tables."""
    rows = [(name, record.row) for name, record in world.records if isinstance(record.row, MatchedRow)]
    return list(dict.fromkeys(name for name, row in rows if row.publication == publication))


def way_of(world: World, publication: PublicationId) -> list[tuple[str, str]]:
    return [(sender, receiver) for sender, receiver, message in world.hops if message.id == publication]

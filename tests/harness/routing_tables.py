"""The routing tables of a broker as plain values, for comparison with tables of the papers."""

from __future__ import annotations

from broker.core.effects import MatchedRow
from experiments.torture.world import World
from routing.destination_based import DestinationBased
from routing.messages import GAP, EntryId, PublicationId
from routing.shortest_paths import TopologyTable

Rows = list[tuple[str, str]]
"""The broker of an entry, and the source that the table has for it."""


def router_of(world: World, broker: str) -> DestinationBased:
    router = world.broker(broker).router
    assert isinstance(router, DestinationBased)
    return router


def local_advertisements(world: World, broker: str) -> list[str]:
    """The clients in the L-SRT."""
    return sorted(router_of(world, broker)._local_advertisements._clients.values())


def local_subscriptions(world: World, broker: str) -> list[str]:
    """The clients in the L-PRT."""
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
    """The brokers whose R-PRT has a subscription of the given broker."""
    return [name for name in world.seats if any(entry.broker == entry_of for entry in _remote_entries(world, name))]


def _remote_entries(world: World, broker: str) -> list[EntryId]:
    return [entry for domain in router_of(world, broker)._domains.values() for entry in domain._used_offers]


def matching_brokers(world: World, publication: PublicationId) -> list[str]:
    """The brokers that matched a publication, in order. A broker is listed once, also if it matched several tables."""
    rows = [(name, record.row) for name, record in world.records if isinstance(record.row, MatchedRow)]
    return list(dict.fromkeys(name for name, row in rows if row.publication == publication))


def route_of(world: World, publication: PublicationId) -> list[tuple[str, str]]:
    """The links over which the publication was sent, as sender and receiver, in order."""
    return [(sender, receiver) for sender, receiver, message in world.hops if message.id == publication]

"""Routing: the routers FBR, D-DBR, MERC and flooding. They keep tables and make routing decisions, without a clock and
without I/O. `create` makes a router by name, and `messages` defines what brokers send each other. It may import
`matching`. A name of this package is imported when it is first used, because a client needs only the messages.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routing.messages import (
        Credit,
        EntryId,
        Heartbeat,
        LinkState,
        Message,
        Neighbour,
        OnceId,
        ProposalAnswered,
        Propose,
        PublicationId,
        Publish,
        Settled,
        is_free,
    )
    from routing.multicast import narrowed
    from routing.registry import create, default_name, info, names
    from routing.reorganisation import CloseLink, OpenLink, Reorganisation
    from routing.router import (
        Counts,
        ForwardingLeg,
        LearnedSubscription,
        Router,
        RouterSettings,
        RoutingDecision,
        UnknownInterest,
    )
    from routing.shortest_paths import TopologyTable
    from routing.tables import expression_of

_MODULES = {
    "CloseLink": "routing.reorganisation",
    "Counts": "routing.router",
    "Credit": "routing.messages",
    "EntryId": "routing.messages",
    "ForwardingLeg": "routing.router",
    "Heartbeat": "routing.messages",
    "LearnedSubscription": "routing.router",
    "LinkState": "routing.messages",
    "Message": "routing.messages",
    "Neighbour": "routing.messages",
    "OpenLink": "routing.reorganisation",
    "ProposalAnswered": "routing.messages",
    "Propose": "routing.messages",
    "OnceId": "routing.messages",
    "PublicationId": "routing.messages",
    "Publish": "routing.messages",
    "Reorganisation": "routing.reorganisation",
    "Router": "routing.router",
    "RouterSettings": "routing.router",
    "RoutingDecision": "routing.router",
    "Settled": "routing.messages",
    "TopologyTable": "routing.shortest_paths",
    "UnknownInterest": "routing.router",
    "create": "routing.registry",
    "default_name": "routing.registry",
    "expression_of": "routing.tables",
    "info": "routing.registry",
    "is_free": "routing.messages",
    "names": "routing.registry",
    "narrowed": "routing.multicast",
}

__all__ = [
    "CloseLink",
    "Counts",
    "Credit",
    "EntryId",
    "ForwardingLeg",
    "Heartbeat",
    "LearnedSubscription",
    "LinkState",
    "Message",
    "Neighbour",
    "OnceId",
    "OpenLink",
    "ProposalAnswered",
    "Propose",
    "PublicationId",
    "Publish",
    "Reorganisation",
    "Router",
    "RouterSettings",
    "RoutingDecision",
    "Settled",
    "TopologyTable",
    "UnknownInterest",
    "create",
    "default_name",
    "expression_of",
    "info",
    "is_free",
    "names",
    "narrowed",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'routing' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)

"""The rules for the brokers, links and clusters of an overlay.

Each rule has its own message, which names the broker, link or cluster and the necessary change. The rules:

- ids are unique, plain words; a link joins two different known brokers, and a pair has one link at most;
- all brokers are connected;
- clusters are given to every broker or to none; a broker in several clusters is an edge broker;
- each cluster is connected by its own links, because messages inside a cluster never leave it [THESIS 5];
- edge brokers join all clusters to each other, and the two ends of a link share a cluster: a broker knows only
  the brokers of its own clusters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from topologies.broker_and_link import Broker, Link
from topologies.errors import OverlayError, nearest
from topologies.graph import components

JOIN_OPTION = 'write unshared_links = "join" under [overlay] (--join-links on the command line)'
_WORD = re.compile(r"\w[\w.\-]*")
_SHOWN = 5


def is_plain_id(text: str) -> bool:
    """Whether the text can be a broker's id or a cluster's name."""
    return _WORD.fullmatch(text) is not None


def check_brokers(brokers: Sequence[Broker]) -> None:
    """Checks each broker alone, and that no two share an id. The brokers must be in order of their ids."""
    if not brokers:
        raise OverlayError("an overlay needs at least one broker")
    previous = ""
    for broker in brokers:
        _check_word(broker.id, "broker id")
        if broker.id == previous:
            raise OverlayError(f"broker {broker.id!r} is defined twice; give each broker its own id")
        previous = broker.id
        for number, cluster in enumerate(broker.clusters):
            _check_word(cluster, f"cluster name of broker {broker.id!r}:")
            if cluster in broker.clusters[:number]:
                raise OverlayError(f"broker {broker.id!r} lists cluster {cluster!r} twice")
        if broker.position is not None and not all(map(math.isfinite, broker.position)):
            raise OverlayError(f"broker {broker.id!r} stands at {broker.position}; a position is two finite numbers")


def check_links(brokers: Sequence[Broker], links: Sequence[Link]) -> None:
    """Checks each link alone, and that no two join the same pair. The links must be in order of their ends."""
    ids = {broker.id for broker in brokers}
    previous: tuple[str, str] | None = None
    for link in links:
        for id in link.ends:
            if id not in ids:
                raise OverlayError(f"{_named(link)} names an unknown broker {id!r}; {nearest(id, ids)}")
        if link.a == link.b:
            raise OverlayError(f"{_named(link)} joins broker {link.a!r} with itself")
        if link.ends == previous:
            raise OverlayError(f"{_named(link)} is defined twice; a pair of brokers has one link")
        previous = link.ends
        if not (math.isfinite(link.latency_ms) and link.latency_ms >= 0):
            raise OverlayError(f"{_named(link)} has latency_ms {link.latency_ms}; it must be zero or more")
        if link.bandwidth_mbit is not None and not (math.isfinite(link.bandwidth_mbit) and link.bandwidth_mbit > 0):
            raise OverlayError(f"{_named(link)} has bandwidth_mbit {link.bandwidth_mbit}; it must be above zero")
        if link.policy_weight is not None and link.policy_weight <= 0:
            raise OverlayError(f"{_named(link)} has policy_weight {link.policy_weight}; it must be above zero")


def check_connected(neighbours: Mapping[str, Sequence[str]]) -> None:
    """Checks that every broker reaches every other one."""
    pieces = components(neighbours, neighbours)
    if len(pieces) > 1:
        raise OverlayError(
            f"the overlay is disconnected: it falls into {len(pieces)} parts, and no path leads from "
            f"{pieces[0][0]!r} to {_some(min(pieces[1:], key=len))}; add a link between the parts"
        )


def check_clusters(
    brokers: Sequence[Broker],
    links: Sequence[Link],
    members: Mapping[str, Sequence[str]],
    neighbours: Mapping[str, Sequence[str]],
) -> None:
    """Checks the clusters. An overlay without clusters passes."""
    for broker in brokers:
        if broker.edge is True and len(broker.clusters) < 2:
            raise OverlayError(
                f"broker {broker.id!r} says that it is an edge broker but is in {_clusters_in_words(broker)}; "
                "list the clusters that it joins, or take its edge = true away"
            )
        if broker.edge is False and len(broker.clusters) > 1:
            raise OverlayError(
                f"broker {broker.id!r} says that it is no edge broker but is in {_clusters_in_words(broker)}; "
                "leave one cluster, or take its edge = false away"
            )
        if members and not broker.clusters:
            raise OverlayError(
                f"broker {broker.id!r} is in no cluster while others are; give it one of {_some(list(members))}"
            )
    for cluster, ids in members.items():
        _check_cluster_is_whole(cluster, ids, neighbours)
    _check_clusters_are_joined(brokers, members)
    clusters_of = {broker.id: broker.clusters for broker in brokers}
    for link in links:
        if members and not set(clusters_of[link.a]).intersection(clusters_of[link.b]):
            a, b = clusters_of[link.a], clusters_of[link.b]
            raise OverlayError(
                f"{_named(link)} crosses from cluster {_some(a)} to {_some(b)} and its ends share none; "
                f"add cluster {b[0]!r} to broker {link.a!r}, or, to turn ends of such links into edge brokers, "
                f"{JOIN_OPTION}"
            )


def _check_cluster_is_whole(cluster: str, ids: Sequence[str], neighbours: Mapping[str, Sequence[str]]) -> None:
    pieces = components(ids, neighbours, inside=set(ids))
    if len(pieces) > 1:
        raise OverlayError(
            f"cluster {cluster!r} is cut in {len(pieces)}: inside it no path leads from {pieces[0][0]!r} to "
            f"{_some(min(pieces[1:], key=len))}; link them, or let brokers between them join the cluster"
        )


def _check_clusters_are_joined(brokers: Sequence[Broker], members: Mapping[str, Sequence[str]]) -> None:
    joined: dict[str, list[str]] = {cluster: [] for cluster in members}
    for broker in brokers:
        for cluster in broker.clusters[1:]:
            joined[broker.clusters[0]].append(cluster)
            joined[cluster].append(broker.clusters[0])
    pieces = components(joined, joined)
    if len(pieces) > 1:
        raise OverlayError(
            f"no edge broker joins cluster {_some(min(pieces[1:], key=len))} with {_some(pieces[0])}; let a broker "
            f"be in both, or, to turn ends of the links between them into edge brokers, {JOIN_OPTION}"
        )


def _check_word(text: str, what: str) -> None:
    if not is_plain_id(text):
        raise OverlayError(f"{what} {text!r} is not a plain word; use letters, digits, '_', '-' and '.'")


def _named(link: Link) -> str:
    return f"link {link.a}-{link.b}"


def _clusters_in_words(broker: Broker) -> str:
    if not broker.clusters:
        return "no cluster"
    noun = "cluster" if len(broker.clusters) == 1 else "clusters"
    return f"{noun} {', '.join(map(repr, broker.clusters))}"


def _some(names: Sequence[str]) -> str:
    shown = [repr(name) for name in sorted(names)[:_SHOWN]]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(shown) + more

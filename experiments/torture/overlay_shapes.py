"""Overlays for random scenarios, of all shapes in which brokers may wait for each other or clusters may meet."""

from __future__ import annotations

import random

import topologies
from topologies.broker_and_link import Broker, Link

SHAPES = ("line", "ring", "star", "tree", "random", "transit-stub", "ring of clusters", "shared link", "two edges")


def overlay_of(shape: str, generator: random.Random) -> topologies.Overlay:
    seed = generator.randrange(1000)
    if shape == "ring of clusters":
        return ring_of_clusters(generator.randrange(3, 5), generator.random() < 0.5)
    if shape == "shared link":
        return shared_link(generator.random() < 0.5)
    if shape == "two edges":
        return two_edges(generator.random() < 0.5)
    if shape == "transit-stub":
        parameters = {"transit_domains": 1, "transit_nodes": 2, "stubs": 1, "stub_nodes": 2}
        return topologies.cluster_by_domain(topologies.generate(shape, parameters, seed=seed))
    brokers = generator.randrange(3, 8)
    chosen: dict[str, object] = {"brokers": brokers}
    if shape == "random":
        chosen["degree"] = 2.5 if brokers > 3 else 2.0
    return topologies.cluster_by_size(
        topologies.generate(shape, chosen, seed=seed), generator.randrange(2, max(3, brokers))
    )


def ring_of_clusters(count: int, has_inner: bool) -> topologies.Overlay:
    """Neighbouring clusters share an edge broker. With `has_inner` each cluster has one more broker."""
    names = [f"c{number}" for number in range(count)]
    edges = [Broker(f"e{number}", (names[number], names[(number + 1) % count])) for number in range(count)]
    links = [Link(f"e{number}", f"e{(number + 1) % count}") for number in range(count)]
    inner = [Broker(f"i{number}", (names[number],)) for number in range(count)] if has_inner else []
    for number in range(count if has_inner else 0):
        links += [Link(f"i{number}", f"e{number}"), Link(f"i{number}", f"e{(number - 1) % count}")]
    return topologies.Overlay("ring of clusters", (*edges, *inner), tuple(links))


def shared_link(has_other_path: bool) -> topologies.Overlay:
    """Two linked edge brokers in the same two clusters.

    Their link is a bridge in cluster y, and also in x unless `has_other_path`.
    """
    brokers = [Broker("e1", ("x", "y")), Broker("e2", ("x", "y")), Broker("a", ("x",)), Broker("z", ("y",))]
    links = [Link("e1", "e2"), Link("a", "e1"), Link("z", "e2")]
    if has_other_path:
        links += [Link("a", "e2")]
    return topologies.Overlay("shared link", tuple(brokers), tuple(links))


def two_edges(has_third_cluster: bool) -> topologies.Overlay:
    """Two edge brokers between two clusters, without a link between them. The second may be in a third cluster."""
    further = ("w",) if has_third_cluster else ()
    brokers = [Broker("e1", ("x", "y")), Broker("e2", ("x", "y", *further)), Broker("a", ("x",)), Broker("z", ("y",))]
    links = [Link("a", "e1"), Link("a", "e2"), Link("z", "e1"), Link("z", "e2")]
    if has_third_cluster:
        brokers.append(Broker("v", ("w",)))
        links.append(Link("v", "e2"))
    return topologies.Overlay("two edges", tuple(brokers), tuple(links))

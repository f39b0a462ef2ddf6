"""The kinds of runs. Each is a function of parameters and a folder that returns numbers and lists of numbers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from broker.progress import ignore_progress
from experiments.errors import SimulationError

if TYPE_CHECKING:
    from experiments.scenario.load import Scenario
    from experiments.sweeps.sweep import RunSpec, Value
    from topologies.overlay import Overlay

Parameters: TypeAlias = "Mapping[str, Value]"
RunResult: TypeAlias = tuple[dict[str, float], dict[str, tuple[float, ...]]]

SETTING = "set."
"""Prefix of the parameters that replace values of a scenario."""


def identity_of(spec: RunSpec) -> dict[str, Value]:
    """The values that determine the run's result. For a simulation they include the scenario with all defaults."""
    identity = dict(spec.parameters)
    if spec.kind == "simulate":
        from experiments.scenario.output import to_document

        # JSON with sorted keys, and not the text of the file: that depends on the version of tomli-w.
        resolved = json.dumps(to_document(scenario_of(spec.parameters)), sort_keys=True)
        identity = {"protocol": identity["protocol"], "resolved": resolved}
    return identity


def scenario_of(parameters: Parameters) -> Scenario:
    from experiments.scenario.load import load

    overrides = {key.removeprefix(SETTING): str(value) for key, value in parameters.items() if key.startswith(SETTING)}
    overrides |= {"seed": str(parameters["seed"]), "protocols": f'["{parameters["protocol"]}"]'}
    return load(str(parameters["scenario"]), overrides)


def simulate(parameters: Parameters, folder: Path) -> RunResult:
    """Simulates a scenario under one protocol and writes its trace to the folder.

    Raises SimulationError if an owed delivery was missed or repeated.
    """
    from experiments.simulate.run import simulate as run

    summary = run(scenario_of(parameters), str(parameters["protocol"]), ignore_progress, folder)
    if summary.failure is not None:
        raise SimulationError(summary.failure)
    numbers: dict[str, float] = {}
    for each in dataclasses.fields(summary):
        value = getattr(summary, each.name)
        if isinstance(value, int | float):
            numbers[each.name] = int(value) if isinstance(value, bool) else value
    numbers |= {f"messages.{kind}": count for kind, count in summary.messages.items()}
    numbers |= {f"drops.{reason}": count for reason, count in summary.drops.items()}
    return numbers, {}


def count_lists(parameters: Parameters, _folder: Path) -> RunResult:
    """Counts the destination lists of random publications, without simulating time."""
    from experiments.studies.destination_lists import count_lists as count
    from experiments.studies.destination_lists import draw_publications

    overlay = overlay_of(parameters)
    interested = round(float(parameters["interested"]) * len(overlay.ids))
    publications = draw_publications(
        len(overlay.ids), int(parameters["publications"]), interested, int(parameters["seed"])
    )
    counts = count(overlay, str(parameters["protocol"]), publications)
    numbers = {
        "brokers": len(overlay.ids),
        "degree": 2 * len(overlay.links) / len(overlay.ids),
        "mean": counts.mean,
        "mean_at_source": counts.mean_at_source,
        "messages": counts.messages,
    }
    return numbers, {"histogram": counts.histogram}


def overlay_of(parameters: Parameters) -> Overlay:
    """A random overlay; for MERC a transit-stub overlay with clusters of `cluster_size` brokers and a backbone."""
    from routing.registry import info
    from topologies.clustering.clusters import cluster_by_domain
    from topologies.registry import generate

    brokers, degree, seed = int(parameters["brokers"]), float(parameters["degree"]), int(parameters["seed"])
    if not info(str(parameters["protocol"])).needs_clusters:
        return generate("random", {"brokers": brokers, "degree": degree}, seed=seed)
    size = int(parameters["cluster_size"])
    shape = {"transit_nodes": brokers // size, "stub_nodes": size - 1, "degree": degree}
    return cluster_by_domain(generate("transit-stub", shape, seed=seed))


def reorganise(parameters: Parameters, _folder: Path) -> RunResult:
    """Measures hops before and after self-reorganisation, without simulating time."""
    from experiments.studies.reorganisation import reorganise_by_load

    result = reorganise_by_load(
        brokers=int(parameters["brokers"]),
        degree=float(parameters["degree"]),
        most_links=int(parameters["most_links"]),
        most_messages=int(parameters["most_messages"]),
        cycles=int(parameters["cycles"]),
        seed=int(parameters["seed"]),
    )
    return {
        "hops_before": result.hops[0],
        "hops_after": result.hops[-1],
        "changes": result.changes,
        "links_before": result.links[0],
        "links_after": result.links[-1],
    }, {"hops": result.hops, "hops_before": result.by_hops_before, "hops_after": result.by_hops_after}


def routing_memory(parameters: Parameters, _folder: Path) -> RunResult:
    """Measures the size of routing tables, and the messages of one reconfiguration."""
    from experiments.studies.routing_memory import measure

    result = measure(overlay_of(parameters), str(parameters["protocol"]))
    return {
        "bytes_inside": result.bytes_inside,
        "bytes_at_edges": result.bytes_at_edges,
        "messages_multicast": result.messages_multicast,
        "messages_flooded": result.messages_flooded,
    }, {}


KINDS: dict[str, Callable[[Parameters, Path], RunResult]] = {
    "simulate": simulate,
    "count-lists": count_lists,
    "reorganise": reorganise,
    "routing-memory": routing_memory,
}

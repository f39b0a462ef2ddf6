"""[overlay]: reads the table as a setup, and builds brokers and links from the setup."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import astuple

from experiments.errors import ScenarioError
from experiments.scenario.model import Clusters, ModelValue, OverlayKeys, OverlaySetup, Scenario
from experiments.scenario.overrides import parameter_names
from experiments.scenario.workload import check_is_file
from routing import registry as routers
from topologies.broker_and_link import METRICS, Metric
from topologies.clustering.clusters import cluster_by_domain, cluster_by_size
from topologies.errors import TopologyError, nearest
from topologies.files.toml import read_overlay_file
from topologies.files.typed_tables import TableReader, key_names, shown_value
from topologies.overlay import Overlay
from topologies.registry import MODELS, generate

_INHERITED = ("clusters", "latency_ms", "bandwidth_mbit", "metric")


def read_overlays(table: Mapping[str, Any], reader: TableReader) -> tuple[OverlaySetup, dict[str, OverlaySetup]]:
    """The common overlay, and the overlays of protocols that have their own.

    A protocol's table inherits the keys of the common one. If it names a model or a file, it inherits only clusters,
    latency, bandwidth and metric.
    """
    common = {name: value for name, value in table.items() if name not in routers.names()}
    by_protocol = {}
    for protocol in (name for name in routers.names() if name in table):
        key, own = f"overlay.{protocol}", table[protocol]
        if not isinstance(own, Mapping):
            raise reader.refusal(key, f"is {shown_value(own)}; it must be a table")
        is_another = "model" in own or "file" in own
        inherited = {name: value for name, value in common.items() if name in _INHERITED or not is_another}
        by_protocol[protocol] = _read_setup({**inherited, **own}, key, reader)
    return _read_setup(common, "overlay", reader), by_protocol


def check_clusters(scenario: Scenario, protocol: str) -> None:
    """Refuses a protocol that needs clusters on a generated overlay without clusters. A file may have its own."""
    setup = scenario.overlay_for(protocol)
    if routers.info(protocol).needs_clusters and setup.clusters is None and setup.file is None:
        raise ScenarioError(
            f"{scenario.source}: {_key(scenario, protocol)}.clusters is missing, and {protocol} needs clusters; write "
            "clusters = {size = 10}, or {by = 'domain'} for a transit-stub overlay"
        )


def build_overlay(scenario: Scenario, protocol: str) -> Overlay:
    """Builds the overlay of the protocol. The same seed gives the same overlay.

    The generator receives the scenario's seed and names its random streams itself, so `mercast topology generate` with
    that seed makes the same overlay.
    """
    check_clusters(scenario, protocol)
    setup = scenario.overlay_for(protocol)
    try:
        overlay = _build(setup, scenario.seed, is_clustered=routers.info(protocol).needs_clusters)
    except TopologyError as error:
        raise ScenarioError(f"{scenario.source}: {_key(scenario, protocol)}: {error}") from error
    if routers.info(protocol).needs_clusters and not overlay.clusters:
        raise ScenarioError(
            f"{scenario.source}: {_key(scenario, protocol)}.file is {setup.file!r}, whose brokers are in no clusters, "
            f"and {protocol} needs clusters; write them there, or clusters = {{size = 10}} here"
        )
    return overlay


def cores_of(scenario: Scenario, protocol: str, overlay: Overlay) -> dict[str, int]:
    """The number of cores of each broker. The number in an overlay file has precedence."""
    setup = scenario.overlay_for(protocol)
    own: Mapping[str, Mapping[str, object]] = {}
    if setup.file is not None:
        own = read_overlay_file(Path(setup.file), drop_clusters=True).broker_settings
    inside = scenario.brokers.cores
    at_edge = inside if scenario.brokers.edge_cores is None else scenario.brokers.edge_cores
    cores = {}
    for broker in overlay.ids:
        count = own.get(broker, {}).get("cores", at_edge if overlay.is_edge(broker) else inside)
        if type(count) is not int or count < 1:
            raise ScenarioError(f"{setup.file}: cores of broker {broker} is {count!r}; it must be at least 1")
        cores[broker] = count
    return cores


def metric_of(scenario: Scenario, protocol: str) -> Metric:
    """The metric of shortest paths. The scenario has precedence over an overlay file."""
    setup = scenario.overlay_for(protocol)
    if setup.metric is not None:
        return setup.metric
    if setup.file is None:
        return "hops"
    found = read_overlay_file(Path(setup.file), drop_clusters=True).settings.get("metric", "hops")
    for metric in METRICS:
        if found == metric:
            return metric
    raise ScenarioError(f"{setup.file}: [overlay] metric is {found!r}; {nearest(str(found), METRICS)}")


def _key(scenario: Scenario, protocol: str) -> str:
    return f"overlay.{protocol}" if protocol in scenario.overlay_by_protocol else "overlay"


def _read_setup(table: Mapping[str, Any], key: str, reader: TableReader) -> OverlaySetup:
    name = table.get("model")
    models = [name] if isinstance(name, str) and name in MODELS else list(MODELS)
    names = dict.fromkeys(name for model in models for name in parameter_names(model))
    common = reader.read(OverlayKeys, table, key, others=(*names, *routers.names()))
    own = {name: value for name, value in table.items() if name in names}
    if (common.model is None) == (common.file is None):
        problem = "is missing; write a model or a file" if common.model is None else "excludes file"
        raise reader.refusal(f"{key}.model", problem)
    if common.model is not None and common.model not in MODELS:
        raise reader.refusal(f"{key}.model", f"is {common.model!r}; {nearest(common.model, MODELS)}")
    if common.file is not None and own:
        raise reader.refusal(f"{key}.file", "excludes the parameters of models")
    if common.file is not None:
        check_is_file(common.file, f"{key}.file", reader)
    if common.clusters is not None and len([each for each in astuple(common.clusters) if each is not None]) != 1:
        raise reader.refusal(f"{key}.clusters", "must be one of {by = 'domain'}, {size = N} and {count = N}")
    return OverlaySetup(
        **{name: getattr(common, name) for name in key_names(OverlayKeys)},
        parameters=_parameters(own, common.model, key, reader) if common.model else {},
    )


def _parameters(table: Mapping[str, Any], model: str, key: str, reader: TableReader) -> dict[str, ModelValue]:
    for parameter in MODELS[model].parameters:
        if parameter.needed and parameter.name not in table:
            raise reader.refusal(f"{key}.{parameter.name}", f"is missing; model {model!r} needs it: {parameter.help}")
    values = reader.read(MODELS[model].parameters_type, table, key)
    found = {name: getattr(values, name) for name in parameter_names(model) if name in table}
    brokers, degree = found.get("brokers"), found.get("degree")
    if brokers is not None and degree is not None and not 0 < degree < max(2, brokers):
        raise reader.refusal(
            f"{key}.degree", f"is {degree:g}; with brokers = {brokers} it must be above 0 and below {brokers}"
        )
    return found


def _build(setup: OverlaySetup, seed: int, *, is_clustered: bool) -> Overlay:
    if setup.file is not None:
        drops = not is_clustered or setup.clusters is not None
        overlay = read_overlay_file(Path(setup.file), drop_clusters=drops).overlay
    else:
        assert setup.model is not None
        overlay = generate(setup.model, setup.parameters, seed=seed)
    if setup.latency_ms is not None or setup.bandwidth_mbit is not None:
        overlay = _with_links(overlay, setup)
    if is_clustered and setup.clusters is not None:
        overlay = _clustered(overlay, setup.clusters)
    return overlay


def _with_links(overlay: Overlay, setup: OverlaySetup) -> Overlay:
    given = {"latency_ms": setup.latency_ms, "bandwidth_mbit": setup.bandwidth_mbit}
    changes = {name: value for name, value in given.items() if value is not None}
    links = tuple(dataclasses.replace(link, **changes) for link in overlay.links)  # type: ignore[arg-type]
    return Overlay(overlay.name, overlay.brokers, links)


def _clustered(overlay: Overlay, clusters: Clusters) -> Overlay:
    if clusters.by is not None:
        return cluster_by_domain(overlay)
    if clusters.size is not None:
        return cluster_by_size(overlay, clusters.size)
    assert clusters.count is not None
    return cluster_by_size(overlay, math.ceil(len(overlay.ids) / clusters.count))

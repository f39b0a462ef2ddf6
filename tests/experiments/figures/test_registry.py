"""Proves that the registry has every figure of the paper's routing part, at both scales, with its parameters."""

from __future__ import annotations

import pytest

from experiments.errors import FigureError
from experiments.figures.figure import SCALES, Scale
from experiments.figures.registry import find, names, select
from experiments.sweeps.run_kinds import identity_of


def test_all_figures_of_the_thesis_and_its_example_are_there() -> None:
    assert names() == ("text-1.3", *(f"fig-10.1.{number}" for number in range(1, 21)))


@pytest.mark.parametrize("name", names())
def test_a_figure_has_a_title_and_the_claims_of_the_paper(name: str) -> None:
    figure = find(name)
    assert figure.name == name
    assert "THESIS" in figure.reference
    assert figure.title
    assert figure.claim.endswith(".")
    assert figure.setting.endswith(".")
    assert figure.claims or figure.shapes
    assert figure.panels
    assert all(panel.y for panel in figure.panels)
    assert set(figure.minutes) == set(SCALES)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", names())
def test_a_figure_s_runs_are_valid_and_different(name: str, scale: Scale) -> None:
    points = find(name).points(scale)
    folders = [point.spec.folder_name for point in points]
    assert points
    assert len(set(folders)) == len(folders)


def parameters_at_paper_scale(name: str, key: str) -> list[object]:
    """The distinct values of a run's parameter, in their order."""
    return list(dict.fromkeys(point.spec.parameters.get(key) for point in find(name).points("paper")))


@pytest.mark.parametrize(
    ("name", "key", "values"),
    [
        ("fig-10.1.1", "set.overlay.brokers", list(range(1, 11))),
        ("fig-10.1.2", "set.clients.subscriptions_each", [8]),
        ("fig-10.1.3", "set.clients.subscriptions_each", [20]),
        ("fig-10.1.5", "set.workload.duration_s", [300]),
        ("fig-10.1.5", "set.workload.zipf", [0.5]),
        ("fig-10.1.9", "set.clients.subscriptions_each", [30]),
        ("fig-10.1.12", "set.clients.advertised_share", [0.6]),
        ("fig-10.1.13", "publications", [10_000]),
        ("fig-10.1.13", "brokers", [100, 200, 300, 400, 500, 600, 700]),
        ("fig-10.1.14", "degree", [9]),
        ("fig-10.1.15", "interested", [0.1]),
        ("fig-10.1.16", "cluster_size", [None, 100]),
        ("fig-10.1.17", "brokers", [70]),
        ("fig-10.1.18", "set.overlay.brokers", [100]),
        ("fig-10.1.19", "set.overlay.degree", [6]),
        ("fig-10.1.20", "cluster_size", [100, 70]),
        ("text-1.3", "brokers", [70]),
    ],
)
def test_paper_scale_has_the_paper_s_parameters(name: str, key: str, values: list[object]) -> None:
    assert parameters_at_paper_scale(name, key) == values


def test_a_hundred_brokers_are_simulated_as_the_paper_describes_them() -> None:
    by_protocol = {point.spec.parameters["protocol"]: point.spec for point in find("fig-10.1.9").points("paper")}
    resolved = str(identity_of(by_protocol["merc"])["resolved"])
    for line in ('"brokers": 100', '"transit_nodes": 10', '"stub_nodes": 9', '"edge_cores": 8', '"zipf": 0.5'):
        assert line in resolved


def test_figures_share_the_runs_that_they_have_in_common() -> None:
    def folders(name: str) -> set[str]:
        return {point.spec.folder_name for point in find(name).points("paper")}

    assert folders("fig-10.1.4") < folders("fig-10.1.3")
    assert folders("fig-10.1.5") == folders("fig-10.1.6") == folders("fig-10.1.7") < folders("fig-10.1.8")
    assert folders("fig-10.1.12") < folders("fig-10.1.11")
    assert folders("fig-10.1.10") < folders("fig-10.1.9")


def test_all_means_every_figure_and_none_occurs_twice() -> None:
    assert [figure.name for figure in select(["fig-10.1.9", "all"])][:2] == ["fig-10.1.9", "text-1.3"]
    assert len(select(["fig-10.1.9", "all"])) == len(names())


def test_an_unknown_figure_is_refused_with_the_nearest() -> None:
    with pytest.raises(FigureError, match=r"no experiment is called 'fig-10\.1\.99'.*fig-10\.1\.9"):
        find("fig-10.1.99")

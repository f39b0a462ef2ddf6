"""A protocol is one module with a router and one row in the registry. Brokers, overlay files and simulations use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.config.overlay_config import read_config
from experiments.scenario.load import load
from experiments.simulate.run import simulate
from experiments.torture.world import World
from routing import registry
from routing.flooding import Flooding
from routing.registry import RouterInfo

OVERLAY = """
schema = 1
[overlay]
name = "pair"
protocol = "echo"
[[broker]]
id = "b1"
listen = "127.0.0.1:7001"
[[broker]]
id = "b2"
listen = "127.0.0.1:7002"
[[link]]
between = ["b1", "b2"]
"""


class Echo(Flooding):
    """Serves as the module of a new protocol."""

    name = "echo"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.ROUTERS, "echo", RouterInfo(Echo))


def test_brokers_route_by_it() -> None:
    world = World("echo", [("b1", "b2"), ("b2", "b3")])
    world.subscribe("b3", "desk", "cheap", "price < 10")
    world.settle()
    id = world.publish("b1", "source", {"price": 5})
    world.publish("b1", "source", {"price": 50})
    world.settle()
    assert dict(world.delivered) == {(id, "desk"): 1}
    assert isinstance(world.broker("b1").router, Echo)


def test_an_overlay_file_may_name_it(tmp_path: Path) -> None:
    file = tmp_path / "overlay.toml"
    file.write_text(OVERLAY)
    assert read_config(file).protocol == "echo"


def test_simulations_run_it() -> None:
    scenario = load("line", {"protocols": '["echo"]', "clients.subscriptions_each": "5"})
    summary = simulate(scenario, "echo", lambda *_: None)
    assert summary.protocol == "echo"
    assert summary.owed == summary.delivered > 0
    assert not summary.missed

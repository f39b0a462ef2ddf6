"""Proves that every accepted publication is accounted for in runs in which brokers are killed and links are cut.

A pair of publication and client is delivered once, withdrawn, lost with a broker or dropped by name. There is no grace
period: clients arrive and leave, and publications are accepted at any time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.core.broker import Broker
from broker.core.settings import SECOND
from experiments.scenario.load import load
from experiments.simulate import run as simulate_run
from experiments.simulate.run import simulate
from experiments.simulate.summary import RunSummary
from routing.registry import names

PROTOCOLS = names()

SCENARIO = """
protocols = ["{protocol}"]
seed = {seed}
advertise = "{advertise}"

[overlay]
latency_ms = 20.0
{overlay}

[clients]
{clients}
subscriptions_each = 3

[clients.churn]
per_minute = 60
mean_stay_s = 10

[workload]
kind = "stock-quotes"
symbols = 5
rate = 900
arrivals = "poisson"
duration_s = 40
{faults}
"""

LINE = """
model = "line"
brokers = 5
clusters = {count = 2}
"""
RING = """
model = "ring"
brokers = 8
clusters = {size = 4}
"""
RANDOM = """
model = "random"
brokers = 12
degree = 3
clusters = {size = 6}
"""
FROM_END_TO_END = """
publishers = 2
publishers_at = ["b001"]
subscribers = 4
subscribers_at = ["b005"]
"""
EVERYWHERE = """
publishers = "each"
subscribers = "each"
"""

FROM_ONE_TO_BOTH_ENDS = """
publishers = 2
publishers_at = ["b002"]
subscribers = 4
subscribers_at = ["b001", "b005"]
"""


def fault(kind: str, at_s: int, until_s: int, **subjects: str) -> str:
    named = "\n".join(f"{key} = {value}" for key, value in subjects.items())
    return f'[[fault]]\nkind = "{kind}"\nat_s = {at_s}\nuntil_s = {until_s}\n{named}\n'


FAULTS = {
    "nothing": "",
    "the subscriber's broker is killed": fault("crash", 20, 24, brokers='["b005"]'),
    "the publisher's broker is killed": fault("crash", 20, 24, brokers='["b001"]'),
    "an edge broker is killed": fault("crash", 20, 24, brokers='["b003"]'),
    "a broker on the way is killed": fault("crash", 20, 24, brokers='["b002"]'),
    "a broker is killed twice": fault("crash", 20, 24, brokers='["b002"]') + fault("crash", 30, 33, brokers='["b002"]'),
    "a link is cut": fault("cut", 20, 24, links='[["b002", "b003"]]'),
    "a partition heals": fault("partition", 20, 28, brokers='["b001", "b002"]'),
    "a partition lasts longer than publications are kept": fault("partition", 14, 60, brokers='["b001", "b002"]'),
}
RATES = """
[fault_rates]
crashes_per_minute = 6
cuts_per_minute = 12
"""


def run(
    folder: Path,
    protocol: str,
    overlay: str,
    clients: str,
    faults: str,
    advertise: str = "open",
    seed: int = 1,
) -> RunSummary:
    file = folder / "scenario.toml"
    text = SCENARIO.format(
        protocol=protocol, overlay=overlay, clients=clients, faults=faults, advertise=advertise, seed=seed
    )
    file.write_text(text, encoding="utf-8")
    return simulate(load(file), protocol, lambda *_: None)


def check(summary: RunSummary) -> None:
    assert (summary.missed, summary.duplicated) == (0, 0)
    assert (summary.held, summary.unsettled) == (0, 0)
    assert summary.delivered > summary.unexpected
    accounted_for = summary.withdrawn + summary.lost_with_broker + summary.dropped
    assert summary.delivered - summary.unexpected + accounted_for == summary.expected


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("advertise", ["open", "strict"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_along_a_line_every_publication_is_accounted_for(
    protocol: str, advertise: str, faults: str, tmp_path: Path
) -> None:
    check(run(tmp_path, protocol, LINE, FROM_END_TO_END, FAULTS[faults], advertise))


@pytest.mark.slow
@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("advertise", ["open", "strict"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_around_a_ring_every_publication_is_accounted_for(
    protocol: str, advertise: str, faults: str, tmp_path: Path
) -> None:
    check(run(tmp_path, protocol, RING, FROM_END_TO_END, FAULTS[faults], advertise))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("advertise", ["open", "strict"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_with_faults_at_random_times_every_publication_is_accounted_for(
    protocol: str, advertise: str, seed: int, tmp_path: Path
) -> None:
    check(run(tmp_path, protocol, RANDOM, EVERYWHERE, RATES, advertise, seed))


@pytest.mark.parametrize("protocol", ["fbr", "d-dbr", "merc"])
def test_a_delivery_after_the_apparent_end_of_its_publication_counts(
    protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulate_run, "EVALUATE_AFTER", SECOND)
    monkeypatch.setattr(Broker, "answers_for", lambda *_: False)
    check(run(tmp_path, protocol, LINE, FROM_END_TO_END, FAULTS["a partition heals"], "strict"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_publication_that_only_the_killed_broker_had_for_one_end_is_lost_although_another_broker_has_it_for_the_other(
    protocol: str, tmp_path: Path
) -> None:
    apart = fault("cut", 20, 40, links='[["b001", "b002"], ["b004", "b005"]]')
    summary = run(
        tmp_path, protocol, LINE, FROM_ONE_TO_BOTH_ENDS, apart + fault("crash", 30, 34, brokers='["b002"]'), "strict"
    )
    check(summary)
    assert summary.lost_with_broker > 50

"""The benchmark runs as typed and loses no message. Each reading matches one subscription."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

import matching
from broker.mqtt.bench_workload import expressions, reading
from tests.harness.programs import path_of

ROOT = Path(__file__).resolve().parents[3]


def test_every_reading_matches_one_of_the_subscriptions() -> None:
    index = matching.create("scan")
    for number, (_, expression) in enumerate(expressions(200)):
        index.add(number, matching.parse(expression))
    random = Random(1)
    for number in range(100):
        made = reading(random, number)
        assert len(index.match({**json.loads(made.payload), "room": made.room}).ids) == 1


@pytest.mark.slow
def test_the_benchmark_delivers_every_message() -> None:
    path_of("mosquitto")
    path_of("mosquitto_sub")
    command = [sys.executable, "-m", "mercast", "mqtt-bench", "--messages", "500", "--subscriptions", "50"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False, cwd=ROOT, timeout=200)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["messages"], result["subscriptions"], result["drops"]) == (500, 50, {})
    assert result["ratio"] == pytest.approx(result["through_per_s"] / result["alone_per_s"], rel=0.01)
    assert result["through_per_s"] > 0


def test_a_number_of_subscriptions_that_does_not_fit_is_refused() -> None:
    command = [sys.executable, "-m", "mercast", "mqtt-bench", "--subscriptions", "51"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert "multiple of 50" in done.stderr

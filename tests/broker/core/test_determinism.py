"""One seed, one run: every frame, delivery and record is the same whatever Python's hash seed is."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from experiments.torture.random_scenario import SETTLED, Scenario
from routing.registry import names

ROOT = Path(__file__).resolve().parents[3]


def digest(protocol: str, seed: int, *, is_durable: bool = False, options: dict[str, object] | None = None) -> str:
    """The digest of a run with clients that connect and leave, faults and lost frames."""
    scenario = Scenario(seed, protocol, is_durable=is_durable, loss=0.02, options=options or {})
    for _ in range(5):
        scenario.churn(4)
        scenario.fault()
        scenario.pause()
    scenario.world.run(SETTLED)
    world = scenario.world
    assert world.hops
    assert world.records
    assert world.delivered
    rows = [
        *world.hops,
        *world.delivered.items(),
        *world.got.items(),
        *world.records,
        *world.sent.items(),
        *world.refused,
        *((name, world.broker(name).router.counts()) for name in scenario.brokers()),
    ]
    return hashlib.sha256("\n".join(map(repr, rows)).encode()).hexdigest()


def digests() -> list[str]:
    """The digests of runs on a ring, and on a transit-stub overlay with its clusters."""
    return [
        *(digest(protocol, seed) for protocol in names() for seed in (5, 7)),
        digest("merc", 5, is_durable=True),
        digest("fbr", 7, options={"covering": True}),
    ]


def in_a_process_with(hash_seed: str) -> list[str]:
    program = "from tests.broker.core.test_determinism import digests; print(*digests(), sep='\\n')"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_run_does_not_depend_on_the_hash_seed() -> None:
    one, other = in_a_process_with("1"), in_a_process_with("4242")
    assert one == other
    assert len(one) == 2 * len(names()) + 2


def test_another_seed_is_another_run() -> None:
    assert digest("d-dbr", 5) != digest("d-dbr", 7)

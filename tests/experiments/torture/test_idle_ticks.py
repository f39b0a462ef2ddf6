"""Proves that a world which skips idle ticks has the same outcomes as one that runs every tick: deliveries, drops,
messages, tables, timers and the state of the generator."""

from __future__ import annotations

import pytest

from experiments.torture.run import Plan
from experiments.torture.schedule import FAULTS
from experiments.torture.world import World
from routing.registry import names


def outcome(seed: int, plan: Plan, *, skips: bool) -> tuple[object, ...]:
    scenario = plan.scenario(seed)
    scenario.world.skips_idle_ticks = skips
    scenario.run()
    world = scenario.world
    return (
        world.now,
        dict(world.delivered_in_life),
        world.records,
        world.sent,
        world.hops,
        world.flaps,
        scenario.pairs,
        world.accepted_as,
        world.confirmed_as,
        world.random.getstate(),
        [
            (name, seat.incarnation, seat.timers, seat.store, seat.broker.router.counts(), dict(seat.broker.drops))
            for name, seat in world.seats.items()
            if seat.broker is not None
        ],
    )


def compare(seeds: range) -> None:
    for seed in seeds:
        for plan in (Plan(), Plan(faults=FAULTS)):
            assert outcome(seed, plan, skips=True) == outcome(seed, plan, skips=False), f"{plan} {seed}"


def test_skipped_ticks_change_no_outcome() -> None:
    compare(range(8))


@pytest.mark.slow
def test_skipped_ticks_change_no_outcome_of_many_schedules() -> None:
    compare(range(8, 258))


@pytest.mark.parametrize("protocol", names())
def test_an_idle_world_runs_few_ticks(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = 0
    run_tick = World._tick

    def count_tick(world: World) -> None:
        nonlocal ran
        ran += 1
        run_tick(world)

    monkeypatch.setattr(World, "_tick", count_tick)
    world = World(protocol, [("a", "b"), ("b", "c")], clusters=dict.fromkeys("abc", ("all",)))
    world.subscribe("a", "client", "all", "TRUE")
    world.run(1000 * 10**9)
    assert ran < 3 * 20

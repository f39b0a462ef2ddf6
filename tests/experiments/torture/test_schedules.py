"""Proves that schedules are texts and back, that a failure is shortened and replayed, and that faults take effect."""

from __future__ import annotations

import re

import pytest

from broker.core.retransmission import Retransmission
from broker.core.settings import SECOND
from experiments.errors import ScheduleError
from experiments.torture.minimise import minimise
from experiments.torture.random_scenario import Scenario
from experiments.torture.run import Plan, run_seeds
from experiments.torture.schedule import FAULTS, STEPS, read_steps, steps_of, text_of
from routing.registry import names


def test_a_schedule_has_ten_faults_between_changes_of_clients() -> None:
    steps = steps_of(7, FAULTS, is_open=True)
    assert sum(step.kind in FAULTS for step in steps) == 10
    assert len(steps) == 4 + 10 * (3 * 2 + 2) + 1 + 4 * 2


def test_every_kind_of_fault_is_drawn() -> None:
    assert {step.kind for seed in range(100) for step in steps_of(seed, FAULTS, is_open=False)} == set(STEPS)


def test_the_text_of_a_schedule_gives_the_same_steps() -> None:
    steps = steps_of(3, FAULTS, is_open=True)
    assert read_steps(text_of(steps)) == steps


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("publish.1 crush.2", "step 2, 'crush.2': no step is called 'crush'; there are subscribe"),
        ("publish.x", "step 1, 'publish.x': 'x' is no hexadecimal number"),
        ("publish", "step 1, 'publish': no step is called ''"),
    ],
)
def test_a_step_that_cannot_be_read_is_named(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=re.escape(message)):
        read_steps(text)


def test_minimising_leaves_the_elements_that_fail_together() -> None:
    assert minimise(range(100), lambda rest: {13, 57, 58} <= set(rest), 1000) == (13, 57, 58)
    assert minimise(range(5), lambda _: True, 1000) == ()


def test_minimising_stops_at_the_limit_of_runs() -> None:
    runs: list[int] = []

    def fails(rest: tuple[int, ...]) -> bool:
        runs.append(len(rest))
        return 13 in rest

    assert 13 in minimise(range(100), fails, 5)
    assert len(runs) == 5


def test_a_defect_is_found_shortened_and_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without retransmission, a lost frame is never sent again."""
    monkeypatch.setattr(Retransmission, "_choose", lambda *_: [])
    plan = Plan(protocols=("d-dbr",), loss=0.1)
    failure = next(failure for seed in range(20) for failure in run_seeds(plan, [seed]).failures)
    assert failure.steps < 20
    assert "in custody" in failure.message
    shown = re.search("--steps '(.*)'", failure.replay)
    assert shown is not None
    again = run_seeds(plan, [failure.seed], read_steps(shown[1]))
    assert again.failures == [failure]


def test_a_broker_that_raises_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(Retransmission, "add", fail)
    assert run_seeds(Plan(faults=()), range(1)).failures[0].message == "ZeroDivisionError: a defect"


def scenario(protocol: str, *, is_durable: bool = False) -> Scenario:
    made = Scenario(1, protocol, is_durable=is_durable, has_faults=True, faults=FAULTS)
    made.world.run(5 * SECOND)
    return made


@pytest.mark.parametrize("protocol", names())
def test_a_half_open_link_is_reset_and_stays_down_until_it_is_repaired(protocol: str) -> None:
    run = scenario(protocol)
    before = set(run.world.links)
    run.half_open()
    run.world.run(10 * SECOND)
    assert len(before - set(run.world.links)) == 1
    run.finish()
    assert before == set(run.world.links)


@pytest.mark.parametrize("protocol", names())
def test_a_broker_joins_and_a_broker_leaves(protocol: str) -> None:
    run = scenario(protocol)
    run.join()
    joined = list(run.world.seats)[-1]
    assert joined.startswith("joined")
    run.world.run(5 * SECOND)
    run.leave()
    assert len(run.departed) == 1
    run.finish()


@pytest.mark.parametrize("kept", ["lost", "written"])
def test_a_durable_broker_stops_at_a_failed_commit(kept: str) -> None:
    run = scenario("d-dbr", is_durable=True)
    run.failed_commit()
    (failing,) = [name for name, seat in run.world.seats.items() if seat.failing_commit is not None]
    seat = run.world.seats[failing]
    seat.failing_commit = type(seat.failing_commit)(kept)  # type: ignore[misc]
    run._subscribe(failing, "client", "TRUE")
    run.world.run(SECOND)
    assert seat.broker is None
    assert any(key[0] == "subscription" for key in seat.store) == (kept == "written")
    assert ("client", "n1") not in run.world.confirmed_as
    run.finish()


@pytest.mark.parametrize("is_durable", [False, True], ids=["memory", "durable"])
@pytest.mark.parametrize("protocol", names())
def test_a_client_moves_and_its_subscriptions_with_it(protocol: str, is_durable: bool) -> None:
    run = scenario(protocol, is_durable=is_durable)
    run.subscribe()
    run.world.run(SECOND)
    run.move()
    first, second = run.subscriptions
    assert (first.client, first.expression) == (second.client, second.expression)
    assert first.broker != second.broker
    assert not first.is_live
    run.finish()


def test_narrowed_rights_withdraw_a_confirmed_subscription() -> None:
    run = scenario("merc")
    run.subscribe()
    run.world.run(SECOND)
    run.narrow()
    (entry,) = run.subscriptions
    assert not entry.is_live
    assert run.world.broker(entry.broker).router.counts().local_subscriptions == 0
    run.finish()


def test_the_clock_of_a_broker_is_set_while_it_is_down() -> None:
    changes: set[bool] = set()
    for seed in range(20):
        run = Scenario(seed, "d-dbr", has_faults=True, faults=FAULTS)
        for _ in range(4):
            before = {name: seat.clock for name, seat in run.world.seats.items()}
            run.clock()
            changes |= {
                seat.clock > before[name] for name, seat in run.world.seats.items() if seat.clock != before[name]
            }
        run.finish()
    assert changes == {True, False}, "ahead and back"

"""An error inside the core is counted and reported, and its timers continue: a broker with a defect stays alive."""

from __future__ import annotations

import pytest

from broker.core.broker import REORGANISE, TICK, Broker
from broker.core.effects import Effect, Failed, SetTimer
from broker.core.inputs import Persisted, TimerFired
from broker.core.settings import SECOND, Settings
from routing.d_dbr import DDBR


class Breaking(DDBR):
    """A router with a defect."""

    is_broken = False

    def tick(self) -> None:
        if self.is_broken:
            raise KeyError("b2")
        super().tick()

    def reorganise(self) -> None:
        raise KeyError("b2")


def broken() -> Broker:
    router = Breaking("b1", 1)
    broker = Broker(router, "b1", 1, Settings(reorganise_every=10 * SECOND))
    broker.start(0)
    router.is_broken = True
    return broker


def timers(effects: list[Effect]) -> dict[str, int]:
    return {effect.name: effect.at for effect in effects if isinstance(effect, SetTimer)}


@pytest.mark.parametrize(("timer", "after"), [(TICK, SECOND), (REORGANISE, 10 * SECOND)])
def test_a_timer_is_set_again_although_its_work_failed(timer: str, after: int) -> None:
    broker = broken()
    for count in (1, 2, 3):
        effects = broker.handle(TimerFired(timer), count * after)
        assert timers(effects)[timer] == (count + 1) * after
        (failed,) = [effect for effect in effects if isinstance(effect, Failed)]
        assert failed.input == f"TimerFired: {timer}"
        assert isinstance(failed.error, KeyError)
        assert broker.failures == {"TimerFired": count}


def test_a_failed_input_leaves_nothing_for_the_next_input() -> None:
    broker = broken()
    broker.handle(TimerFired(TICK), SECOND)
    assert broker.handle(Persisted(("nothing",)), SECOND) == []

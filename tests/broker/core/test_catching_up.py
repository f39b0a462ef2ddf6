"""Link states that arrive in a burst are applied once. Decisions made meanwhile already consider them."""

from __future__ import annotations

from broker.core.broker import CATCH_UP, Broker
from broker.core.effects import Effect, SetTimer
from broker.core.inputs import FrameReceived, PeerUp, TimerFired
from broker.core.settings import MILLISECOND, Settings
from routing.messages import LinkState, LinkStates, Neighbour
from routing.registry import create


def state(broker: str, *neighbours: str, sequence: int = 1) -> LinkState:
    return LinkState(broker, 1, sequence, "", tuple(Neighbour(each, 1) for each in neighbours))


def timers(effects: list[Effect]) -> list[SetTimer]:
    return [each for each in effects if isinstance(each, SetTimer) and each.name == CATCH_UP]


def has_pending_link_states(broker: Broker) -> bool:
    return broker.router.drain().has_pending_link_states


def in_a_line() -> Broker:
    """Broker b1 of the line b1-b2-b3-b4."""
    broker = Broker(create("d-dbr", "b1", 1, "auto", ()), "b1", 1, Settings())
    broker.router.load_link_states(
        (state("b1", "b2"), state("b2", "b1", "b3"), state("b3", "b2", "b4"), state("b4", "b3"))
    )
    broker.handle(PeerUp("b2", broker.router.greeting()), 0)
    return broker


def test_a_burst_of_news_sets_one_timer() -> None:
    broker = in_a_line()
    news = [state("b3", "b2", sequence=2), state("b4", sequence=2), state("b3", "b2", "b4", sequence=3)]
    set_by = [timers(broker.handle(FrameReceived("b2", LinkStates((each,))), now)) for now, each in enumerate(news)]
    assert set_by == [[SetTimer(CATCH_UP, 20 * MILLISECOND)], [], []]
    assert has_pending_link_states(broker)
    broker.handle(TimerFired(CATCH_UP), 20 * MILLISECOND)
    assert not has_pending_link_states(broker)
    again = broker.handle(FrameReceived("b2", LinkStates((state("b4", "b3", sequence=3),))), 30 * MILLISECOND)
    assert timers(again) == [SetTimer(CATCH_UP, 50 * MILLISECOND)]


def test_routes_are_those_of_the_newest_news_at_any_time() -> None:
    broker = in_a_line()
    assert broker.router.is_reachable("", "b4")
    broker.handle(FrameReceived("b2", LinkStates((state("b3", "b2", sequence=2),))), 1)
    assert has_pending_link_states(broker)
    assert not broker.router.is_reachable("", "b4")


def test_a_known_link_state_sets_no_timer() -> None:
    broker = in_a_line()
    effects = broker.handle(FrameReceived("b2", LinkStates((state("b3", "b2", "b4"),))), 1)
    assert timers(effects) == []
    assert not has_pending_link_states(broker)

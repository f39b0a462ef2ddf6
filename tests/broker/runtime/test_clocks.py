"""Clocks of different hosts: neighbours measure the difference, show it, and report one that is too large."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from broker.core.settings import SECOND
from broker.runtime.clock_comparison import ClockComparison
from broker.runtime.server import BrokerServer
from broker.runtime.status import as_prometheus
from broker.wire.link_handshake import LinkClock
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until


@pytest.mark.parametrize("ahead", [0, 7 * SECOND, -7 * SECOND])
@pytest.mark.parametrize(("there", "back"), [(5, 5), (0, 40), (40, 0), (0, 0)])
def test_the_offset_is_exact_within_half_the_round_trip(ahead: int, there: int, back: int) -> None:
    here, other = ClockComparison(), ClockComparison()
    now = 1000 * SECOND
    other.receive(here.frame(now), now + there + ahead)
    assert (here.offset, other.offset) == (None, None)
    held = 300
    here.receive(other.frame(now + there + held + ahead), now + there + held + back)
    assert here.offset is not None
    assert here.error == (there + back) // 2
    assert abs(here.offset - ahead) <= here.error + 1
    assert here.exceeds(SECOND) == bool(ahead)


def test_a_frame_that_echoes_a_time_to_come_is_not_used() -> None:
    here = ClockComparison()
    here.receive(LinkClock(sent=10, echoed=500, held=0), 20)
    assert here.offset is None


def offset_s(server: BrokerServer) -> float | None:
    (neighbour,) = server.status().neighbours
    return neighbour.clock_offset_s


@pytest.mark.parametrize("ahead_s", [0, 30, -30])
def test_neighbours_show_the_difference_of_their_clocks_and_report_one_beyond_the_clock_skew(
    tmp_path: Path, ahead_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")], tables={"heartbeat": {"clock_skew": "10s"}})
    real = time.time_ns

    async def test() -> None:
        async with InLoop(file) as overlay:
            await overlay.stop("b2")
            monkeypatch.setattr(time, "time_ns", lambda: real() + ahead_s * SECOND)
            await overlay.start("b2")
            await overlay.linked()
            first, second = overlay["b1"], overlay["b2"]
            await until(lambda: offset_s(first) is not None and offset_s(second) is not None)
            assert offset_s(first) == pytest.approx(ahead_s, abs=10)
            assert offset_s(second) == pytest.approx(-ahead_s, abs=10)
            for server in (first, second):
                assert set(server.violations.counts) == ({"clock_skew"} if ahead_s else set())
            assert 'mercast_link_clock_offset_seconds{broker="b1",neighbour="b2"}' in as_prometheus(first.status())

    run(test)

"""Brokers as real processes: killed and restarted repeatedly under load, and overlays with more than one path."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from broker import connect
from broker.client.client import Client
from broker.client.subscription import Subscription
from routing.messages import PublicationId
from tests.harness.broker_processes import OverlayFileMaker, Processes, run
from tests.harness.conditions import until

pytestmark = pytest.mark.slow

LINE = (("b1", "b2"), ("b2", "b3"), ("b3", "b4"))
TWO_CLUSTERS = {"b1": ("x",), "b2": ("x", "y"), "b3": ("y",), "b4": ("y",)}
RING = (("b1", "b2"), ("b2", "b3"), ("b3", "b1"))
RING_OF_CLUSTERS = {"b1": ("x", "y"), "b2": ("y", "z"), "b3": ("z", "x")}
PUBLISHED_A_SECOND = 300
PUBLISHED_FOR_S = 12.0
KILLED_AT_S = (2.0, 5.0, 8.0)
DOWN_FOR_S = 1.0
SETTLED_WITHIN_S = 20.0
MORE_THAN_A_WINDOW = 5_000
ACCEPTED_WITHIN_S = 25.0

Answer = asyncio.Future[PublicationId | None]


@asynccontextmanager
async def counting_deliveries(stream: Subscription) -> AsyncIterator[Counter[int]]:
    """Counts how often each number is delivered, while the block runs."""
    counts: Counter[int] = Counter()

    async def count() -> None:
        while publications := await stream.receive_batch():
            counts.update(int(str(each["n"])) for each in publications)

    counting = asyncio.create_task(count())
    try:
        yield counts
    finally:
        counting.cancel()
        with suppress(asyncio.CancelledError):
            await counting


async def publish_steadily(publisher: Client) -> set[int]:
    """Publishes numbers at a constant rate. Returns those that were accepted."""
    started = time.monotonic()
    answers: list[Answer] = []
    while (elapsed := time.monotonic() - started) < PUBLISHED_FOR_S:
        while len(answers) < elapsed * PUBLISHED_A_SECOND:
            answers.append(await publisher.publish_soon({"n": len(answers)}))
        # Between two bursts of the rate.
        await asyncio.sleep(0.005)
    await publisher.flush()
    outcomes = await asyncio.gather(*answers, return_exceptions=True)
    return {n for n, outcome in enumerate(outcomes) if not isinstance(outcome, BaseException)}


async def kill_repeatedly(processes: Processes, victim: str) -> Counter[str]:
    """Kills and restarts the broker at KILLED_AT_S. Returns its drops before each kill, by reason."""
    drops: Counter[str] = Counter()
    started = time.monotonic()
    for at in KILLED_AT_S:
        await asyncio.sleep(started + at - time.monotonic())
        drops.update((await asyncio.to_thread(processes.status, victim))["drops"])
        processes.kill(victim)
        await asyncio.sleep(DOWN_FOR_S)
        await asyncio.to_thread(processes.restart, victim)
    return drops


async def all_delivered(processes: Processes, wanted: int, *arrivals: Counter[int]) -> None:
    """Waits until every counter has `wanted` numbers and all publications are settled, so that no duplicate follows."""
    # The test names the numbers that are missing.
    with suppress(AssertionError):
        await until(lambda: all(len(counts) >= wanted for counts in arrivals), SETTLED_WITHIN_S)
    await asyncio.to_thread(processes.settled)


@pytest.mark.parametrize(
    ("protocol", "clusters", "victim"),
    [("d-dbr", None, "b4"), ("merc", TWO_CLUSTERS, "b2")],
    ids=["d-dbr, the subscriber's broker", "merc, the edge broker"],
)
def test_all_accepted_publications_are_delivered_once_while_a_durable_broker_is_killed_three_times(
    tmp_path: Path, protocol: str, clusters: Mapping[str, tuple[str, ...]] | None, victim: str
) -> None:
    file = OverlayFileMaker(
        tmp_path,
        TWO_CLUSTERS,
        LINE,
        clusters=clusters,
        overlay={"protocol": protocol},
        tables={"store": {"data_dir": "data", "fsync": "checkpoint"}},
    )
    with Processes(file) as processes:
        processes.linked()

        async def test() -> None:
            async with (
                connect(file.url("b1"), name="source", durable=True) as publisher,
                connect(file.url("b4"), name="desk", durable=True) as desk,
                desk.subscribe("n >= 0", name="all") as stream,
                counting_deliveries(stream) as counts,
            ):
                processes.linked()
                accepted, drops = await asyncio.gather(publish_steadily(publisher), kill_repeatedly(processes, victim))
                await all_delivered(processes, len(accepted), counts)
                for id in file.ids:
                    drops.update((await asyncio.to_thread(processes.status, id))["drops"])
                lost = sorted(accepted - counts.keys())
                twice = [n for n, times in counts.items() if times > 1]
                assert not lost, f"{len(lost)} of {len(accepted)} lost, {ranges(lost)}; drops {dict(drops)}"
                assert not twice, f"{len(twice)} of {len(accepted)} came more than once"
                assert counts.keys() == accepted
                assert not drops

        run(test)


def ranges(numbers: list[int]) -> str:
    """Sorted numbers as text, with consecutive ones as a range: 1-3, 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


@pytest.mark.parametrize(
    ("protocol", "clusters"), [("merc", RING_OF_CLUSTERS), ("flooding", None)], ids=["merc", "flooding"]
)
def test_in_a_ring_more_than_a_window_is_accepted_delivered_once_and_settled(
    tmp_path: Path, protocol: str, clusters: Mapping[str, tuple[str, ...]] | None
) -> None:
    file = OverlayFileMaker(
        tmp_path,
        RING_OF_CLUSTERS,
        RING,
        clusters=clusters,
        overlay={"protocol": protocol},
        # Large enough that no busy broker is declared dead and no subscriber is too slow.
        tables={"heartbeat": {"dead_after": "5s"}, "delivery": {"outbox": 10 * MORE_THAN_A_WINDOW}},
    )
    count = MORE_THAN_A_WINDOW * len(file.ids)
    with Processes(file) as processes:
        processes.linked()

        async def test() -> None:
            async with AsyncExitStack() as stack:
                publishers, arrivals = [], []
                for id in file.ids:
                    publishers.append(await stack.enter_async_context(connect(file.url(id))))
                    reader = await stack.enter_async_context(connect(file.url(id)))
                    stream = await stack.enter_async_context(reader.subscribe("TRUE"))
                    arrivals.append(await stack.enter_async_context(counting_deliveries(stream)))
                processes.linked()
                answers: list[Answer] = []

                async def publish(publisher: Client, first: int) -> None:
                    for n in range(first, first + MORE_THAN_A_WINDOW):
                        answers.append(await publisher.publish_soon({"n": n}))
                    await publisher.flush()

                publishing = [
                    asyncio.create_task(publish(each, index * MORE_THAN_A_WINDOW))
                    for index, each in enumerate(publishers)
                ]
                done, late = await asyncio.wait(publishing, timeout=ACCEPTED_WITHIN_S)
                for task in late:
                    task.cancel()
                states = [await asyncio.to_thread(processes.status, id) for id in file.ids]
                accepted = sum(1 for each in answers if each.done() and each.exception() is None)
                assert accepted == count, f"{accepted} of {count} accepted; {[state['queues'] for state in states]}"
                for task in done:
                    task.result()
                await all_delivered(processes, count, *arrivals)
                assert [len(counts) for counts in arrivals] == [count] * len(arrivals)
                assert [counts.total() for counts in arrivals] == [count] * len(arrivals), "each arrived once"
                states = [await asyncio.to_thread(processes.status, id) for id in file.ids]
                # Frames dropped from a full link queue were retransmitted.
                assert {reason for state in states for reason in state["drops"]} <= {"queue full"}

        run(test)

"""`mercast bench`: publishers and subscribers in one process, against a running broker or overlay."""

from __future__ import annotations

import asyncio
import gc
import time
from array import array
from contextlib import AsyncExitStack
from dataclasses import dataclass

from broker.client.cli.bench_workload import MARK, BenchWorkload
from broker.client.cli.connection_log import log_to_stderr
from broker.client.client import Client, connect
from broker.client.credentials import environment_credentials
from broker.client.errors import ClientError, RefusedError, TimeoutExpiredError
from broker.client.subscription import Subscription
from broker.percentile import percentile
from broker.progress import ShowProgress
from routing.messages import PublicationId

PROBE = "bench_probe"
SETUP_WITHIN_S = 60.0
SETTLED_AFTER_S = 1.0
"""At the end: without a delivery for this time, the run stops waiting for missing deliveries."""


@dataclass(frozen=True, slots=True)
class BenchOptions:
    server: str
    subscriber_server: str
    publishers: int = 1
    subscribers: int = 10
    subscriptions: int = 10_000
    matching: float = 0.001
    size: int = 200
    rate: float = 0.0
    """Publications a second of all publishers together. 0: as many as the broker accepts."""
    duration_s: float = 10.0
    warm_up_s: float = 2.0
    mode: str = "at-least-once"
    window: int = 2048
    seed: int = 0


@dataclass(frozen=True, slots=True)
class BenchResult:
    options: BenchOptions
    setup_s: float
    """Until all subscriptions were accepted and routed."""
    accepting_s: float
    """Of that, until the subscribers' broker had accepted all subscriptions."""
    measured_s: float
    published: int
    """In the measured time. Deliveries and latencies are also of the measured time."""
    delivered: int
    refused: int
    expected_in_all: int
    """Deliveries owed in the whole run; `delivered_in_all` counts those that arrived."""
    delivered_in_all: int
    repeated: int
    latency_ms_mean: float
    latency_ms_p50: float
    latency_ms_p90: float
    latency_ms_p99: float
    latency_ms_p999: float
    latency_ms_max: float
    client_cpu_share: float
    """The share of one core that this process used in the measured time."""

    @property
    def published_per_s(self) -> float:
        return self.published / self.measured_s

    @property
    def delivered_per_s(self) -> float:
        return self.delivered / self.measured_s

    @property
    def missing(self) -> int:
        return self.expected_in_all - self.delivered_in_all


class _Listener:
    """One subscriber. Counts its deliveries, and records the latencies of the measured time."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self.delivered = 0
        self.measured = 0
        self.latencies: array[int] = array("q")
        self.begin = self.end = 1 << 63
        self.probes: set[int] = set()
        self.last_received = time.monotonic()

    async def listen(self) -> None:
        unpack = MARK.unpack_from
        while publications := await self._subscription.receive_batch():
            now = time.monotonic_ns()
            self.last_received = now / 1e9
            is_measured = self.begin <= now < self.end
            for publication in publications:
                number, due = unpack(publication.payload)
                if not due:
                    self.probes.add(number)
                    continue
                self.delivered += 1
                if is_measured:
                    self.measured += 1
                    self.latencies.append(now - due)


class Bench:
    def __init__(self, options: BenchOptions, progress: ShowProgress) -> None:
        self._options = options
        self._progress = progress
        self._workload = BenchWorkload(
            subscriptions=options.subscriptions,
            clients=options.subscribers,
            matching=options.matching,
            size=options.size,
            seed=options.seed,
        )
        self._listeners: list[_Listener] = []
        self._published = 0
        self._expected = 0
        self._stopped = False

    async def run(self) -> BenchResult:
        async with AsyncExitStack() as stack:
            started = time.monotonic()
            self._progress("connecting and subscribing", 0, 1)
            publishers = [
                await stack.enter_async_context(self._client(self._options.server))
                for _ in range(self._options.publishers)
            ]
            subscribers = await self._subscribers(stack)
            accepted = time.monotonic()
            listening = [asyncio.create_task(listener.listen()) for listener in self._listeners]
            try:
                await self._wait_for_routes(publishers)
                ready = time.monotonic()
                result = await self._measure(publishers, subscribers, ready - started, accepted - started)
            finally:
                for task in listening:
                    task.cancel()
            return result

    def _client(self, server: str) -> Client:
        return connect(
            server,
            mode=self._options.mode,
            window=self._options.window,
            timeout=SETUP_WITHIN_S,
            **environment_credentials(),
        )

    async def _subscribers(self, stack: AsyncExitStack) -> list[Client]:
        clients: list[Client] = []
        subscriptions: list[Subscription] = []
        for expressions in self._workload.subscriptions:
            client = await stack.enter_async_context(self._client(self._options.subscriber_server))
            clients.append(client)
            # Entered last: when its probes arrive, the other subscriptions are routed too.
            subscriptions.append(client.subscribe({**expressions, PROBE: f"{PROBE} = TRUE"}))
        # Not as contexts: these would send ten thousand withdrawals after the measurement. The goodbye withdraws all.
        await asyncio.gather(*(subscription.__aenter__() for subscription in subscriptions))
        self._listeners = [_Listener(subscription) for subscription in subscriptions]
        return clients

    async def _wait_for_routes(self, publishers: list[Client]) -> None:
        """Sends probes until each subscriber has received one from each publisher."""
        end = time.monotonic() + SETUP_WITHIN_S
        wanted = set(range(len(publishers)))
        while any(listener.probes != wanted for listener in self._listeners):
            if time.monotonic() > end:
                reached = sum(listener.probes == wanted for listener in self._listeners)
                raise TimeoutExpiredError(
                    f"after {SETUP_WITHIN_S:g} s publications reach {reached} of {len(self._listeners)} subscribers"
                )
            for number, publisher in enumerate(publishers):
                await publisher.publish({PROBE: True}, MARK.pack(number, 0))
            await asyncio.sleep(0.05)

    async def _measure(
        self, publishers: list[Client], subscribers: list[Client], setup_s: float, accepting_s: float
    ) -> BenchResult:
        options = self._options
        # The objects so far are permanent. Without freezing, the garbage collector would scan them while measuring.
        gc.collect()
        gc.freeze()
        publishing = [asyncio.create_task(self._publish(publisher)) for publisher in publishers]
        try:
            await self._show("warming up", options.warm_up_s, publishing)
            first, begin, cpu = self._published, time.monotonic_ns(), time.process_time()
            for listener in self._listeners:
                listener.begin = begin
            await self._show("measuring", options.duration_s, publishing)
            last, end, cpu = self._published, time.monotonic_ns(), time.process_time() - cpu
            for listener in self._listeners:
                listener.end = end
            self._stopped = True
            await asyncio.gather(*publishing)
        finally:
            # After an interruption: a client that closes waits for answers, so publishing must end first.
            for task in publishing:
                task.cancel()
            await asyncio.gather(*publishing, return_exceptions=True)
        await self._settle()
        latencies = sorted(latency for listener in self._listeners for latency in listener.latencies)
        measured_s = (end - begin) / 1e9
        return BenchResult(
            options=options,
            setup_s=setup_s,
            accepting_s=accepting_s,
            measured_s=measured_s,
            published=last - first,
            delivered=sum(listener.measured for listener in self._listeners),
            refused=sum(sum(publisher.refusals.values()) for publisher in publishers),
            expected_in_all=self._expected,
            delivered_in_all=sum(listener.delivered for listener in self._listeners),
            repeated=sum(subscriber.repeated for subscriber in subscribers),
            latency_ms_mean=sum(latencies) / max(1, len(latencies)) / 1e6,
            latency_ms_p50=percentile(latencies, 0.5) / 1e6,
            latency_ms_p90=percentile(latencies, 0.9) / 1e6,
            latency_ms_p99=percentile(latencies, 0.99) / 1e6,
            latency_ms_p999=percentile(latencies, 0.999) / 1e6,
            latency_ms_max=percentile(latencies, 1.0) / 1e6,
            client_cpu_share=cpu / measured_s,
        )

    async def _show(self, what: str, seconds: float, publishing: list[asyncio.Task[None]]) -> None:
        """Waits, and shows the progress. Raises the error of a publisher that failed."""
        start = time.monotonic()
        while (passed := time.monotonic() - start) < seconds:
            self._progress(what, round(100 * passed), round(100 * seconds))
            await asyncio.sleep(min(0.25, seconds - passed))
            for task in publishing:
                if task.done():
                    task.result()

    async def _settle(self) -> None:
        """Waits until all owed deliveries have arrived, or none arrives for `SETTLED_AFTER_S`."""
        self._progress("waiting for the last deliveries", 0, 1)
        started = time.monotonic()
        while sum(listener.delivered for listener in self._listeners) < self._expected:
            last = max([started, *(listener.last_received for listener in self._listeners)])
            if time.monotonic() - last > SETTLED_AFTER_S:
                return
            await asyncio.sleep(0.02)

    async def _publish(self, publisher: Client) -> None:
        rate = self._options.rate / self._options.publishers
        step = self._publish_at_rate(publisher, rate) if rate else self._publish_unpaced(publisher)
        await step
        try:
            await publisher.flush()
        except RefusedError:
            # The client counts refusals.
            return

    async def _publish_unpaced(self, publisher: Client) -> None:
        quotes = self._workload.quotes
        while not self._stopped:
            for _ in range(32):
                quote = quotes[self._published % len(quotes)]
                payload = MARK.pack(self._published, time.monotonic_ns()) + quote.padding
                self._published += 1
                self._expected += quote.clients
                answer = await publisher.publish_packed(quote.attributes, payload)
                answer.add_done_callback(_retrieve_error)
            await asyncio.sleep(0)

    async def _publish_at_rate(self, publisher: Client, rate: float) -> None:
        """Publishes at a rate. Latencies start at the scheduled time, so that a late publication shows its delay."""
        quotes = self._workload.quotes
        start = time.monotonic_ns()
        sent = 0
        while not self._stopped:
            due_by_now = int((time.monotonic_ns() - start) * rate / 1e9)
            while sent < due_by_now:
                due = start + int(sent * 1e9 / rate)
                quote = quotes[self._published % len(quotes)]
                payload = MARK.pack(self._published, due) + quote.padding
                sent += 1
                self._published += 1
                self._expected += quote.clients
                answer = await publisher.publish_packed(quote.attributes, payload)
                answer.add_done_callback(_retrieve_error)
            await asyncio.sleep(max(0.0, (start + (sent + 1) * 1e9 / rate - time.monotonic_ns()) / 1e9))


def _retrieve_error(answer: asyncio.Future[PublicationId | None]) -> None:
    """Retrieves a refusal, or the loop logs it. The client counts refusals."""
    if not answer.cancelled():
        answer.exception()


def check(options: BenchOptions) -> None:
    for name, value in (
        ("publishers", options.publishers),
        ("subscribers", options.subscribers),
        ("subscriptions", options.subscriptions),
    ):
        if value < 1:
            raise ClientError(f"--{name} is {value}; there must be one at least")
    if options.duration_s <= 0:
        raise ClientError("--duration is 0s; nothing can be measured in no time")
    if not 0 < options.matching <= 0.5:
        raise ClientError(f"--matching is {options.matching}; it must be above 0 and at most 0.5")


def run_bench(options: BenchOptions, progress: ShowProgress) -> BenchResult:
    check(options)
    log_to_stderr()
    return asyncio.run(Bench(options, progress).run())

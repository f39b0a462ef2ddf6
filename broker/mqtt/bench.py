"""Measures the throughput of a gateway, and compares it with aiomqtt's own rate of publishing.

One run has three parts. First aiomqtt publishes to mosquitto without a subscriber. Then the same messages pass
mosquitto, the gateway and one broker with content subscriptions, and return through mosquitto to a subscriber that
counts them. Last, aiomqtt publishes alone again. The rate alone is the mean of both.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import tomli_w

from broker.mqtt.bench_workload import ROOMS, expressions
from broker.progress import ShowProgress

WITHIN_S = 120.0


class BenchError(Exception):
    exit_code = 1


class MissingProgramError(Exception):
    exit_code = 4


@dataclass(frozen=True, slots=True)
class BenchResult:
    messages: int
    subscriptions: int
    qos: int
    alone_per_s: float
    """aiomqtt's own rate: published to mosquitto and acknowledged."""
    through_per_s: float
    """Published, received by the gateway, matched, delivered, and received by the subscriber."""
    ratio: float
    alone_cpu_us: float
    """Processor time of the publisher for each message. More reliable than rates on a shared machine."""
    through_cpu_us: float | None
    """The same of the broker with its gateway. None if the system does not report it."""
    subscribing_s: float
    """Until all content subscriptions were entered."""
    drops: dict[str, int]


def run_bench(messages: int, subscriptions: int, qos: int, show: ShowProgress) -> BenchResult:
    if subscriptions % ROOMS:
        raise BenchError(f"the number of subscriptions must be a multiple of {ROOMS}, not {subscriptions}")
    with TemporaryDirectory(prefix="mercast-bench-") as folder, _mosquitto(Path(folder)) as port:
        show("aiomqtt alone", 0, 3)
        before = _publish(port, messages, qos)
        show("through the gateway", 1, 3)
        with _broker(Path(folder), port) as (process, status):
            start = time.perf_counter()
            _subscribe(port, subscriptions)
            _wait(lambda: status()["is_synchronised"] is True and status()["names"] == subscriptions, "subscriptions")
            subscribing_s = time.perf_counter() - start
            cpu_before = _cpu_s(process)
            through_s = _measure_through(port, messages, qos)
            through_cpu_s = _cpu_s(process) - cpu_before
            drops = status()["drops"]
            assert isinstance(drops, dict)
        show("aiomqtt alone", 2, 3)
        after = _publish(port, messages, qos)
        show("done", 3, 3)
    alone_per_s = 2 * messages / (before.seconds + after.seconds)
    through_per_s = messages / through_s
    return BenchResult(
        messages=messages,
        subscriptions=subscriptions,
        qos=qos,
        alone_per_s=round(alone_per_s, 1),
        through_per_s=round(through_per_s, 1),
        ratio=round(through_per_s / alone_per_s, 3),
        alone_cpu_us=round(5e5 * (before.cpu_seconds + after.cpu_seconds) / messages, 1),
        through_cpu_us=round(1e6 * through_cpu_s / messages, 1) if through_cpu_s else None,
        subscribing_s=round(subscribing_s, 2),
        drops=drops,
    )


def _program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")
    if found is None:
        raise MissingProgramError(f"{name} is missing; Debian, Ubuntu: apt-get install mosquitto mosquitto-clients")
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait(is_true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WITHIN_S
    while not is_true():
        if time.monotonic() > end:
            raise BenchError(f"{what} took more than {WITHIN_S:g} s")
        time.sleep(0.05)


@contextmanager
def _process(command: list[str], log: Path, *, reads: bool = False) -> Iterator[subprocess.Popen[str]]:
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE if reads else subprocess.DEVNULL, stderr=errors, text=True
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def _mosquitto(folder: Path) -> Iterator[int]:
    port = _free_port()
    configuration = folder / "mosquitto.conf"
    configuration.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nmax_queued_messages 0\n"
        "max_inflight_messages 0\nset_tcp_nodelay true\n"
    )
    with _process([_program("mosquitto"), "-c", str(configuration)], folder / "mosquitto.log"):
        _wait(lambda: _listens(port), "the start of mosquitto")
        yield port


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


@contextmanager
def _broker(folder: Path, mqtt_port: int) -> Iterator[tuple[int, Callable[[], dict[str, object]]]]:
    """Yields the process id, and a function that returns the gateway's status."""
    overlay = folder / "overlay.toml"
    document = {
        "schema": 1,
        "overlay": {"name": "bench"},
        "mqtt": {"topics": ["devices/{room}/{sensor}"]},
        "broker": [{"id": "b1", "listen": "127.0.0.1:0", "mqtt": f"127.0.0.1:{mqtt_port}"}],
    }
    overlay.write_text(tomli_w.dumps(document), encoding="utf-8")
    command = [sys.executable, "-m", "mercast", "broker", str(overlay), "--id", "b1", "--log", "warning"]
    log = folder / "broker.log"
    with _process(command, log, reads=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise BenchError(f"the broker did not start: {log.read_text().strip()}")
        admin = json.loads(line)["admin"]

        def status() -> dict[str, object]:
            with urllib.request.urlopen(f"http://{admin}/status", timeout=WITHIN_S) as answer:
                of_gateway: dict[str, object] = json.load(answer)["parts"]["mqtt"]
                return of_gateway

        yield process.pid, status


def _cpu_s(process: int) -> float:
    """Returns the processor time of the process so far. 0 if the system does not report it."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return 0.0
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Published:
    seconds: float
    cpu_seconds: float


def _publish(port: int, messages: int, qos: int) -> Published:
    command = [sys.executable, "-m", "broker.mqtt.bench_publisher", str(port), str(messages), str(qos)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * WITHIN_S, check=False)
    if done.returncode:
        raise BenchError(f"the publisher failed: {done.stderr.strip()[-500:]}")
    return Published(**json.loads(done.stdout))


def _subscribe(port: int, subscriptions: int) -> None:
    """Publishes the expressions one by one and retained, as MQTT clients do."""
    import asyncio

    import aiomqtt

    async def subscribe() -> None:
        async with aiomqtt.Client("127.0.0.1", port) as client:
            for name, expression in expressions(subscriptions):
                await client.publish(f"mercast/subscribe/{name}", expression, retain=True)

    asyncio.run(subscribe())


def _measure_through(port: int, messages: int, qos: int) -> float:
    """Returns the seconds from the first publication until the subscriber has all deliveries."""
    command = [_program("mosquitto_sub"), "-p", str(port), "-t", "mercast/deliver/#", "-q", "1", "-C", str(messages)]
    command += ["-F", ".", "-i", "mercast-bench-counter", "-c"]
    # A first connection that ends at once creates the session, so that no message is missed.
    subprocess.run([*command, "-E"], check=True, timeout=WITHIN_S, stdout=subprocess.DEVNULL)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as counter:
        start = time.perf_counter()
        publishing_s = _publish(port, messages, qos).seconds
        # The measured time excludes the start of the publisher's process.
        starting_s = time.perf_counter() - start - publishing_s
        try:
            if counter.wait(WITHIN_S):
                raise BenchError(f"mosquitto_sub ended with {counter.returncode}")
        except subprocess.TimeoutExpired:
            counter.kill()
            raise BenchError(f"not all of {messages:,} messages were delivered within {WITHIN_S:g} s") from None
        return time.perf_counter() - start - starting_s

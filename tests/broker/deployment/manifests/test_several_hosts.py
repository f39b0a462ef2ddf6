"""An overlay across several hosts, simulated by network namespaces. Cables are cut and healed under load, and every
owed delivery happens exactly once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.harness.conditions import wait_until
from tests.harness.hosts import Hosts, need_namespaces

ROOT = Path(__file__).resolve().parents[4]
MERCAST = (sys.executable, "-m", "mercast")
COUNT = 500
WITHIN_S = 60.0

PUBLISHER = """
import asyncio, sys
from broker import connect
async def main():
    async with connect(sys.argv[1]) as client:
        for n in range(int(sys.argv[2])):
            await client.publish({"n": n, "kind": "reading"}, b"x" * 100)
            # A rate that lasts longer than the faults.
            await asyncio.sleep(0.008)
            if n % 100 == 0:
                print(n)
asyncio.run(main())
print("done")
"""
SUBSCRIBER = """
import asyncio, sys
from broker import connect
async def main():
    async with connect(sys.argv[1]) as client, client.subscribe("kind = 'reading'") as readings:
        print("subscribed")
        async for publication in readings:
            print(publication["n"])
asyncio.run(main())
"""


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    need_namespaces()
    with Hosts(3) as made:
        yield made


def start_overlay(hosts: Hosts, folder: Path, links: list[tuple[int, int]]) -> None:
    lines = ["schema = 1", "[overlay]", 'name = "hosts"', 'protocol = "d-dbr"']
    lines += ["[heartbeat]", 'every = "200ms"', 'dead_after = "1s"', 'redial_at_most = "500ms"']
    lines += ["[store]", 'data_dir = "data"', 'fsync = "checkpoint"']
    for host in (1, 2, 3):
        lines += ["[[broker]]", f'id = "b{host}"', f'listen = "{hosts.address(host)}:7001"', 'admin = "127.0.0.1:7101"']
    for one, other in links:
        lines += ["[[link]]", f'between = ["b{one}", "b{other}"]']
    path = folder / "overlay.toml"
    path.write_text("\n".join(lines) + "\n")
    for host in (1, 2, 3):
        command = [*MERCAST, "broker", str(path), "--id", f"b{host}", "--insecure"]
        with (folder / f"b{host}.log").open("wb") as log:
            broker = hosts.start(host, command, stdout=subprocess.PIPE, stderr=log)
        assert broker.stdout is not None
        assert json.loads(broker.stdout.readline())["broker"] == f"b{host}", (folder / f"b{host}.log").read_text()
    for host in (1, 2, 3):
        wait_for_links(hosts, host)


def status(hosts: Hosts, host: int) -> dict[str, Any]:
    script = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:7101/status').read().decode())"
    process = hosts.start(host, [sys.executable, "-c", script], stdout=subprocess.PIPE)
    text, _ = process.communicate(timeout=WITHIN_S)
    answer: dict[str, Any] = json.loads(text)
    return answer


def wait_for_links(hosts: Hosts, host: int) -> None:
    wait_until(
        lambda: all(each["is_up"] for each in status(hosts, host)["neighbours"]),
        WITHIN_S,
        f"b{host} has all its links",
    )


def start_client(hosts: Hosts, host: int, script: str, *words: str) -> subprocess.Popen[str]:
    server = f"mercast://{hosts.address(host)}:7001"
    command = [sys.executable, "-c", script, server, *words]
    return hosts.start(host, command, stdout=subprocess.PIPE, cwd=ROOT)


def read_until(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == word:
            return
    raise AssertionError(f"the process ended with {process.wait()} before it said {word!r}")


def numbers(subscriber: subprocess.Popen[str], count: int) -> list[int]:
    """The first `count` distinct numbers that the subscriber prints, and all that follow within a second."""
    import threading

    assert subscriber.stdout is not None
    received: list[int] = []
    stream = subscriber.stdout
    reader = threading.Thread(target=lambda: received.extend(int(line) for line in stream))
    reader.start()
    # The test compares all numbers.
    with suppress(AssertionError):
        wait_until(lambda: len(set(received)) >= count, WITHIN_S)
    # Time for duplicates.
    time.sleep(1.0)
    subscriber.kill()
    reader.join()
    return received


@pytest.mark.slow
def test_a_cable_is_cut_and_healed_under_load_and_publications_use_another_path(hosts: Hosts, tmp_path: Path) -> None:
    start_overlay(hosts, tmp_path, [(1, 2), (2, 3), (1, 3)])
    subscriber = start_client(hosts, 3, SUBSCRIBER)
    read_until(subscriber, "subscribed")
    wait_for_remote(hosts, 1)
    publisher = start_client(hosts, 1, PUBLISHER, str(COUNT))
    read_until(publisher, "100")
    hosts.cut(1, 3)
    read_until(publisher, "300")
    hosts.heal(1, 3)
    read_until(publisher, "done")
    received = numbers(subscriber, COUNT)
    assert sorted(received) == list(range(COUNT))
    wait_for_links(hosts, 1)


@pytest.mark.slow
def test_publications_arrive_after_the_only_cable_was_cut_and_healed(hosts: Hosts, tmp_path: Path) -> None:
    start_overlay(hosts, tmp_path, [(1, 2), (2, 3)])
    subscriber = start_client(hosts, 3, SUBSCRIBER)
    read_until(subscriber, "subscribed")
    wait_for_remote(hosts, 1)
    publisher = start_client(hosts, 1, PUBLISHER, str(COUNT))
    read_until(publisher, "100")
    hosts.cut(2, 3)
    read_until(publisher, "done")
    hosts.heal(2, 3)
    received = numbers(subscriber, COUNT)
    assert sorted(received) == list(range(COUNT))


def wait_for_remote(hosts: Hosts, host: int) -> None:
    wait_until(
        lambda: bool(status(hosts, host)["tables"]["remote_subscriptions"] == 1),
        WITHIN_S,
        f"b{host} knows of the subscription",
    )

"""Brokers as real processes: kill, restart, join, leave, start, and refusals."""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest

from broker import connect
from broker.client.client import Client
from broker.client.subscription import Subscription
from broker.runtime.store_format import FILE
from tests.harness.broker_processes import OverlayFileMaker, Processes, run, status_at
from tests.harness.conditions import wait_until
from tests.harness.mercast_broker import ROOT

RING = [("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b1", "b4")]
STORE = {"store": {"data_dir": "data", "fsync": "checkpoint"}}


def mercast(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mercast", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def values(publications: Iterable[object]) -> list[int]:
    return [int(each["n"]) for each in publications]  # type: ignore[index]


async def collect(stream: Subscription, count: int, within_s: float = 90.0) -> list[int]:
    async with asyncio.timeout(within_s):
        return [int((await anext(stream))["n"]) for _ in range(count)]


def test_after_sigkill_the_others_reroute_and_a_restart_rejoins(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2", "b3", "b4"], RING)
    with Processes(file) as processes:
        processes.linked()

        async def test() -> None:
            async with (
                connect(file.url("b1")) as publisher,
                connect(file.url("b3")) as reader,
                reader.subscribe("n >= 0") as stream,
            ):
                processes.linked()
                for n in range(10):
                    await publisher.publish({"n": n})
                assert await collect(stream, 10) == list(range(10))
                processes.kill("b2")
                for n in range(10, 60):
                    await publisher.publish({"n": n})
                assert sorted(await collect(stream, 50)) == list(range(10, 60))
                processes.restart("b2")
                processes.linked()
                async with connect(file.url("b2")) as back, back.subscribe("n >= 0") as news:
                    processes.linked()
                    await publisher.publish({"n": 60})
                    assert await collect(news, 1) == [60]
                    assert await collect(stream, 1) == [60]

        run(test)


def test_durable_brokers_lose_nothing_when_the_subscribers_broker_is_killed(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")], tables=STORE)
    with Processes(file) as processes:
        processes.linked()

        async def test() -> None:
            async with (
                connect(file.url("b1")) as publisher,
                connect(file.url("b2"), name="desk", durable=True) as desk,
                desk.subscribe("n >= 0", name="all") as stream,
            ):
                processes.linked()
                for n in range(40):
                    await publisher.publish({"n": n})
                    if n == 20:
                        processes.kill("b2")
                processes.restart("b2")
                assert sorted(await collect(stream, 40, 60)) == list(range(40))
                await asyncio.to_thread(processes.settled)
                assert not len(stream)

        run(test)


def test_a_killed_publishers_broker_delivers_its_accepted_publications(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")], tables=STORE)
    with Processes(file) as processes:
        processes.linked()

        async def test() -> None:
            async with (
                connect(file.url("b1"), name="source", durable=True) as publisher,
                connect(file.url("b2")) as reader,
                reader.subscribe("n >= 0") as stream,
            ):
                processes.linked()
                answers = []
                for n in range(200):
                    answers.append(await publisher.publish_soon({"n": n}))
                    if n == 100:
                        await answers[50]
                        processes.kill("b1")
                        processes.restart("b1")
                await publisher.flush()
                ids = Counter([str(await answer) for answer in answers])
                assert max(ids.values()) == 1 or set(ids) >= {"None"}
                assert sorted(await collect(stream, 200, 60)) == list(range(200))
                await asyncio.to_thread(processes.settled)
                assert not len(stream)

        run(test)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no limits for another process here")
def test_a_broker_whose_store_fails_stops_and_its_lost_publications_are_sent_again_and_delivered_once(
    tmp_path: Path,
) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], tables=STORE)
    path = tmp_path / "data" / "b1" / FILE
    with Processes(file) as processes:
        assert processes.terminate("b1") == 0
        with closing(sqlite3.connect(path)) as database:
            # Makes the write of a large record slow, so that other records become pending meanwhile.
            database.execute(
                "CREATE TRIGGER slow BEFORE INSERT ON records WHEN length(NEW.value) > 300000 BEGIN"
                " WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000000)"
                " SELECT count(*) FROM c; END"
            )
        processes.restart("b1")

        async def test() -> None:
            async with (
                connect(file.url("b1"), name="source") as publisher,
                connect(file.url("b1"), name="desk", durable=True) as desk,
                desk.subscribe("n >= 0", name="all") as stream,
            ):
                await publisher.publish({"n": 0})
                assert await collect(stream, 1) == [0]
                # The file may grow by small records only.
                log = path.with_name(f"{FILE}-wal")
                processes.limit_files("b1", log.stat().st_size + 200_000)
                answers = [await publisher.publish_soon({"n": 1}, b"x" * 400_000)]
                # The broker begins to write it, which its status does not show.
                await asyncio.sleep(0.1)
                for n in range(2, 6):
                    answers.append(await publisher.publish_soon({"n": n}))
                assert await asyncio.to_thread(processes.wait, "b1") == 1
                assert f"cannot write {path}" in processes.log("b1")
                assert not any(answer.done() for answer in answers)
                await asyncio.to_thread(processes.restart, "b1")
                await publisher.flush()
                assert all([await answer for answer in answers]), "none was accepted before the restart"
                assert sorted(await collect(stream, 5)) == [1, 2, 3, 4, 5]
                await asyncio.to_thread(processes.settled)
                assert not len(stream)

        run(test)


def test_a_broker_joins_by_command_and_leaves_by_command(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])
    (tmp_path / "more").mkdir()
    joining = OverlayFileMaker(tmp_path / "more", ["b9"])
    with Processes(file) as processes:
        processes.launch("b9", "--join", f"127.0.0.1:{file.ports['b1']}", file=joining)
        processes.ready("b9")
        wait_until(lambda: [each["id"] for each in processes.status("b1")["neighbours"] if each["is_up"]] == ["b9"])
        done = mercast("leave", str(joining.path), "--id", "b9")
        assert done.returncode == 0, done.stderr
        assert processes.wait("b9") == 0
        wait_until(lambda: not processes.status("b1")["neighbours"])
        assert "b9 leaves" in done.stderr
        assert processes.terminate("b1") == 0


def test_leave_names_the_missing_option_or_address(tmp_path: Path) -> None:
    done = mercast("leave")
    assert (done.returncode, "--admin HOST:PORT" in done.stderr) == (3, True)
    file = OverlayFileMaker(tmp_path, ["b1"])
    done = mercast("leave", str(file.path), "--id", "b1")
    assert (done.returncode, "no broker's admin pages at" in done.stderr) == (4, True)


def test_a_broker_open_to_other_machines_is_refused_without_insecure(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], listen={"b1": "0.0.0.0:0"})
    done = mercast("broker", str(file.path), "--id", "b1")
    assert done.returncode == 3
    assert "0.0.0.0:0 can be reached from other machines" in done.stderr
    assert "--insecure" in done.stderr
    with Processes(file, arguments=["--insecure"]) as processes:
        assert processes.terminate("b1") == 0


def test_a_port_in_use_and_a_wrong_id_are_named(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])
    with Processes(file):
        done = mercast("broker", str(file.path), "--id", "b1")
        assert done.returncode == 4
        assert f"cannot listen on 127.0.0.1:{file.ports['b1']}" in done.stderr
    done = mercast("broker", str(file.path), "--id", "b7")
    assert done.returncode == 3
    assert "no broker 'b7'" in done.stderr


def test_an_idle_broker_is_small_and_loads_nothing_heavy(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"], tables=STORE)
    with Processes(file) as processes:
        assert processes.status("b1")["memory_bytes"] < 60_000_000
        maps = Path(f"/proc/{processes.pid('b1')}/maps").read_text()
        assert "site-packages" in maps
        for heavy in ("numpy", "pyarrow", "matplotlib"):
            assert f"site-packages/{heavy}" not in maps
    script = (
        "import sys, broker.runtime.process, broker.runtime.admin\n"
        "print([name for name in ('pyspark', 'networkx', 'matplotlib', 'numpy', 'pyarrow', 'simpy', 'experiments')"
        " if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_logs_are_lines_of_json(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1"])
    with Processes(file) as processes:
        assert processes.terminate("b1") == 0
        lines = [json.loads(line) for line in processes.log("b1").splitlines()]
        assert [line["event"] for line in lines] == ["serving", "stopped"]
        assert {line["broker"] for line in lines} == {"b1"}


@pytest.mark.slow
def test_ten_durable_brokers_are_killed_in_turn_under_load_and_nothing_owed_is_lost(tmp_path: Path) -> None:
    """The overlay is a ring: it stays connected while one broker is down."""
    ids = [f"b{n:02}" for n in range(10)]
    links = [(ids[n], ids[(n + 1) % 10]) for n in range(10)]
    file = OverlayFileMaker(tmp_path, ids, links, tables=STORE)
    count = 600
    with Processes(file) as processes:
        processes.linked()

        async def test() -> None:
            async with AsyncExitStack() as stack:
                publishers: list[Client] = [
                    await stack.enter_async_context(connect(file.url(id), name=f"p{id}", durable=True))
                    for id in ids[:2]
                ]
                streams = []
                for id in ids[5:8]:
                    reader = await stack.enter_async_context(connect(file.url(id), name=f"r{id}", durable=True))
                    streams.append(await stack.enter_async_context(reader.subscribe("n >= 0", name="all")))
                processes.linked()

                async def publish(publisher: Client, first: int) -> None:
                    for n in range(first, count, 2):
                        await publisher.publish_soon({"n": n})
                        # A rate that lasts longer than the kills.
                        await asyncio.sleep(0.01)
                    await publisher.flush()

                publishing = [asyncio.create_task(publish(each, first)) for first, each in enumerate(publishers)]
                for victim in ("b03", "b06", "b00"):
                    # Load before the kill, and while the broker is down.
                    await asyncio.sleep(0.5)
                    processes.kill(victim)
                    await asyncio.sleep(0.5)
                    await asyncio.to_thread(processes.restart, victim)
                    # Publications are owed only for subscriptions that the other brokers know again.
                    await asyncio.to_thread(processes.linked)
                await asyncio.gather(*publishing)
                for stream in streams:
                    assert sorted(await collect(stream, count, 90)) == list(range(count))
                await asyncio.to_thread(processes.settled)
                assert [len(stream) for stream in streams] == [0, 0, 0]

        run(test, 400)
        assert status_at(file.admin_ports["b00"])["queues"]["unsettled"] == 0

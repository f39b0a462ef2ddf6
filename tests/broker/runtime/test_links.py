"""Links between brokers: dialled by either end, cut, stalled, opened and closed while publications flow."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from broker import connect
from broker.config.address import Address
from broker.runtime.server import BrokerServer
from matching.expressions.values import Value
from tests.harness.broker_processes import InLoop, OverlayFileMaker, run
from tests.harness.conditions import until
from tests.harness.ports import free_ports
from tests.harness.proxy import Proxy


def through_proxy(tmp_path: Path) -> tuple[OverlayFileMaker, int]:
    """An overlay in which b1 dials b2 through the proxy's port. Returns the overlay and that port."""
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])
    (port,) = free_ports(1)
    text = file.path.read_text()
    b2 = f'listen = "127.0.0.1:{file.ports["b2"]}"'
    file.path.write_text(text.replace(b2, f'{b2}\naddress = "127.0.0.1:{port}"'))
    return file, port


async def flow(file: OverlayFileMaker, overlay: InLoop, disturb: object) -> list[Value]:
    """Publishes 60 numbers and calls `disturb` after some of them. Returns the delivered numbers in order."""
    async with (
        connect(file.url("b1")) as publisher,
        connect(file.url("b2")) as reader,
        reader.subscribe("n >= 0") as stream,
    ):
        await overlay.quiet()
        answers = []
        for n in range(60):
            answers.append(await publisher.publish_soon({"n": n}))
            if n == 20:
                disturb()  # type: ignore[operator]
            # A rate at which links break and return while publications flow.
            await asyncio.sleep(0.01)
        arrived = [(await stream.next(40.0))["n"] for _ in range(60)]
        await until(lambda: all(server.drain.is_settled for server in overlay.servers.values()))
        assert not len(stream)
        return arrived


def test_a_link_that_is_cut_is_opened_again_and_loses_nothing(tmp_path: Path) -> None:
    file, port = through_proxy(tmp_path)

    async def test() -> None:
        async with Proxy(f"127.0.0.1:{file.ports['b2']}", port=port) as proxy, InLoop(file) as overlay:
            arrived = await flow(file, overlay, proxy.cut)
            assert sorted(arrived, key=int) == list(range(60))
            assert proxy.connections >= 2 or overlay["b2"].neighbours.links["b1"].is_dialled

    run(test)


def test_a_link_that_delivers_nothing_is_closed_and_dialled_again(tmp_path: Path) -> None:
    file, port = through_proxy(tmp_path)

    async def test() -> None:
        async with Proxy(f"127.0.0.1:{file.ports['b2']}", port=port) as proxy, InLoop(file) as overlay:

            def stall() -> None:
                proxy.stall()
                asyncio.get_running_loop().call_later(1.0, proxy.resume)

            arrived = await flow(file, overlay, stall)
            assert sorted(arrived, key=int) == list(range(60))

    run(test)


def test_both_ends_dial_at_once_and_one_connection_is_kept(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])

    async def test() -> None:
        async with InLoop(file) as overlay:
            first, second = overlay["b1"].neighbours, overlay["b2"].neighbours
            for _ in range(5):
                await asyncio.gather(
                    first._dial(Address("127.0.0.1", file.ports["b2"]), None),
                    second._dial(Address("127.0.0.1", file.ports["b1"]), None),
                )
                await overlay.quiet()
                assert first.links.keys() == {"b2"}
                assert second.links.keys() == {"b1"}
                assert not first.links["b2"].connection.is_closing
                assert not second.links["b1"].connection.is_closing

    run(test)


def test_a_broker_joins_a_running_overlay_and_leaves_it_again(tmp_path: Path) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])
    (tmp_path / "more").mkdir()
    alone = OverlayFileMaker(tmp_path / "more", ["b9"])

    async def test() -> None:
        async with InLoop(file) as overlay, connect(file.url("b1")) as publisher:
            joining = BrokerServer(alone.broker("b9"))
            await joining.start(Address("127.0.0.1", file.ports["b2"]))
            overlay.servers["b9"] = joining
            await until(lambda: "b9" in overlay["b2"].neighbours.links)
            async with connect(alone.url("b9")) as reader, reader.subscribe("n > 0") as stream:
                await overlay.quiet()
                await publisher.publish({"n": 1})
                assert (await stream.next(40.0))["n"] == 1
            del overlay.servers["b9"]
            await joining.stop(leaves=True)
            await until(lambda: "b9" not in overlay["b2"].neighbours.links)
            router = overlay["b1"].driver.core.router
            await until(lambda: not router.is_reachable("", "b9"))
            assert overlay["b2"].neighbours.required_peers() == ("b1",)

    run(test)


def test_self_reorganisation_opens_a_real_link_and_a_closed_one_stays_closed(tmp_path: Path) -> None:
    ids = ["b1", "b2", "b3", "b4"]
    links = [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]
    file = OverlayFileMaker(tmp_path, ids, links, tables={"reorganise": {"every": "400ms", "most_links": 2}})

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1")) as publisher,
            connect(file.url("b4")) as reader,
            reader.subscribe("n >= 0") as stream,
        ):
            await overlay.quiet()
            sent = 0
            while "b4" not in overlay["b1"].neighbours.links:
                assert sent < 2000, "no link was opened"
                await publisher.publish({"n": sent})
                sent += 1
                # A rate, because brokers open links for traffic.
                await asyncio.sleep(0.01)
            assert sorted([int((await stream.next(40.0))["n"]) for _ in range(sent)]) == list(range(sent))
            await publisher.publish({"n": sent})
            assert (await stream.next(40.0)).hops == 1
            overlay["b4"].neighbours.close("b1")
            await until(lambda: "b4" not in overlay["b1"].neighbours.links)
            await publisher.publish({"n": sent + 1})
            assert (await stream.next(40.0)).hops == 3
            assert "b4" not in overlay["b1"].neighbours.required_peers()

    run(test)


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [getattr(record, "fields", {}).get("reason", "") for record in caplog.records]


def test_a_wrong_address_is_named_in_the_log_and_not_linked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2", "b3"], [("b1", "b2"), ("b2", "b3")])
    text = file.path.read_text()
    wrong = re.sub(r'(id = "b2"\n)', rf'\1address = "127.0.0.1:{file.ports["b3"]}"\n', text)
    file.path.write_text(wrong)

    async def test() -> None:
        overlay = InLoop(file)
        await overlay.start("b1")
        await overlay.start("b3")
        try:
            await until(lambda: any("belongs to b3, not to b2" in reason for reason in reasons(caplog)))
            assert not overlay["b1"].neighbours.links
        finally:
            await overlay.__aexit__()

    run(test)


@pytest.mark.parametrize("reads_once_ids", [True, False])
def test_a_neighbour_is_sent_once_ids_if_it_reads_them(tmp_path: Path, reads_once_ids: bool) -> None:
    file = OverlayFileMaker(tmp_path, ["b1", "b2"], [("b1", "b2")])

    async def test() -> None:
        async with (
            InLoop(file) as overlay,
            connect(file.url("b1")) as publisher,
            connect(file.url("b2")) as reader,
            reader.subscribe("n >= 0") as stream,
        ):
            await overlay.quiet()
            link = overlay["b1"].neighbours.links["b2"]
            assert link.reads_once_ids, "its hello says so"
            # As if b2 were of a version that would end the link over an unknown field.
            link.reads_once_ids = reads_once_ids
            for n, id in enumerate(("x", "x", "y")):
                await publisher.publish({"n": n}, id=id)
            expected = [0, 2] if reads_once_ids else [0, 1, 2]
            assert [(await stream.next(40.0))["n"] for _ in expected] == expected
            assert len(overlay["b2"].driver.core.once_ids) == (2 if reads_once_ids else 0)

    run(test)

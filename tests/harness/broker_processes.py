"""Overlay files with free loopback ports, and their brokers in one event loop or in one process each."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from broker.config.overlay_config import BrokerConfig, read_config
from broker.runtime.server import BrokerServer
from tests.harness.conditions import until, wait_until
from tests.harness.mercast_broker import BrokerProcess, admin_page
from tests.harness.ports import free_ports

QUICK = {
    "heartbeat": {"every": "100ms", "dead_after": "600ms", "redial_first": "20ms", "redial_at_most": "200ms"},
}

Tables = Mapping[str, Mapping[str, object]]


class OverlayFileMaker:
    """Writes an overlay file in which each broker has its own ports."""

    def __init__(
        self,
        folder: Path,
        brokers: Iterable[str],
        links: Iterable[tuple[str, str]] = (),
        *,
        clusters: Mapping[str, tuple[str, ...]] | None = None,
        overlay: Mapping[str, object] | None = None,
        tables: Tables | None = None,
        name: str = "test",
        listen: Mapping[str, str] | None = None,
    ) -> None:
        self.path = folder / f"{name}.toml"
        self.ids = tuple(brokers)
        ports = free_ports(2 * len(self.ids))
        self.ports = dict(zip(self.ids, ports, strict=False))
        self.admin_ports = dict(zip(self.ids, ports[len(self.ids) :], strict=True))
        lines = ["schema = 1", "[overlay]", _line("name", name)]
        lines += [_line(key, value) for key, value in {"protocol": "d-dbr", **(overlay or {})}.items()]
        for table, keys in {**QUICK, **(tables or {})}.items():
            lines += [f"[{table}]", *(_line(key, value) for key, value in {**QUICK.get(table, {}), **keys}.items())]
        for id in self.ids:
            lines += ["[[broker]]", _line("id", id)]
            lines += [_line("listen", (listen or {}).get(id, f"127.0.0.1:{self.ports[id]}"))]
            lines += [_line("admin", f"127.0.0.1:{self.admin_ports[id]}")]
            if clusters:
                lines.append(f"clusters = {json.dumps(list(clusters[id]))}")
        for first, second in links:
            lines += ["[[link]]", f'between = ["{first}", "{second}"]']
        self.path.write_text("\n".join(lines) + "\n")

    def broker(self, id: str) -> BrokerConfig:
        return read_config(self.path).broker(id)

    def url(self, id: str) -> str:
        return f"mercast://127.0.0.1:{self.ports[id]}"


def _line(key: str, value: object) -> str:
    return f"{key} = {json.dumps(value)}"


def run(test: Callable[[], Awaitable[None]], within_s: float = 180.0) -> None:
    """Runs a test that is a coroutine, with a timeout."""

    async def in_time() -> None:
        async with asyncio.timeout(within_s):
            await test()

    asyncio.run(in_time())


class InLoop:
    """The brokers of an overlay file in this event loop. In the block, all links are up."""

    def __init__(self, file: OverlayFileMaker, **options: Any) -> None:
        """`options` are those of each `BrokerServer`."""
        self.file = file
        self._options = options
        self.servers: dict[str, BrokerServer] = {}
        self._stack = AsyncExitStack()

    def __getitem__(self, id: str) -> BrokerServer:
        return self.servers[id]

    async def __aenter__(self) -> Self:
        for id in self.file.ids:
            await self.start(id)
        await self.linked()
        return self

    async def __aexit__(self, *_: object) -> None:
        for id in list(self.servers):
            await self.stop(id)

    async def start(self, id: str, **options: Any) -> BrokerServer:
        server = BrokerServer(self.file.broker(id), **{**self._options, **options})
        await server.start()
        self.servers[id] = server
        return server

    async def stop(self, id: str) -> None:
        await self.servers.pop(id).stop()

    async def linked(self) -> None:
        """Waits until all required links are up and all brokers know the overlay."""
        await until(
            lambda: all(
                set(server.neighbours.links)
                >= {each for each in server.neighbours.required_peers() if each in self.servers}
                for server in self.servers.values()
            ),
            what="all links are up",
        )
        await self.quiet()

    async def quiet(self) -> None:
        """Waits until all changes are acknowledged, twice, because acknowledged changes may cause others."""
        for _ in range(2):
            await until(
                lambda: all(
                    not server.driver.core.router.counts().unacknowledged_changes for server in self.servers.values()
                ),
                what="all changes are acknowledged",
            )
            # Time for changes that follow from the acknowledged ones.
            await asyncio.sleep(0.15)


class Processes:
    """One process for each broker of an overlay file. They are killed at the end of the block."""

    def __init__(self, file: OverlayFileMaker, *, arguments: Iterable[str] = ()) -> None:
        self.file = file
        self._arguments = tuple(arguments)
        self._processes: dict[str, BrokerProcess] = {}

    def __enter__(self) -> Self:
        try:
            for id in self.file.ids:
                self.launch(id)
            for id in self.file.ids:
                self.ready(id)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.kill()

    def launch(self, id: str, *arguments: str, file: OverlayFileMaker | None = None) -> None:
        """Starts a broker, of another overlay file if there is one, and does not wait until it serves."""
        self._processes[id] = BrokerProcess((file or self.file).path, id)
        self._processes[id].launch(*self._arguments, *arguments)

    def ready(self, id: str) -> None:
        """Waits until the broker serves."""
        self._processes[id].wait_until_ready()

    def log(self, id: str) -> str:
        return self._processes[id].log()

    def pid(self, id: str) -> int:
        return self._processes[id].pid

    def kill(self, id: str) -> None:
        self._processes[id].kill()

    def terminate(self, id: str) -> int:
        """Stops the broker with SIGTERM and returns its exit code."""
        return self._processes[id].stop()

    def wait(self, id: str) -> int:
        """Waits until the broker ends by itself, and returns its exit code."""
        return self._processes[id].wait()

    def restart(self, id: str) -> None:
        """Starts a broker that has ended, and waits until it serves."""
        self._processes[id].start(*self._arguments)

    def limit_files(self, id: str, most_bytes: int) -> None:
        """Limits the size to which the broker can write any file, until it is restarted."""
        resource.prlimit(self.pid(id), resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    def status(self, id: str) -> dict[str, Any]:
        return self._processes[id].status()

    def linked(self) -> None:
        """Waits until all links are up and the brokers have acknowledged each other's changes."""

        def is_linked() -> bool:
            states = [self.status(id) for id in self.file.ids]
            return all(
                all(each["is_up"] for each in state["neighbours"]) and not state["tables"]["unacknowledged_changes"]
                for state in states
            )

        wait_until(is_linked, 90.0, "all links are up and all changes acknowledged")

    def settled(self) -> None:
        """Waits until no broker has a publication to settle or to store, so that none is sent again."""
        queues: dict[str, dict[str, int]] = {}

        def is_settled() -> bool:
            queues.update((id, self.status(id)["queues"]) for id in self.file.ids)
            # Retention keeps settled publications for a time.
            return not any(count for each in queues.values() for name, count in each.items() if name != "retained")

        wait_until(is_settled, 90.0, lambda: f"all publications are settled: {queues}")


def status_at(port: int) -> dict[str, Any]:
    """The status that a broker serves on the admin port."""
    status: dict[str, Any] = json.loads(admin_page(f"127.0.0.1:{port}", "status"))
    return status

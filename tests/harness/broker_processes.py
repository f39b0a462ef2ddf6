"""Brokers for tests, on free loopback ports: several in one event loop, or one process for each."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from broker.config.overlay_config import BrokerConfig, read_config
from broker.runtime.server import BrokerServer
from tests.harness.conditions import until, wait_until
from tests.harness.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
QUICK = {
    "heartbeat": {"every": "100ms", "dead_after": "600ms", "redial_first": "20ms", "redial_at_most": "200ms"},
}
START_WITHIN_S = 120.0

Tables = Mapping[str, Mapping[str, object]]


class OverlayFileMaker:
    """An overlay file in which every broker has a port of its own."""

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
    """A test that is a coroutine; it cannot hang."""

    async def in_time() -> None:
        async with asyncio.timeout(within_s):
            await test()

    asyncio.run(in_time())


class InLoop:
    """The overlay's brokers in this event loop, linked."""

    def __init__(self, file: OverlayFileMaker) -> None:
        self.file = file
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
        server = BrokerServer(self.file.broker(id), **options)
        await server.start()
        self.servers[id] = server
        return server

    async def stop(self, id: str) -> None:
        await self.servers.pop(id).stop()

    async def linked(self) -> None:
        """Every wanted link stands, and every broker knows the whole overlay."""
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
        """All that brokers had to tell each other was told, and twice nothing more came up."""
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
    """One process for each broker, stopped by their ids at the end."""

    def __init__(self, file: OverlayFileMaker, *, arguments: Iterable[str] = ()) -> None:
        self.file = file
        self._arguments = tuple(arguments)
        self._processes: dict[str, subprocess.Popen[str]] = {}

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
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def launch(self, id: str, *arguments: str, file: OverlayFileMaker | None = None) -> None:
        path = (file or self.file).path
        log = (path.parent / f"{id}.log").open("a")
        self._processes[id] = subprocess.Popen(
            [sys.executable, "-m", "mercast", "broker", str(path), "--id", id, *self._arguments, *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        log.close()

    def ready(self, id: str) -> dict[str, Any]:
        """The line that the broker prints when it serves."""
        process = self._processes[id]
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            assert selector.select(START_WITHIN_S), f"{id} did not start"
        line = process.stdout.readline()
        assert line, f"{id} ended: {self.log(id)}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def log(self, id: str) -> str:
        return (self.file.path.parent / f"{id}.log").read_text()

    def pid(self, id: str) -> int:
        return self._processes[id].pid

    def kill(self, id: str) -> None:
        os.kill(self.pid(id), signal.SIGKILL)
        self._processes[id].wait()

    def terminate(self, id: str) -> int:
        os.kill(self.pid(id), signal.SIGTERM)
        return self._processes[id].wait(timeout=20)

    def wait(self, id: str) -> int:
        return self._processes[id].wait(timeout=20)

    def restart(self, id: str, *arguments: str) -> None:
        stream = self._processes[id].stdout
        if stream is not None:
            stream.close()
        self.launch(id, *arguments)
        self.ready(id)

    def limit_files(self, id: str, most_bytes: int) -> None:
        """From now on the broker cannot write beyond this size of any file, until it is restarted."""
        resource.prlimit(self.pid(id), resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    def status(self, id: str) -> dict[str, Any]:
        return status_at(self.file.admin_ports[id])

    def linked(self, *ids: str) -> None:
        """Every neighbour of these brokers is up, and they have told each other everything."""

        def is_linked() -> bool:
            states = [self.status(id) for id in ids or self.file.ids]
            return all(
                all(each["is_up"] for each in state["neighbours"]) and not state["tables"]["unacknowledged_changes"]
                for state in states
            )

        wait_until(is_linked, 90.0, "all links are up and all changes acknowledged")


def status_at(port: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=10) as answer:
        status: dict[str, Any] = json.load(answer)
    return status

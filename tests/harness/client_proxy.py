"""A network between a client and its broker that can lose what goes either way, and be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.loses_to_broker = False
        self.loses_to_client = False
        self.refuses = False
        """Whoever connects from now on is turned away."""

    @property
    def url(self) -> str:
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()
        return f"mercast://{host}:{port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    def cut(self) -> None:
        """Ends all connections, at once and without a farewell. New ones work again."""
        self.loses_to_broker = self.loses_to_client = False
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        # Before anything is waited for: the test may end, or cut all connections, in the meantime.
        self._writers.append(writer)
        to_broker = await asyncio.open_connection(*self._target)
        if writer.is_closing():
            to_broker[1].transport.abort()
            return
        self._writers.append(to_broker[1])
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(self._pass_on(reader, to_broker[1], is_to_broker=True)))
        self._tasks.append(loop.create_task(self._pass_on(to_broker[0], writer, is_to_broker=False)))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_to_broker: bool) -> None:
        try:
            while data := await reader.read(1 << 16):
                if not (self.loses_to_broker if is_to_broker else self.loses_to_client):
                    writer.write(data)
                    await writer.drain()
        except (ConnectionError, OSError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def proxied(listen: str) -> AsyncIterator[Proxy]:
    host, _, port = listen.rpartition(":")
    proxy = Proxy(host, int(port))
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()

"""A TCP proxy between two brokers that can stop passing bytes, or cut all connections."""

from __future__ import annotations

import asyncio
from typing import Self


class Proxy:
    def __init__(self, port: int, to: int) -> None:
        self._port = port
        self._to = to
        self._writers: list[asyncio.StreamWriter] = []
        self._flows = asyncio.Event()
        self._flows.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_open = True
        self.passed = 0
        """Connections that came through."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self._flows.set()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            writer.close()
            return
        self.passed += 1
        # Before anything is waited for: the test may end, or cut all connections, in the meantime.
        self._writers.append(writer)
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        if writer.is_closing():
            back.close()
            return
        self._writers.append(back)
        for source, target in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pass(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(1 << 16):
                await self._flows.wait()
                target.write(data)
                await target.drain()
        except ConnectionError:
            pass
        target.close()

    def freeze(self) -> None:
        """Connections stay up and nothing passes: a black hole."""
        self._flows.clear()

    def thaw(self) -> None:
        self._flows.set()

    def cut(self) -> None:
        """All connections break at once."""
        for writer in self._writers:
            if writer.transport is not None:
                writer.transport.abort()
        self._writers.clear()

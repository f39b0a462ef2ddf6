"""A TCP proxy before a broker that loses, changes or stalls bytes, and cuts or refuses connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from broker.config.address import parse_address


class Proxy:
    """Forwards connections to a broker's address. The connecting end is a client, or a broker that dials a link."""

    def __init__(self, listen: str, *, port: int = 0, change: Callable[[bytes], bytes] = lambda data: data) -> None:
        """Listens on `port`, or on a free one. `change` sees all bytes, of both directions, and returns the bytes to
        forward."""
        self._broker = parse_address(listen)
        self._port = port
        self._change = change
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self.loses_to_broker = False
        self.loses_to_client = False
        self.refuses = False
        """Whether new connections are aborted."""
        self.connections = 0
        """Connections that were not refused."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def port(self) -> int:
        return self._port

    @property
    def url(self) -> str:
        return f"mercast://127.0.0.1:{self._port}"

    def stall(self) -> None:
        """Forwards no bytes until `resume`. Connections stay open, and no byte is lost."""
        self._flows.clear()

    def resume(self) -> None:
        self._flows.set()

    def cut(self) -> None:
        """Aborts all connections, without a goodbye. New connections lose nothing."""
        self.loses_to_broker = self.loses_to_client = False
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def stop(self) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        self.connections += 1
        # Before the first await: meanwhile the test may end, or cut all connections.
        self._writers.append(writer)
        try:
            from_broker, to_broker = await asyncio.open_connection(self._broker.host, self._broker.port)
        except OSError:
            # The broker is down: the client must not wait for an answer.
            writer.transport.abort()
            return
        if writer.is_closing():
            to_broker.transport.abort()
            return
        self._writers.append(to_broker)
        for forwarding in (
            self._forward(reader, to_broker, is_to_broker=True),
            self._forward(from_broker, writer, is_to_broker=False),
        ):
            task = asyncio.create_task(forwarding)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_to_broker: bool) -> None:
        try:
            while data := self._change(await reader.read(1 << 16)):
                await self._flows.wait()
                if not (self.loses_to_broker if is_to_broker else self.loses_to_client):
                    writer.write(data)
                    await writer.drain()
        except OSError:
            # One of the two connections broke.
            pass
        finally:
            writer.close()

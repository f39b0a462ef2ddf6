"""A client that sends and reads single frames, also frames that no correct client sends."""

from __future__ import annotations

import asyncio

from broker.wire.client_codec import decode, encode
from broker.wire.client_frames import ClientFrame, Goodbye, Hello, Welcome
from broker.wire.limits import Limits

LIMITS = Limits(frame_bytes=1 << 26)


class RawClient:
    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> RawClient:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 14)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def send(self, *frames: ClientFrame | bytes) -> None:
        for frame in frames:
            self._writer.write(frame if isinstance(frame, bytes) else encode(frame))
        await self._writer.drain()

    async def raw_frame(self) -> bytes:
        """The next frame, or no bytes if the broker has closed the connection."""
        try:
            prefix = await self._reader.readexactly(4)
            return prefix + await self._reader.readexactly(int.from_bytes(prefix, "big"))
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""

    async def frame(self) -> ClientFrame:
        return decode(await self.raw_frame(), LIMITS)

    async def greet(self, name: str = "raw", **options: object) -> Welcome:
        await self.send(Hello(name, "session", **options))  # type: ignore[arg-type]
        welcome = await self.frame()
        assert isinstance(welcome, Welcome)
        return welcome

    async def goodbye(self) -> Goodbye:
        """Skips frames up to the goodbye, and asserts that the broker closes the connection after it."""
        while True:
            frame = await self.frame()
            if isinstance(frame, Goodbye):
                assert await self.raw_frame() == b"", "the broker closes after its goodbye"
                return frame

"""Finding a server that takes the connection: all in turn, again and again with growing pauses."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Mapping
from random import Random

from broker.client.connection import Receiver, open_connection
from broker.client.errors import ClientError, ConnectError, RefusedError
from broker.config.address import Address
from broker.wire.client_frames import Hello, Reason

FATAL = frozenset({Reason.VERSION, Reason.UNAUTHORISED, Reason.NOT_DURABLE, Reason.NAME_IN_USE, Reason.MALFORMED})
"""Reasons for which trying again is of no use, if all servers give them."""

SHORTEST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 5.0
PROVEN_AFTER_S = 5.0
"""A connection that broke sooner is taken for one that could not be made: whatever broke it may be there still."""


class Reconnect:
    def __init__(
        self,
        servers: tuple[Address, ...],
        within_s: float,
        tls: ssl.SSLContext | None,
        hello: Hello,
        receiver: Receiver,
    ) -> None:
        """`within_s`: how long one server may take."""
        self._servers = servers
        self._within_s = within_s
        self._tls = tls
        self._hello = hello
        self._receiver = receiver
        self._turn = 0
        self._pause_s = SHORTEST_PAUSE_S
        self._made_at: float | None = None
        # Clients of a broker that was lost must not all come back at the same moments.
        self._random = Random(secrets.randbits(64))

    async def connect(self, within_s: float | None) -> None:
        """Tries all servers once at least, and then until the time is over; for ever when there is none.

        Called when a connection broke. Pauses grow until one has proved itself.
        """
        loop = asyncio.get_running_loop()
        end = None if within_s is None else loop.time() + within_s
        if self.is_proven():
            self._pause_s = SHORTEST_PAUSE_S
        elif self._made_at is not None:
            await self._pause()
        while True:
            failures = await self._try_servers()
            if not failures:
                self._made_at = loop.time()
                return
            if all(isinstance(error, RefusedError) and error.reason in FATAL for error in failures.values()):
                raise next(iter(failures.values()))
            if end is not None and loop.time() >= end:
                raise _no_server(failures)
            await self._pause()

    def is_proven(self) -> bool:
        """Has the last connection lived for long enough, or does it still?"""
        return self._made_at is not None and asyncio.get_running_loop().time() - self._made_at >= PROVEN_AFTER_S

    async def _pause(self) -> None:
        pause_s = self._pause_s * self._random.uniform(0.5, 1.5)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        await asyncio.sleep(pause_s)

    async def _try_servers(self) -> dict[Address, ClientError]:
        """Empty when one of them took the connection; the next time starts with it."""
        failures: dict[Address, ClientError] = {}
        for step in range(len(self._servers)):
            place = (self._turn + step) % len(self._servers)
            address = self._servers[place]
            try:
                await open_connection(address, self._receiver, self._hello, self._within_s, self._tls)
            except ClientError as error:
                failures[address] = error
            else:
                self._turn = place
                return {}
        return failures


def _no_server(failures: Mapping[Address, ClientError]) -> ConnectError:
    tried = ", ".join(f"{address} ({error})" for address, error in failures.items())
    return ConnectError(f"cannot connect to {tried}; is a broker running there? `mercast up demo` starts some")

"""Connects to the first server that accepts. Tries all servers in turn, repeatedly, with growing pauses."""

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
"""Reasons after which a retry is useless, if all servers give one of them."""

SHORTEST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 5.0
PROVEN_AFTER_S = 5.0
"""A connection that breaks sooner counts as a failed attempt, because its cause may persist."""


class Connector:
    def __init__(
        self,
        servers: tuple[Address, ...],
        within_s: float,
        tls: ssl.SSLContext | None,
        hello: Hello,
        receiver: Receiver,
    ) -> None:
        """`within_s` is the time limit for one server."""
        self._servers = servers
        self._within_s = within_s
        self._tls = tls
        self._hello = hello
        self._receiver = receiver
        self._next_server = 0
        self._pause_s = SHORTEST_PAUSE_S
        self._made_at: float | None = None
        # Random pauses: the clients of a lost broker must not all reconnect at the same moments.
        self._random = Random(secrets.randbits(64))

    async def connect(self, within_s: float | None) -> None:
        """Tries all servers at least once, then until `within_s` has passed. None: without limit.

        Also called after a lost connection. Pauses grow until a connection has lasted for `PROVEN_AFTER_S`.
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
        """Whether at least `PROVEN_AFTER_S` have passed since the last connection was made."""
        return self._made_at is not None and asyncio.get_running_loop().time() - self._made_at >= PROVEN_AFTER_S

    async def _pause(self) -> None:
        pause_s = self._pause_s * self._random.uniform(0.5, 1.5)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        await asyncio.sleep(pause_s)

    async def _try_servers(self) -> dict[Address, ClientError]:
        """Tries each server once. Returns the failures, or nothing if a server accepts.

        The next call starts with the server that accepted.
        """
        failures: dict[Address, ClientError] = {}
        for step in range(len(self._servers)):
            index = (self._next_server + step) % len(self._servers)
            address = self._servers[index]
            try:
                await open_connection(address, self._receiver, self._hello, self._within_s, self._tls)
            except ClientError as error:
                failures[address] = error
            else:
                self._next_server = index
                return {}
        return failures


def _no_server(failures: Mapping[Address, ClientError]) -> ConnectError:
    tried = ", ".join(f"{address} ({error})" for address, error in failures.items())
    return ConnectError(f"cannot connect to {tried}; is a broker running there? `mercast up demo` starts some")

"""A timeout whose error names the awaited thing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from broker.client.errors import TimeoutExpiredError


class Deadline:
    """`asyncio.timeout` that raises `TimeoutExpiredError`. `what` names the awaited thing."""

    def __init__(self, what: str, timeout_s: float | None, is_connected: Callable[[], bool] = lambda: True) -> None:
        self._what = what
        self._timeout_s = timeout_s
        self._is_connected = is_connected
        self._timeout = asyncio.timeout(timeout_s)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            state = "" if self._is_connected() else "; there is no connection at the moment"
            raise TimeoutExpiredError(f"{self._what} did not come within {self._timeout_s:g} s{state}") from None

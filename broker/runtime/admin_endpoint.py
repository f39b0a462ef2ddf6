"""Opens the admin pages if they are configured and aiohttp is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.config.address import Address
from broker.config.overlay_config import BrokerConfig
from broker.log import Log
from broker.runtime.admin_access import AdminAccess
from broker.runtime.core_driver import CoreDriver
from broker.runtime.listener import ListenError
from broker.runtime.status import Status
from broker.security.authentication import Security

if TYPE_CHECKING:
    from broker.runtime.admin import AdminPages


class AdminEndpoint:
    def __init__(
        self, config: BrokerConfig, security: Security, driver: CoreDriver, leave_requested: asyncio.Event, log: Log
    ) -> None:
        self.address: Address | None = None
        """The address of the pages while they are open."""
        self._config = config
        self._security = security
        self._driver = driver
        self._leave_requested = leave_requested
        self._log = log
        self._pages: AdminPages | None = None

    async def start(self, status: Callable[[], Status]) -> None:
        """Starts the admin pages if they are configured.

        They alone import aiohttp. Without aiohttp the broker runs without pages, unless the configuration names a port.
        """
        address = self._config.admin
        if address is None:
            return
        try:
            from broker.runtime.admin import AdminPages
        except ImportError as error:
            if address.port:
                raise ListenError(f"the admin pages need {error.name}: pip install 'mercast[admin]'") from error
            self._log.warning("no admin pages", reason=f"{error.name} is not installed: pip install 'mercast[admin]'")
            return
        if not address.is_loopback:
            self._log.warning("admin pages beyond this machine", address=str(address))
        access = AdminAccess(self._config, address, lambda: self._security.admin_token)
        self._pages = AdminPages(
            self._config.id, access, status, lambda: self._driver.is_stopping, self._leave_requested.set
        )
        try:
            self.address = await self._pages.start(address)
        except OSError as error:
            raise ListenError(f"broker {self._config.id}: admin pages on {address}: {error.strerror}") from error

    async def stop(self) -> None:
        if self._pages is not None:
            await self._pages.stop()

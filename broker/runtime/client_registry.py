"""The connected clients, and those of them with publications that the broker cannot accept at present."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from broker.log import Log
from broker.runtime.client_session import ClientSession
from broker.runtime.core_driver import CoreDriver
from broker.wire.client_frames import Reason


class ClientRegistry:
    """After `start_accepting` the broker accepts publications when its required links are up."""

    def __init__(self, driver: CoreDriver, links_within_s: float, log: Log) -> None:
        """`links_within_s`: the time in which required links should come up."""
        self.sessions: dict[str, ClientSession] = {}
        """The sessions of connected clients, by name."""
        self.waiting_publishers: dict[ClientSession, None] = {}
        """Sessions with publications that wait until the broker accepts publications."""
        self._driver = driver
        self._links_within_s = links_within_s
        self._log = log
        self._loop = asyncio.get_running_loop()

    def start_accepting(self, has_required_links: Callable[[], bool]) -> None:
        self._has_required_links = has_required_links
        self._serving_since = self._loop.time()
        self._update_readiness()

    def add(self, session: ClientSession) -> None:
        self.sessions[session.name] = session
        self._log.debug("client connected", client=session.name, other_end=session.connection.remote_address)

    def remove(self, session: ClientSession) -> bool:
        """Removes a client's connection. Returns False if the client has another connection or none."""
        self.waiting_publishers.pop(session, None)
        if self.sessions.get(session.name) is not session:
            return False
        del self.sessions[session.name]
        self._log.debug("client gone", client=session.name)
        return True

    def end_all(self, reason: Reason, text: str) -> None:
        """Ends all connections with a Goodbye."""
        for session in list(self.sessions.values()):
            session.end(reason, text)

    def update_rights(self) -> None:
        """Applies the rights of a reloaded access list to all clients."""
        for session in list(self.sessions.values()):
            session.update_rights()

    def _update_readiness(self) -> None:
        """Lets the driver accept publications when all required links are up, or after the time in which they should
        have come up."""
        if not self._driver.is_ready:
            late = self._loop.time() - self._serving_since > self._links_within_s
            self._driver.is_ready = late or self._has_required_links()

    def submit_waiting(self) -> None:
        """Submits publications that wait, as long as the broker accepts publications."""
        self._update_readiness()
        for session in list(self.waiting_publishers):
            if session.submit_waiting():
                self.waiting_publishers.pop(session, None)

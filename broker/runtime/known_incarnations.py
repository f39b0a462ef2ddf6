"""Which incarnations of its neighbours a broker knows, and which of its own the neighbours know."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from broker.runtime.core_driver import CoreDriver
from broker.wire import link_handshake
from broker.wire.link_handshake import LinkHello

LATEST_INCARNATION = 1 << 62
"""Neighbours are not believed to know later ones: a frame must have room for the incarnations after it."""
MOST_REPORTS = 2
"""A neighbour may report what it remembers itself, and then what it learned from distant brokers."""
_ANY = ""
"""The addressee of a hello to a broker whose id is unknown."""


class KnownIncarnations:
    def __init__(self, me: str, driver: CoreDriver) -> None:
        self._me = me
        self._driver = driver
        self._of_neighbours: dict[str, int] = {}
        """The last incarnation of each broker with which this one had a link."""
        self._greeted: set[str] = set()
        """Brokers that received a hello of the present core. They may remember its incarnation for this reason."""
        self._reports: Counter[str] = Counter()
        """How often each neighbour reported a later incarnation of this broker, and was believed."""

    def start(self, replace_core: Callable[[str, int], None]) -> None:
        """`replace_core` is called with a neighbour and an incarnation of this broker that the neighbour knows, and
        that is not earlier than the present one."""
        self._replace_core = replace_core

    def of(self, peer: str) -> int:
        """The last known incarnation of the broker; 0: none."""
        return self._of_neighbours.get(peer, 0)

    def add(self, peer: str, incarnation: int) -> None:
        self._of_neighbours[peer] = incarnation

    def mark_greeted(self, peer: str) -> None:
        """Records that the broker receives a hello."""
        self._greeted.add(peer)

    def has_greeted(self, peer: str) -> bool:
        """Whether the broker may have received a hello of the present core."""
        return not self._greeted.isdisjoint((peer, _ANY))

    def refusal(self, other: LinkHello, *, is_repeated: bool) -> tuple[str, str]:
        """The code and the reason to refuse a link because of an incarnation, both empty if there is none.

        A neighbour that knows a later incarnation of this broker is refused, and the core is replaced. It may know the
        same one of another process, unless this process sent it a hello before (`is_repeated`).
        """
        now, known = self._driver.core.incarnation, self.of(other.broker)
        is_outlived = other.remembered > now or (other.remembered == now and not is_repeated)
        if is_outlived and self.learn(other.broker, other.remembered):
            return link_handshake.STOPPING, f"{self._me} begins a later incarnation than {other.remembered}"
        if other.incarnation < known:
            text = f"{other.broker} has incarnation {other.incarnation}, and {self._me} knows {known} already"
            return link_handshake.OUTLIVED, text
        return "", ""

    def learn(self, peer: str, known: int) -> bool:
        """Replaces the core, because the neighbour knows an incarnation that is not earlier. Returns False if not.

        Few reports of each neighbour are believed, so that a compromised broker cannot interrupt this one again and
        again.
        """
        if self._reports[peer] >= MOST_REPORTS or known >= LATEST_INCARNATION:
            return False
        self._reports[peer] += 1
        # The caller is in the middle of a frame of a link that ends with the core.
        asyncio.get_running_loop().call_soon(self._replace_outlived, peer, known)
        return True

    def _replace_outlived(self, peer: str, known: int) -> None:
        if known >= self._driver.core.incarnation and not self._driver.is_stopping:
            self._greeted.clear()
            self._replace_core(peer, known)

"""The link states of a domain's brokers, and the topology that follows from them [THESIS 4.2, 4.3].

The newest link state of a broker counts, by incarnation and sequence number. A link is in the topology table when both
ends list each other. A broker that announced that it leaves is not in the table. An unreachable broker stays known,
because it may come back, and its neighbours' link states already omit its links.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from routing.messages import LinkState
from routing.shortest_paths import TopologyTable


class LinkStateTable:
    """One domain's link states, by broker."""

    def __init__(self) -> None:
        self._states: dict[str, LinkState] = {}
        self._topology: TopologyTable | None = None
        self._hash: bytes | None = None

    def add_if_newer(self, state: LinkState) -> bool:
        """Stores a link state if it is newer than the known one. Returns False if it is not."""
        known = self._states.get(state.broker)
        if known is not None and known.version >= state.version:
            return False
        self._states[state.broker] = state
        self._topology = self._hash = None
        return True

    def get(self, broker: str) -> LinkState | None:
        return self._states.get(broker)

    def states(self) -> tuple[LinkState, ...]:
        return tuple(self._states.values())

    def newer_than(self, others: Iterable[LinkState]) -> list[LinkState]:
        """Returns the link states that a broker with the other ones lacks."""
        versions = {state.broker: state.version for state in others}
        return [state for state in self._states.values() if versions.get(state.broker, (-1, -1)) < state.version]

    @property
    def digest(self) -> bytes:
        """A hash of all versions. Equal digests mean equal link states."""
        if self._hash is None:
            versions = sorted((state.broker, *state.version) for state in self._states.values())
            self._hash = hashlib.blake2b(repr(versions).encode(), digest_size=8).digest()
        return self._hash

    @property
    def topology(self) -> TopologyTable:
        if self._topology is None:
            self._topology = TopologyTable.of(self._agreed_links())
        return self._topology

    def _agreed_links(self) -> dict[str, dict[str, int]]:
        here = {name: state for name, state in self._states.items() if not state.has_left}
        costs = {name: dict(state.neighbours) for name, state in here.items()}
        # If the ends announce different costs, the larger one counts, so that all brokers compute the same routes.
        return {
            name: {other: max(cost, costs[other][name]) for other, cost in mine.items() if name in costs.get(other, {})}
            for name, mine in costs.items()
        }

"""What a broker knows of a domain's brokers and links, from what each says of itself [THESIS 4.2, 4.3].

The newest statement of a broker counts, by incarnation and sequence number. A link is in the topology table when both
ends name each other. A broker that said farewell is out of it; one that merely vanished stays known, because its
neighbours' statements already leave its links out and it may come back.
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
        """Is this news? Then it is now the broker's statement."""
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
        """What someone with the other statements lacks."""
        versions = {state.broker: state.version for state in others}
        return [state for state in self._states.values() if versions.get(state.broker, (-1, -1)) < state.version]

    @property
    def digest(self) -> bytes:
        """Equal at two brokers when both know the same."""
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
        # Two ends that disagree on a link's cost must not disagree on the way: the larger cost counts for both.
        return {
            name: {other: max(cost, costs[other][name]) for other, cost in mine.items() if name in costs.get(other, {})}
            for name, mine in costs.items()
        }

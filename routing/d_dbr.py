"""D-DBR: match at the source, then route by destination [THESIS 4].

A publication is matched where it is published, against the subscriptions of all brokers. It travels along shortest
paths with the list of brokers that want it. Brokers between source and destination read only that list. Each
destination matches once more, for its own clients. A subscription is stored at its home and at brokers with
intersecting advertisements.
"""

from __future__ import annotations

from routing.destination_based import DestinationBased

WHOLE_OVERLAY = ""
"""The one domain that all brokers are in."""


class DDBR(DestinationBased):
    name = "d-dbr"

    def __init__(
        self, me: str, incarnation: int, matcher: str = "auto", clusters: tuple[str, ...] = (), address: str = ""
    ) -> None:
        """Ignores `clusters`: the whole overlay is one domain."""
        super().__init__(me, incarnation, matcher, (WHOLE_OVERLAY,), address)

"""Settings of Python's cycle collector that keep its pauses short.

The collector examines all container objects, and a million subscriptions take it more than a second. A broker's
lasting objects, such as subscriptions, are in no cycles: they end with their last reference. So the collector examines
young objects only, and takes the survivors for lasting ones. A cycle whose objects have survived is never collected.
So long-lived parts of a broker must break their cycles themselves, as `Connection` does when it is lost.
"""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 20_000
"""The number of new objects after which the youngest are examined. Publications are many short-lived objects."""
YOUNG_COLLECTIONS = 5
"""The number of such examinations after which survivors are examined once more."""


def limit_pauses() -> None:
    """Lets the collector examine at most some hundred thousand objects at a time."""
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_COLLECTIONS, 1_000)
    gc.callbacks.append(_freeze_survivors)


def _freeze_survivors(phase: str, info: dict[str, int]) -> None:
    if phase == "stop" and info["generation"] == 1:
        gc.freeze()

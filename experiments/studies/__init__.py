"""Studies of routing without simulated time: destination lists, memory, reorganisation. It imports no other package of
`experiments`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from experiments.studies.destination_lists import count_lists, draw_publications
    from experiments.studies.reorganisation import reorganise_by_load
    from experiments.studies.routing_memory import measure

__all__ = ["count_lists", "draw_publications", "measure", "reorganise_by_load"]

__getattr__ = lazy_exports(
    __name__,
    {
        "count_lists": "experiments.studies.destination_lists",
        "draw_publications": "experiments.studies.destination_lists",
        "measure": "experiments.studies.routing_memory",
        "reorganise_by_load": "experiments.studies.reorganisation",
    },
)

"""Which drops are the end of a publication for somebody.

A broker records each drop with a reason, and names the publication where it can. After a drop with a reason of this
table, nobody sends the publication again to whoever it was dropped for. Other drops ("queue full", "no link", "broker
queue full") are of a frame. The broker that answers for the publication sends it again, so they excuse nothing.
"""

from __future__ import annotations

RUN_ENDED = "under way when the run ended"

TERMINAL_DROPS = frozenset(
    (
        # A destination could not be reached for as long as publications are kept, or newer ones needed the room.
        "unreachable",
        # A broker that could not be reached for as long as publications are kept may have wanted it.
        "unknown interest",
        # A broker told of a subscription to it when it had been let go already, because newer ones needed the room.
        "wanted too late",
        # Its lifetime was over.
        "expired",
        # Its attributes cannot be read.
        "unreadable",
        # It came to a broker that does not know its tree any more.
        "tree is gone",
        # So many newer ones of its source were taken in that the broker cannot tell whether it has had it.
        "beyond the window",
        # The client was away, and more waited for it than is kept.
        "too many deliveries waiting",
        # Brokers or links were busy from the last publication to the end of the run.
        RUN_ENDED,
    )
)

"""The drops that end a publication for some receivers.

A broker records each drop with a reason, and names the publication if it can. After a drop with a reason of this
table, no broker sends the publication again to the receivers for which it was dropped. Other drops ("queue full",
"no link", "broker queue full") are of a frame. The broker that is responsible for the publication sends it again, so
such a drop does not excuse a missed delivery.
"""

from __future__ import annotations

RUN_ENDED = "under way when the run ended"

TERMINAL_DROPS = frozenset(
    (
        # A destination was unreachable for as long as publications are kept, or newer publications needed the space.
        "unreachable",
        # A broker was unreachable for as long as publications are kept, and may have had a matching subscription.
        "unknown interest",
        # A broker announced a matching subscription after the publication was removed to make space for newer ones.
        "wanted too late",
        # Its lifetime ended.
        "expired",
        # Its attributes cannot be decoded.
        "unreadable",
        # It arrived at a broker that has removed its tree.
        "tree is gone",
        # The broker received so many newer publications of its source that it cannot tell whether this is a duplicate.
        "beyond the window",
        # The client was disconnected, and its queue of deliveries was full.
        "too many deliveries waiting",
        # Brokers or links were busy from the last publication to the end of the run.
        RUN_ENDED,
    )
)

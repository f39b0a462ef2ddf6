"""Delta debugging: the fewest elements of a list that still fail.

Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE TSE 28(2), 2002: ddmin, complements
only. The result is 1-minimal unless the limit of runs ends the search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Element = TypeVar("Element")


def minimise(
    elements: Sequence[Element], fails: Callable[[tuple[Element, ...]], bool], runs_max: int
) -> tuple[Element, ...]:
    """Removes elements as long as the rest fails. `elements` fails. Calls `fails` at most `runs_max` times."""
    kept = tuple(elements)
    parts = 2
    runs = 0
    while len(kept) >= 1:
        size = -(-len(kept) // parts)
        for start in range(0, len(kept), size):
            if runs >= runs_max:
                return kept
            runs += 1
            rest = kept[:start] + kept[start + size :]
            if fails(rest):
                kept = rest
                parts = max(parts - 1, 2)
                break
        else:
            if size == 1:
                return kept
            parts = min(2 * parts, len(kept))
    return kept

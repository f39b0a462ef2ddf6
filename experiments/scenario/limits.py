"""Limits of a scenario's values, written as annotations of their types: `Annotated[float, ABOVE_ZERO]`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    above: float | None = None
    at_least: float | None = None
    at_most: float | None = None

    def holds(self, value: float) -> bool:
        return (
            (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
        )

    def in_words(self) -> str:
        parts = {"above": self.above, "at least": self.at_least, "at most": self.at_most}
        return " and ".join(f"{words} {limit:g}" for words, limit in parts.items() if limit is not None)


ABOVE_ZERO = Limit(above=0)
AT_LEAST_ZERO = Limit(at_least=0)
AT_LEAST_ONE = Limit(at_least=1)
SHARE = Limit(at_least=0, at_most=1)
POSITIVE_SHARE = Limit(above=0, at_most=1)

"""Converts values of command-line options that several commands have."""

from __future__ import annotations

from experiments.errors import BenchPlanError


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """The numbers of a text with commas between; none for an empty text."""
    try:
        return tuple(int(number) for number in text.split(",")) if text else ()
    except ValueError:
        raise BenchPlanError(f"{option} {text}: write whole numbers with commas between, as 5000,10000") from None

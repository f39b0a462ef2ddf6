"""The papers' figures on routing as experiments: one module for each, listed in `registry`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from experiments.figures.figure import Figure

__all__ = ["Figure"]

__getattr__ = lazy_exports(
    __name__,
    {
        "Figure": "experiments.figures.figure",
    },
)

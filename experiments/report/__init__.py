"""All results on one static page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from experiments.report.page import write_page

__all__ = ["write_page"]

__getattr__ = lazy_exports(
    __name__,
    {
        "write_page": "experiments.report.page",
    },
)

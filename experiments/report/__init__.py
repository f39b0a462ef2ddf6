"""All results on one static page, and the page of the demo. Of `experiments` it may import figures and workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from experiments.report.page import write_demo_page, write_page

__all__ = ["write_demo_page", "write_page"]

__getattr__ = lazy_exports(
    __name__,
    {"write_demo_page": "experiments.report.page", "write_page": "experiments.report.page"},
)

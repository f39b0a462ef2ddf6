"""Overlays of broker processes on this machine: commands start, supervise, show and stop them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.deployment.local.lifecycle import start_overlay, stop_overlay

__all__ = ["start_overlay", "stop_overlay"]

__getattr__ = lazy_exports(
    __name__,
    {
        "start_overlay": "broker.deployment.local.lifecycle",
        "stop_overlay": "broker.deployment.local.lifecycle",
    },
)

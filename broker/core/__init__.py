"""The broker without I/O: it turns an input and the time into effects.

`Broker.handle(input, now)` returns the effects of one input. The simulation and the runtime drive the same class. This
package imports routing and matching only; it has no clock, no socket and no thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker.core.broker import Broker
    from broker.core.effects import Effect
    from broker.core.inputs import Input
    from broker.core.settings import Settings

__all__ = ["Broker", "Effect", "Input", "Settings"]

__getattr__ = lazy_exports(
    __name__,
    {
        "Broker": "broker.core.broker",
        "Effect": "broker.core.effects",
        "Input": "broker.core.inputs",
        "Settings": "broker.core.settings",
    },
)

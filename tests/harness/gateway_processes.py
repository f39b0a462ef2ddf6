"""A chain of broker processes with MQTT gateways, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.harness.conditions import wait_until
from tests.harness.mercast_broker import BrokerProcess
from tests.harness.ports import free_port


class GatewayProcess(BrokerProcess):
    """A broker that may have a gateway."""

    def gateway(self) -> dict[str, Any]:
        """The gateway's part of the status."""
        gateway: dict[str, Any] = self.status()["parts"]["mqtt"]
        return gateway


class RunningOverlay:
    """A chain of brokers, any of which may have a gateway."""

    def __init__(
        self,
        folder: Path,
        brokers: Sequence[tuple[str, str]],
        shared: str,
        *,
        general: str = "",
        dead_after: str = "2s",
    ) -> None:
        """`brokers` are pairs of an id and its `mqtt` in TOML, which is empty for a broker without a gateway.

        `shared` is the content of the table `mqtt`, and `general` further tables.
        """
        self.path = folder / "overlay.toml"
        lines = [
            "schema = 1",
            "[overlay]",
            'name = "test"',
            "[heartbeat]",
            'every = "200ms"',
            f'dead_after = "{dead_after}"',
        ]
        lines += [general, "[mqtt]", shared]
        for id, mqtt in brokers:
            lines += ["[[broker]]", f'id = "{id}"', f'listen = "127.0.0.1:{free_port()}"']
            lines += [f"mqtt = {mqtt}"] if mqtt else []
        ids = [id for id, _ in brokers]
        for one, other in pairwise(ids):
            lines += ["[[link]]", f'between = ["{one}", "{other}"]']
        self.path.write_text("\n".join(lines) + "\n")
        self.brokers = {id: GatewayProcess(self.path, id) for id in ids}
        self._stack = ExitStack()

    def start(self) -> None:
        for broker in self.brokers.values():
            broker.launch()
            self._stack.callback(broker.stop)
        for broker in self.brokers.values():
            broker.wait_until_ready()
        for id in self.brokers:
            self.wait_for_links(id)

    def wait_for_links(self, id: str) -> None:
        broker = self.brokers[id]
        wait_until(lambda: all(each["is_up"] for each in broker.status()["neighbours"]), what=f"{id} has all its links")

    def wait_for_names(self, id: str, count: int) -> None:
        """Waits until the gateway is synchronised and has `count` subscriptions."""
        broker = self.brokers[id]

        def is_synchronised() -> bool:
            gateway = broker.gateway()
            return bool(gateway["is_synchronised"] and gateway["names"] == count)

        wait_until(is_synchronised, what=f"the gateway of {id} has {count} subscriptions in place")

    def wait_for_remote(self, id: str, count: int) -> None:
        """Waits until the broker knows of `count` subscriptions of other brokers."""
        broker = self.brokers[id]
        wait_until(
            lambda: broker.status()["tables"]["remote_subscriptions"] == count,
            what=f"{id} knows of {count} subscriptions at other brokers",
        )

    def stop(self) -> None:
        self._stack.close()

"""Brokers as real processes with gateways, for tests."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.harness.conditions import wait_until
from tests.harness.mosquitto import WAIT_S
from tests.harness.ports import free_port

ROOT = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class RunningBroker:
    process: subprocess.Popen[str]
    admin: str
    listen: str

    def status(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://{self.admin}/status", timeout=WAIT_S) as answer:
            status: dict[str, Any] = json.load(answer)
            return status

    def gateway(self) -> dict[str, Any]:
        of_gateway: dict[str, Any] = self.status()["parts"]["mqtt"]
        return of_gateway

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://{self.admin}/metrics", timeout=WAIT_S) as answer:
            text: str = answer.read().decode()
            return text


class RunningOverlay:
    """A chain of brokers; each may have an MQTT broker's port, and keys for its gateway in TOML."""

    def __init__(
        self,
        folder: Path,
        brokers: Sequence[tuple[str, str]],
        shared: str,
        *,
        general: str = "",
        dead_after: str = "2s",
    ) -> None:
        """`brokers` are pairs of an id and what its `mqtt` is in TOML, or nothing."""
        self._folder = folder
        self.path = folder / "overlay.toml"
        self.brokers: dict[str, RunningBroker] = {}
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
        self._ids = ids

    def start(self) -> None:
        for id in self._ids:
            self.start_broker(id)
        for id in self._ids:
            self.wait_for_links(id)

    def start_broker(self, id: str) -> RunningBroker:
        command = [sys.executable, "-m", "mercast", "broker", str(self.path), "--id", id]
        with (self._folder / f"{id}.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=self._folder)
        assert process.stdout is not None
        line = process.stdout.readline()
        process.stdout.close()
        assert line, (self._folder / f"{id}.log").read_text()
        serving = json.loads(line)
        broker = RunningBroker(process, serving["admin"], serving["listen"])
        self.brokers[id] = broker
        return broker

    def wait_for_links(self, id: str) -> None:
        broker = self.brokers[id]
        wait_until(lambda: all(each["is_up"] for each in broker.status()["neighbours"]), what=f"{id} has all its links")

    def wait_for_names(self, id: str, count: int) -> None:
        broker = self.brokers[id]

        def is_so() -> bool:
            gateway = broker.gateway()
            return bool(gateway["is_synchronised"] and gateway["names"] == count)

        wait_until(is_so, what=f"the gateway of {id} has {count} subscriptions in place")

    def wait_for_remote(self, id: str, count: int) -> None:
        """Subscriptions of other brokers that this one knows of."""
        broker = self.brokers[id]
        wait_until(
            lambda: broker.status()["tables"]["remote_subscriptions"] == count,
            what=f"{id} knows of {count} subscriptions at other brokers",
        )

    def stop_broker(self, id: str, how: signal.Signals = signal.SIGTERM) -> int:
        broker = self.brokers.pop(id)
        broker.process.send_signal(how)
        return broker.process.wait(WAIT_S)

    def stop(self) -> None:
        for broker in self.brokers.values():
            broker.process.terminate()
        for broker in self.brokers.values():
            try:
                broker.process.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                broker.process.kill()
                broker.process.wait(WAIT_S)
                raise
        self.brokers.clear()

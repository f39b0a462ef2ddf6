"""A broker as a process: signals, the line of JSON that announces it, and its exit."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from broker.config.address import parse_address
from broker.config.overlay_config import BrokerConfig, ConfigError, read_config
from broker.log import LEVELS, log_to_stderr
from broker.mqtt.lifecycle import run_gateway
from broker.runtime.garbage_collection import limit_pauses
from broker.runtime.server import BrokerServer
from topologies.errors import nearest


def run_broker(path: Path, id: str, join: str | None, is_insecure: bool, trace: Path | None, level: str) -> None:
    """Runs the broker `id` of the overlay file until a signal stops it, it leaves the overlay, or it fails."""
    if level not in LEVELS:
        raise ConfigError(f"--log is {level!r}; {nearest(level, LEVELS)}")
    log_to_stderr(level)
    config = read_config(path).broker(id)
    asyncio.run(_serve(config, join, is_insecure, trace))


async def _serve(config: BrokerConfig, join: str | None, is_insecure: bool, trace: Path | None) -> None:
    server = BrokerServer(config, is_insecure=is_insecure, trace=trace)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    loop.add_signal_handler(signal.SIGHUP, server.reload_security)
    await server.start(parse_address(join) if join else None)
    limit_pauses()
    # The event loop waits this long for a thread that reads a long expression.
    sys.setswitchinterval(0.001)
    print(json.dumps(_addresses(server)), flush=True)
    stopping = asyncio.create_task(stop.wait())
    leaving = asyncio.create_task(server.leave_requested.wait())
    async with run_gateway(config, server.security, server.listen, server.parts):
        await asyncio.wait((stopping, leaving, server.failed), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    leaving.cancel()
    await server.stop(leaves=server.leave_requested.is_set())
    if server.failed.done():
        server.failed.result()
    if server.leave_requested.is_set():
        # This line tells a supervisor not to restart the process.
        print(json.dumps({"broker": config.id, "left": True}), flush=True)


def _addresses(server: BrokerServer) -> dict[str, object]:
    return {
        "broker": server.config.id,
        "listen": str(server.listen),
        "admin": str(server.admin.address) if server.admin.address else None,
        "pid": os.getpid(),
    }

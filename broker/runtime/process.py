"""A broker as a process: signals, the line that says that it serves, and its end."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from pathlib import Path

from broker.addresses import parse_address
from broker.config import BrokerConfig, ConfigError, read_config
from broker.gateway.beside import gateway_beside
from broker.runtime.log import LEVELS, log_to_stderr
from broker.runtime.server import BrokerServer
from topologies.errors import nearest

LEAVE_WITHIN_S = 30.0


class AdminError(Exception):
    """The broker's admin pages cannot be reached, or it would not do as told."""

    exit_code = 4


def run_broker(path: Path, id: str, join: str | None, is_insecure: bool, trace: Path | None, level: str) -> None:
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
    # Publications are many small objects that die young and form no cycles: looking for cycles rarely saves a fifth.
    gc.set_threshold(20_000, 50, 100)
    print(json.dumps(_addresses(server)), flush=True)
    stopping = asyncio.create_task(stop.wait())
    leaving = asyncio.create_task(server.asked_to_leave.wait())
    async with gateway_beside(server):
        await asyncio.wait((stopping, leaving, server.failed), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    leaving.cancel()
    await server.stop(leaves=server.asked_to_leave.is_set())
    if server.failed.done():
        server.failed.result()
    if server.asked_to_leave.is_set():
        # Whoever started this process is not to start it again.
        print(json.dumps({"broker": config.id, "left": True}), flush=True)


def _addresses(server: BrokerServer) -> dict[str, object]:
    return {
        "broker": server.config.id,
        "listen": str(server.listen),
        "admin": str(server.admin_address) if server.admin_address else None,
        "pid": os.getpid(),
    }


def ask_to_leave(overlay: str | None, id: str | None, admin: str | None) -> None:
    # A broker's process has no use for these.
    import urllib.error
    import urllib.request

    from broker.deployment.admin_pages import find_admin_pages

    address = parse_address(admin) if admin else None
    if address is None:
        if overlay is None or id is None:
            raise ConfigError("say which broker is to leave: OVERLAY.toml and --id, or --admin HOST:PORT")
        address = find_admin_pages(overlay, id)
    request = urllib.request.Request(f"http://{address}/leave", method="POST", headers={"X-Mercast": "leave"})
    try:
        with urllib.request.urlopen(request, timeout=LEAVE_WITHIN_S) as answer:
            print(answer.read().decode().strip(), file=sys.stderr)
    except urllib.error.HTTPError as error:
        raise AdminError(f"{address} answered {error.code}: {error.read().decode()[:200]}") from error
    except (urllib.error.URLError, OSError) as error:
        raise AdminError(f"no broker's admin pages at {address}: {getattr(error, 'reason', error)}") from error

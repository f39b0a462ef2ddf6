"""Shows the overlays that run on this machine as a table or as JSON, once or repeatedly."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from broker.config.duration import DurationError
from broker.deployment.local.admin_client import AdminClient, BrokerStatus
from broker.deployment.local.errors import DeploymentError
from broker.deployment.local.lifecycle import running_overlays
from broker.deployment.local.preflight import lacks_admin_pages
from broker.deployment.local.run_folder import LEFT, BrokerState, OverlayState

if TYPE_CHECKING:
    from rich.table import Table

SHORTEST_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """One broker in the output of `mercast status`."""

    id: str
    phase: str
    pid: int | None
    listen: str | None
    admin: str | None
    restarts: int
    status: BrokerStatus | None
    """None if the broker did not answer."""


@dataclass(frozen=True, slots=True)
class OverlayStatus:
    overlay: str
    file: str
    brokers: tuple[BrokerLine, ...]


def collect_statuses(names: Sequence[str], admins: Sequence[str]) -> list[OverlayStatus]:
    """Statuses of the named overlays, or of all that run here. With `admins`, of the brokers at these addresses."""
    if admins:
        return [OverlayStatus("", "", tuple(map(_line_of_address, admins)))]
    states = [state for folder in running_overlays(names) if (state := folder.state()) is not None]
    return [overlay_status(state) for state in states]


def overlay_status(state: OverlayState) -> OverlayStatus:
    with ThreadPoolExecutor(max_workers=16) as pool:
        line = partial(_line, AdminClient(Path(state.file)))
        return OverlayStatus(state.name, state.file, tuple(pool.map(line, state.brokers)))


def _line(client: AdminClient, broker: BrokerState) -> BrokerLine:
    phase = broker.phase if broker.is_alive or broker.process is None else "gone"
    pid = broker.process.pid if broker.process is not None else None
    status = client.fetch_status(broker.admin) if broker.admin is not None else None
    return BrokerLine(broker.id, phase, pid, broker.listen, broker.admin, broker.restarts, status)


def _line_of_address(admin: str) -> BrokerLine:
    status = AdminClient().fetch_status(admin)
    if status is None:
        raise DeploymentError(f"no broker answers at the admin address {admin}")
    return BrokerLine(status.broker, "serving", None, status.listen, admin, 0, status)


def print_overlays(overlays: Sequence[OverlayStatus], *, is_json: bool, with_addresses: bool = False) -> None:
    """Prints overlays. `with_addresses` shows the brokers' addresses instead of their figures."""
    if is_json:
        print(json.dumps([asdict(overlay) for overlay in overlays], indent=2))
        return
    if not overlays:
        raise DeploymentError("no overlay is up here; `mercast up demo` starts one")
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        # A program that reads a pipe needs complete lines, even if they are long.
        console = Console(width=160)
    for overlay in overlays:
        console.print(_addresses(overlay) if with_addresses else _table(overlay))
    if lacks_admin_pages() and any(_lacks_admin_address(line) for overlay in overlays for line in overlay.brokers):
        print("columns with ? need the brokers' admin pages: pip install 'mercast[admin]'", file=sys.stderr)


def _lacks_admin_address(line: BrokerLine) -> bool:
    return line.listen is not None and line.admin is None


def watch_overlays(names: Sequence[str], admins: Sequence[str], every_s: float, *, is_json: bool) -> None:
    """Prints overlays at the interval until the user interrupts."""
    if every_s < SHORTEST_EVERY_S:
        raise DurationError(f"--every is {every_s:g}s; brokers are asked every {SHORTEST_EVERY_S:g}s at the most")
    try:
        if is_json:
            while True:
                print(json.dumps([asdict(overlay) for overlay in collect_statuses(names, admins)]), flush=True)
                time.sleep(every_s)
        _watch_tables(names, admins, every_s)
    except KeyboardInterrupt:
        return


def _watch_tables(names: Sequence[str], admins: Sequence[str], every_s: float) -> None:
    from rich.console import Console, Group
    from rich.live import Live

    with Live(console=Console(), auto_refresh=False, screen=False) as live:
        while True:
            overlays = collect_statuses(names, admins)
            live.update(Group(*map(_table, overlays)) if overlays else "no overlay is up here", refresh=True)
            time.sleep(every_s)


def _empty_table(overlay: OverlayStatus, *headings: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    protocol = next((line.status.protocol for line in overlay.brokers if line.status is not None), "")
    title = ", ".join(part for part in (overlay.overlay, protocol) if part)
    table = Table(*headings, title=title or None, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in table.columns:
        column.no_wrap = True
    return table


def _addresses(overlay: OverlayStatus) -> Table:
    table = _empty_table(overlay, "broker", "clients connect to", "admin pages", "process", "links")
    for line in overlay.brokers:
        server = f"mercast://{line.listen}" if line.listen else ""
        admin = f"http://{line.admin}" if line.admin else ""
        table.add_row(line.id, server, admin, str(line.pid or ""), _figures(line)[0])
    return table


def _table(overlay: OverlayStatus) -> Table:
    table = _empty_table(overlay, "broker", "state", "address")
    for heading in ("links", "clients", "subs", "remote", "pub/s", "deliv/s", "queued", "drops", "MB"):
        table.add_column(heading, justify="right", no_wrap=True)
    for line in overlay.brokers:
        state = f"{line.phase}, {line.restarts} restarts" if line.restarts else line.phase
        table.add_row(line.id, state, line.listen or "", *_figures(line))
    return table


def _figures(line: BrokerLine) -> list[str]:
    status = line.status
    if status is None:
        return ["" if line.phase == LEFT else "?"] * 9
    links = f"{sum(status.neighbours.values())}/{len(status.neighbours)}"
    return [
        links,
        f"{status.clients:,}",
        f"{status.local_subscriptions:,}",
        f"{status.remote_subscriptions:,}",
        f"{status.published_per_s:,.0f}",
        f"{status.delivered_per_s:,.0f}",
        f"{status.queued:,}",
        f"{sum(status.drops.values()):,}",
        f"{status.memory_bytes / 1e6:.0f}",
    ]

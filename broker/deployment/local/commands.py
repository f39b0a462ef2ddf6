"""The commands `mercast up`, `down`, `status` and `leave`, for overlays of broker processes on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def up(
    overlay: Annotated[
        str, typer.Argument(help="An overlay file, or the name of a shipped overlay. `list` prints the names.")
    ],
    only: Annotated[
        list[str] | None, typer.Option(help="Start only these brokers, for example b1,b2. The others run elsewhere.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="A name for the running overlay, instead of its own.")] = None,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="How long to wait for all links.")] = "30s",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Accept connections from other machines without authentication.")
    ] = False,
    allow_missing_peers: Annotated[
        bool, typer.Option("--allow-missing-peers", help="With --only: do not wait for brokers that run elsewhere.")
    ] = False,
    trace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Record traces in this folder, for `mercast analyse`.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the brokers as JSON instead of a table.")] = False,
) -> None:
    """Start one process for each broker of an overlay, and wait until they are connected.

    A supervisor process keeps running and restarts brokers that exit. Logs and
    process ids are in the run folder ($MERCAST_RUN_DIR).

    \b
    Examples:
      mercast up demo
      mercast up overlay.toml --only b1,b2
      mercast up overlay.toml --name second
      mercast up demo --trace traces
    """
    from broker.config.duration import parse_duration
    from broker.deployment.local.lifecycle import UpOptions, start_overlay
    from broker.deployment.local.overlay_files import shipped_names
    from broker.deployment.local.status import overlay_status, print_overlays
    from broker.progress import progress_bar

    if overlay == "list":
        print("\n".join(shipped_names()))
        return
    options = UpOptions(
        name=name,
        only=tuple(id for each in only or () for id in each.split(",") if id),
        is_insecure=insecure,
        allows_missing_peers=allow_missing_peers,
        trace=trace,
        timeout_s=parse_duration(timeout, "--timeout") / 1e9,
    )
    with progress_bar() as progress:
        state = start_overlay(overlay, options, progress)
    print_overlays([overlay_status(state)], is_json=as_json, with_addresses=True)
    if not as_json:
        typer.echo(f"overlay {state.name} is up; `mercast down {state.name}` stops it", err=True)


def down(
    overlay: Annotated[list[str] | None, typer.Argument(help="Names of overlays. Default: the one that runs.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Stop all overlays that run here.")] = False,
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="Kill brokers that take longer to stop.")] = "10s",
) -> None:
    """Stop an overlay's brokers in good order.

    \b
    Examples:
      mercast down
      mercast down demo
      mercast down --all
    """
    from broker.config.duration import parse_duration
    from broker.deployment.local.lifecycle import overlays_to_stop, stop_overlay

    for folder in overlays_to_stop(overlay or [], every=every):
        state = stop_overlay(folder, parse_duration(timeout, "--timeout") / 1e9)
        typer.echo(f"overlay {state.name} is down ({len(state.brokers)} brokers)", err=True)


def status(
    overlay: Annotated[list[str] | None, typer.Argument(help="Names of overlays. Default: all that run here.")] = None,
    admin: Annotated[
        list[str] | None, typer.Option(metavar="HOST:PORT", help="Show the broker with this admin address instead.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Update the table until interrupted.")] = False,
    every: Annotated[str, typer.Option(metavar="DURATION", help="With --watch: the interval, at least 100ms.")] = "1s",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; with --watch, one line per update.")] = False,
) -> None:
    """Show the brokers that run here: addresses, links, clients, tables, queues, drops.

    \b
    Examples:
      mercast status
      mercast status demo --watch
      mercast status --admin 127.0.0.1:7101 --json
    """
    from broker.config.duration import parse_duration
    from broker.deployment.local.status import collect_statuses, print_overlays, watch_overlays

    if watch:
        watch_overlays(overlay or [], admin or [], parse_duration(every, "--every") / 1e9, is_json=as_json)
    else:
        print_overlays(collect_statuses(overlay or [], admin or []), is_json=as_json)


def leave(
    overlay: Annotated[
        str | None, typer.Argument(help="The overlay file, or the name of an overlay that runs here.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="The id of the broker.")] = None,
    admin: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="The broker's admin address, instead of overlay and id.")
    ] = None,
) -> None:
    """Remove a broker from its overlay in good order, and stop it.

    The broker disconnects its clients and delivers the publications that it has
    accepted. The other brokers remove it and do not wait for its return.

    \b
    Examples:
      mercast leave overlay.toml --id b3
      mercast leave demo --id b3
      mercast leave --admin 127.0.0.1:7103
    """
    from broker.deployment.local.leave import request_leave

    request_leave(overlay, id, admin)


COMMANDS: dict[str, Callable[..., None]] = {"leave": leave, "up": up, "down": down, "status": status}

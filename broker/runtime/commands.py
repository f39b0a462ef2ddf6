"""The commands that run a broker and look at its store."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def broker(
    overlay: Annotated[Path, typer.Argument(help="The overlay's file.", metavar="OVERLAY.toml")],
    id: Annotated[str, typer.Option("--id", help="Which of the overlay's brokers this is.")],
    join: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Enter a running overlay by a link to the broker there.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond this machine without asking anybody who they are.")
    ] = False,
    trace: Annotated[Path | None, typer.Option(metavar="DIR", help="Record a trace into this new folder.")] = None,
    log: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Run one broker in the foreground, until it is told to stop.

    Prints one line of JSON when it serves, with its addresses, and one when it
    has left the overlay. Logs are lines of JSON on standard error. SIGTERM and
    Ctrl-C stop it in good order.

    \b
    Examples:
      mercast broker overlay.toml --id b1
      mercast broker mine.toml --id b9 --join 127.0.0.1:7001
    """
    arguments = json.dumps([str(overlay), id, join, insecure, str(trace) if trace else None, log])
    # The same process continues without the modules that parsed the command line.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "broker.runtime", arguments])


_STORE = typer.Argument(help="The store: its folder, its file, or an overlay file with --id.", metavar="PATH")
_STORE_OF = typer.Option("--id", help="The broker, if PATH is an overlay file.")


def store_check(
    path: Annotated[Path, _STORE],
    id: Annotated[str | None, _STORE_OF] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check a broker's store for damage, without changing it.

    Exit code 0: the store is sound. 1: it is damaged. 3: it is no store.
    4: a broker has it open.

    \b
    Examples:
      mercast store check data/b1
      mercast store check overlay.toml --id b1 --json
    """
    from broker.progress import progress_bar
    from broker.runtime import store_reports

    with progress_bar() as show:
        report = store_reports.check_store(store_reports.find_store(path, id), show)
    print(store_reports.as_json(report) if as_json else store_reports.describe(report))
    if not report.is_sound:
        raise typer.Exit(1)


def store_export(
    path: Annotated[Path, _STORE],
    id: Annotated[str | None, _STORE_OF] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this new file instead of standard output.")
    ] = None,
) -> None:
    """Write the readable records of a broker's store as lines of JSON.

    A line has `key` and `record`. The line of a damaged record has `damaged`,
    with the reason, and the bytes that are there. Bytes are base64. The file is
    readable by its owner alone. Exit codes are those of `mercast store check`.

    \b
    Examples:
      mercast store export data/b1 | head
      mercast store export overlay.toml --id b1 --out records.jsonl
    """
    from broker.progress import progress_bar
    from broker.runtime import store_reports

    store = store_reports.find_store(path, id)
    with store_reports.open_output(out) as stream, progress_bar() as show:
        lines, problems = store_reports.export_store(store, stream, show)
    if out is not None:
        print(f"{lines} records in {out}")
    for problem in problems:
        print(f"damage: {problem}", file=sys.stderr)
    if problems:
        raise typer.Exit(1)


COMMANDS: dict[str, Callable[..., None]] = {
    "broker": broker,
    "store check": store_check,
    "store export": store_export,
}

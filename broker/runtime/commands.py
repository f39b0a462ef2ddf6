"""The command that runs a broker."""

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


COMMANDS: dict[str, Callable[..., None]] = {"broker": broker}

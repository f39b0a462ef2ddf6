"""Commands that make certificates and tokens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def certs(
    overlay: Annotated[Path, typer.Argument(help="The overlay's file.", metavar="OVERLAY.toml")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder for them.")] = Path("certs"),
    client: Annotated[list[str] | None, typer.Option(help="A client that gets one too; several are possible.")] = None,
) -> None:
    """Write certificates for an overlay: an authority, its brokers, and clients.

    They work as they are. The key of the authority is written beside them:
    good for trying out, and for anything else to be kept somewhere safe.

    \b
    Examples:
      mercast certs overlay.toml
      mercast certs overlay.toml --out secrets --client desk --client sensor-1
    """
    from broker.security.issue_certificates import make_certificates

    make_certificates(overlay, out, tuple(client or ("client",)))


def token(
    name: Annotated[str, typer.Argument(help="The client's name.")],
) -> None:
    """Make a token for a client, and the lines of the access list that know it.

    The token is on standard output, the lines are on standard error: the list
    holds a hash, so reading it lets nobody in.

    \b
    Examples:
      mercast token sensor-1 > sensor-1.token
      export MERCAST_CLIENT=sensor-1 MERCAST_TOKEN=$(cat sensor-1.token)
      mercast pub 'room=lab temperature=31'
    """
    from broker.security.issue_certificates import make_token

    make_token(name)


COMMANDS: dict[str, Callable[..., None]] = {"certs": certs, "token": token}

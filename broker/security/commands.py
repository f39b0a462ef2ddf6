"""The commands `mercast certs` and `mercast token`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def certs(
    overlay: Annotated[Path, typer.Argument(help="The overlay file.", metavar="OVERLAY.toml")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to create.")] = Path("certs"),
    client: Annotated[
        list[str] | None, typer.Option(help="The name of a client to issue a certificate for. Repeatable.")
    ] = None,
) -> None:
    """Write certificates for an overlay: an authority, its brokers, and clients.

    The files are ready to use. The folder includes the authority's key. Keep
    that key in a safe place unless you only try Mercast out.

    \b
    Examples:
      mercast certs overlay.toml
      mercast certs overlay.toml --out secrets --client desk --client sensor-1
    """
    from broker.security.credential_issuer import issue_certificates

    issue_certificates(overlay, out, tuple(client or ("client",)))


def token(
    name: Annotated[str, typer.Argument(help="The client's name.")],
) -> None:
    """Create a token for a client, and its rule for the access list.

    The token is printed on standard output, the rule on standard error. The
    rule holds only a hash, so nobody can connect with the access list alone.

    \b
    Examples:
      mercast token sensor-1 > sensor-1.token
      export MERCAST_CLIENT=sensor-1 MERCAST_TOKEN=$(cat sensor-1.token)
      mercast pub 'room=lab temperature=31'
    """
    from broker.security.credential_issuer import issue_token

    issue_token(name)


COMMANDS: dict[str, Callable[..., None]] = {"certs": certs, "token": token}

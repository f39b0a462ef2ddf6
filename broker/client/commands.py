"""Commands of clients: publish, subscribe, measure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

Server = Annotated[
    str | None,
    typer.Option(
        "--server", "-s", metavar="URL", help="mercast://host:port, several with commas. Default: $MERCAST_SERVER."
    ),
]
Mode = Annotated[str, typer.Option(help="at-least-once or at-most-once.")]


def pub(
    publication: Annotated[
        list[str] | None,
        typer.Argument(help="As 'symbol=IBM price=92.5' or a JSON object. Without: JSON lines from standard input."),
    ] = None,
    server: Server = None,
    payload: Annotated[str, typer.Option(help="Text that goes with it, unread by brokers.")] = "",
    expires: Annotated[str | None, typer.Option(metavar="DURATION", help="Not delivered later than, as 10s.")] = None,
    count: Annotated[int, typer.Option(min=1, help="Publish it so often.")] = 1,
    rate: Annotated[float, typer.Option(min=0, help="Publications a second; 0 for as fast as the broker takes.")] = 0,
    advertise: Annotated[
        list[str] | None, typer.Option(metavar="EXPRESSION", help="Advertise this first, where overlays are strict.")
    ] = None,
    mode: Mode = "at-least-once",
    timeout: Annotated[str, typer.Option(metavar="DURATION", help="For the connection and each answer.")] = "10s",
    as_json: Annotated[bool, typer.Option("--json", help="A line with the id of each publication.")] = False,
) -> None:
    """Publish, and return when the broker answers for it.

    \b
    Examples:
      mercast pub 'symbol=IBM price=92.5'
      mercast pub '{"symbol": "IBM", "price": 92.5}' --payload 'last trade'
      mercast pub symbol=IBM price=92.5 --count 1000 --rate 100
      mercast pub -s mercast://127.0.0.1:7003 < quotes.jsonl
    """
    from broker.client.pub import PubOptions, run

    run(
        publication or [],
        PubOptions(
            server=server,
            payload=payload.encode(),
            expires_s=_seconds(expires),
            count=count,
            rate=rate,
            advertise=tuple(advertise or ()),
            mode=mode,
            timeout_s=_seconds(timeout) or 0.0,
            is_json=as_json,
        ),
    )


def sub(
    expression: Annotated[list[str], typer.Argument(help="What to wait for; several: any of them.")],
    server: Server = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many.")] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="End after this time; exit code 5 if --count was not reached.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line, with id and payload.")] = False,
    durable: Annotated[
        str | None, typer.Option(metavar="NAME", help="As this client: what comes while it is away waits for it.")
    ] = None,
    mode: Mode = "at-least-once",
) -> None:
    """Print publications that match, one a line, until it is stopped.

    \b
    Examples:
      mercast sub "price > 90"
      mercast sub "symbol = 'IBM' AND price BETWEEN 80 AND 120" --count 1 --timeout 10s
      mercast sub "price > 90" --json -s mercast://127.0.0.1:7001,127.0.0.1:7002
      mercast sub "price > 90" --durable desk-1
    """
    from broker.client.sub import SubOptions, run

    run(
        expression,
        SubOptions(
            server=server,
            count=count,
            timeout_s=_seconds(timeout),
            is_json=as_json,
            durable=durable,
            mode=mode,
        ),
    )


def _seconds(text: str | None) -> float | None:
    from broker.durations import parse_duration

    return None if text is None else parse_duration(text) / 1e9


COMMANDS: dict[str, Callable[..., None]] = {"pub": pub, "sub": sub}

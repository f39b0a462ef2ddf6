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
    id: Annotated[
        str | None, typer.Option(metavar="ID", help="Subscribers receive one publication with this id and --name.")
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Publish as this client. Default: a random name.")] = "",
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
      mercast pub order=7 state=paid --name shop --id order-7-paid
    """
    from broker.client.cli.pub import PubOptions, run

    run(
        publication or [],
        PubOptions(
            server=server,
            payload=payload.encode(),
            expires_s=_seconds(expires, "--expires"),
            count=count,
            rate=rate,
            advertise=tuple(advertise or ()),
            id=id,
            name=name,
            mode=mode,
            timeout_s=_seconds(timeout, "--timeout") or 0.0,
            is_json=as_json,
        ),
    )


def sub(
    expression: Annotated[list[str], typer.Argument(help="What to wait for; several: any of them.")],
    server: Server = None,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many.")] = None,
    timeout: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="End after this time; exit code 5 if --count was not reached."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line, with id and payload.")] = False,
    background: Annotated[
        bool, typer.Option("--background", help="Return when subscribed, and go on printing in the background.")
    ] = False,
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
      mercast sub "price > 90" --count 1 --background
    """
    from broker.client.cli.sub import SubOptions, run

    run(
        expression,
        SubOptions(
            server=server,
            count=count,
            timeout_s=_seconds(timeout, "--timeout"),
            is_json=as_json,
            durable=durable,
            mode=mode,
        ),
        is_background=background,
    )


def bench(
    server: Server = None,
    subscriber_server: Annotated[
        str | None, typer.Option(metavar="URL", help="Where subscribers connect, if not where publishers do.")
    ] = None,
    publishers: Annotated[int, typer.Option(help="Clients that publish.")] = 1,
    subscribers: Annotated[int, typer.Option(help="Clients that subscribe.")] = 10,
    subscriptions: Annotated[int, typer.Option(help="Subscriptions of all of them together.")] = 10_000,
    matching: Annotated[float, typer.Option(help="Share of subscriptions that a publication matches.")] = 0.001,
    size: Annotated[int, typer.Option(help="Bytes of a publication, attributes and payload.")] = 200,
    rate: Annotated[float, typer.Option(min=0, help="Publications a second; 0 for as many as are taken.")] = 0,
    duration: Annotated[str, typer.Option(metavar="DURATION", help="Measured time.")] = "10s",
    warm_up: Annotated[str, typer.Option(metavar="DURATION", help="Time before that.")] = "2s",
    mode: Mode = "at-least-once",
    window: Annotated[int, typer.Option(min=1, help="Deliveries on their way to a client.")] = 2048,
    seed: Annotated[int, typer.Option(help="The same seed gives the same subscriptions and publications.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
) -> None:
    """Put load on a running overlay: throughput, latencies, and what did not arrive.

    Publishers and subscribers are in this one process. With --rate, latencies
    count from when a publication was due. In at-least-once mode a publication
    that is owed and did not come ends the command with exit code 1.

    \b
    Examples:
      mercast bench
      mercast bench --mode at-most-once --duration 20s
      mercast bench --rate 2500 --subscriber-server mercast://127.0.0.1:7005
      mercast bench --subscribers 1 --subscriptions 1 --matching 0.5 --json
    """
    from broker.client.cli.bench import BenchOptions, run_bench
    from broker.client.cli.bench_report import print_result
    from broker.client.errors import ClientError
    from broker.client.options import chosen_servers
    from broker.progress import progress_bar

    chosen = chosen_servers(server)
    options = BenchOptions(
        server=chosen,
        subscriber_server=subscriber_server or chosen,
        publishers=publishers,
        subscribers=subscribers,
        subscriptions=subscriptions,
        matching=matching,
        size=size,
        rate=rate,
        duration_s=_seconds(duration, "--duration") or 0.0,
        warm_up_s=_seconds(warm_up, "--warm-up") or 0.0,
        mode=mode,
        window=window,
        seed=seed,
    )
    with progress_bar() as progress:
        result = run_bench(options, progress)
    print_result(result, is_json=as_json)
    if result.missing and mode == "at-least-once":
        raise ClientError(f"{result.missing} of {result.expected_in_all} deliveries did not come")


def _seconds(text: str | None, option: str) -> float | None:
    from broker.config.duration import parse_duration

    return None if text is None else parse_duration(text, option) / 1e9


COMMANDS: dict[str, Callable[..., None]] = {"pub": pub, "sub": sub, "bench": bench}

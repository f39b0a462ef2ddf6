"""`mercast sub`."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broker.client.cli.connection_log import log_to_stderr
from broker.client.client import connect
from broker.client.credentials import environment_credentials
from broker.client.errors import TimeoutExpiredError
from broker.client.options import chosen_servers
from broker.client.subscription import Publication, Subscription
from matching.commands import parse_argument
from matching.languages.publication import to_publication_text


@dataclass(frozen=True, slots=True)
class SubOptions:
    server: str | None
    count: int | None
    timeout_s: float | None
    is_json: bool
    durable: str | None
    mode: str


def run(expressions: Sequence[str], options: SubOptions, *, is_background: bool) -> None:
    for expression in expressions:
        # A mistake is reported here, with its place, before a broker is needed.
        parse_argument(expression)
    log_to_stderr()
    ready = _fork() if is_background else _print_subscribed
    try:
        asyncio.run(_subscribe(expressions, options, ready))
    except KeyboardInterrupt:
        # Ctrl-C is the usual way to stop the command.
        return
    except BrokenPipeError:
        # The reader closed the pipe. Redirect, or the interpreter fails when it flushes the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_subscribed(broker: str) -> None:
    print(f"subscribed at {broker}", file=sys.stderr, flush=True)


def _fork() -> Callable[[str], None]:
    """Forks, and returns only in the child. The parent exits when the child has subscribed or ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        if os.read(reader, 1):
            sys.exit(0)
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status))
    os.close(reader)

    def ready(broker: str) -> None:
        _print_subscribed(broker)
        os.write(writer, b"1")
        os.close(writer)

    return ready


async def _subscribe(expressions: Sequence[str], options: SubOptions, ready: Callable[[str], None]) -> None:
    named = {f"sub-{number}": text for number, text in enumerate(expressions, start=1)}
    credentials = environment_credentials()
    credentials["name"] = options.durable or credentials["name"]
    async with (
        connect(
            chosen_servers(options.server),
            durable=options.durable is not None,
            mode=options.mode,
            **credentials,
        ) as client,
        client.subscribe(named) as subscription,
    ):
        ready(client.broker)
        printed = 0
        try:
            async with asyncio.timeout(options.timeout_s):
                while options.count is None or printed < options.count:
                    printed += await _print_next(subscription, options)
        except TimeoutError:
            if options.count is not None:
                raise TimeoutExpiredError(
                    f"{printed} of {options.count} publications came within {options.timeout_s:g} s"
                ) from None


async def _print_next(subscription: Subscription, options: SubOptions) -> int:
    if options.count is not None:
        publications = [await subscription.next()]
    else:
        publications = await subscription.receive_batch()
    text = _json_line if options.is_json else _plain_line
    print("\n".join(map(text, publications)), flush=True)
    return len(publications)


def _plain_line(publication: Publication) -> str:
    line = to_publication_text(publication.attributes)
    if not publication.payload:
        return line
    try:
        payload = publication.payload.decode()
    except UnicodeDecodeError:
        payload = ""
    shown = repr(payload) if payload.isprintable() and payload else f"{len(publication.payload)} bytes"
    return f"{line}  payload: {shown}"


def _json_line(publication: Publication) -> str:
    try:
        payload = {"payload": publication.payload.decode()}
    except UnicodeDecodeError:
        payload = {"payload_base64": base64.b64encode(publication.payload).decode()}
    return json.dumps(
        {
            "id": str(publication.id),
            "attributes": dict(publication.attributes),
            **payload,
            "hops": publication.hops,
            "subscriptions": list(publication.subscriptions),
        }
    )

"""`mercast pub`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from broker.client.cli.connection_log import log_to_stderr
from broker.client.client import Client, connect
from broker.client.credentials import environment_credentials
from broker.client.errors import ClientError, RefusedError
from broker.client.options import chosen_servers
from matching.errors import MatchingError
from matching.expressions.values import Value
from matching.languages.publication import parse_publication
from routing.messages import PublicationId

UNAWAITED = 4_096
"""The number of publications in flight before the command collects answers."""


@dataclass(frozen=True, slots=True)
class PubOptions:
    server: str | None
    payload: bytes
    expires_s: float | None
    count: int
    rate: float
    advertise: tuple[str, ...]
    id: str | None
    name: str
    mode: str
    timeout_s: float
    is_json: bool


def run(words: Sequence[str], options: PubOptions) -> None:
    if not words and sys.stdin.isatty():
        raise _UsageError("say what to publish, as 'symbol=IBM price=92.5', or give JSON lines on standard input")
    if options.id is not None and not (options.name and words and options.count == 1):
        raise _UsageError("--id belongs to one publication of one client: give --name and the publication, not --count")
    log_to_stderr()
    asyncio.run(_publish(words, options))


class _UsageError(ClientError):
    exit_code = 2


async def _publish(words: Sequence[str], options: PubOptions) -> None:
    # Parse first: an error in the arguments is reported before a connection is made.
    typed = parse_publication(" ".join(words)) if words else None
    publications = _from_input(options.count) if typed is None else _typed(typed, options.count)
    credentials = environment_credentials()
    credentials["name"] = options.name or credentials["name"]
    async with connect(
        chosen_servers(options.server), mode=options.mode, timeout=options.timeout_s or None, **credentials
    ) as client:
        for expression in options.advertise:
            await client.advertise(expression)
        answers = _Answers(options.is_json)
        pace = _Pace(options.rate)
        async for publication in publications:
            await pace.wait()
            answer = await client.publish_soon(publication, options.payload, expires=options.expires_s, id=options.id)
            answers.add(answer)
            if len(answers) >= UNAWAITED:
                await answers.collect(UNAWAITED // 2)
        await client.flush()
        await answers.collect(0)
        answers.report(client)


async def _typed(publication: dict[str, Value], count: int) -> AsyncIterator[dict[str, Value]]:
    for _ in range(count):
        yield publication


async def _from_input(count: int) -> AsyncIterator[dict[str, Value]]:
    """Yields the publication of each line of standard input, `count` times."""
    number, rest = 0, b""
    while True:
        # In a thread: the loop must serve the connection while the command waits for input.
        data = await asyncio.to_thread(_read_input)
        *lines, rest = (rest + data).split(b"\n") if data else (rest, b"")
        for line in lines:
            number += 1
            publication = _parse_line(line, number)
            for _ in range(count if publication is not None else 0):
                assert publication is not None
                yield publication
        if not data:
            return


def _read_input() -> bytes:
    return os.read(sys.stdin.fileno(), 1 << 16)


def _parse_line(line: bytes, number: int) -> dict[str, Value] | None:
    if not line.strip():
        return None
    try:
        return parse_publication(line.decode())
    except (MatchingError, UnicodeDecodeError) as error:
        raise _UsageError(f"line {number} of standard input: {error}") from None


class _Pace:
    """Limits the rate, without drift. Rate 0: no limit."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._sent = 0
        self._start = asyncio.get_running_loop().time()

    async def wait(self) -> None:
        if self._rate:
            due = self._start + self._sent / self._rate
            await asyncio.sleep(due - asyncio.get_running_loop().time())
        elif self._sent % 64 == 63:
            # Let the loop run: it sends the queued publications between two turns.
            await asyncio.sleep(0)
        self._sent += 1


class _Answers:
    def __init__(self, is_json: bool) -> None:
        self._is_json = is_json
        self._waiting: deque[asyncio.Future[PublicationId | None]] = deque()
        self._accepted = 0
        self._refused: Counter[str] = Counter()
        self._first: RefusedError | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, answer: asyncio.Future[PublicationId | None]) -> None:
        self._waiting.append(answer)

    async def collect(self, left: int) -> None:
        """Waits for the oldest answers, until `left` remain."""
        while len(self._waiting) > left:
            try:
                id = await self._waiting.popleft()
            except RefusedError as refusal:
                self._first = self._first or refusal
                self._refused[refusal.reason] += 1
                continue
            self._accepted += 1
            if self._is_json:
                print(json.dumps({"id": str(id) if id is not None else None}))

    def report(self, client: Client) -> None:
        """Prints the number of accepted publications. Raises an error if there were refusals."""
        if self._first is not None and not self._accepted and sum(self._refused.values()) == 1:
            raise self._first
        s = "s" * (self._accepted != 1)
        print(f"published {self._accepted} publication{s} at {client.broker}", file=sys.stderr)
        if self._first is not None:
            counts = ", ".join(f"{count} {reason}" for reason, count in self._refused.items())
            raise ClientError(f"refused: {counts}; the first: {self._first}")

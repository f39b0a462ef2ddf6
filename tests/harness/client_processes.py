"""A chain of broker processes on free loopback ports, for tests of clients."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.harness.mercast_broker import BrokerProcess
from tests.harness.ports import free_ports


def overlay_text(
    ports: dict[str, int],
    *,
    name: str = "test",
    links: Sequence[tuple[str, str]] = (),
    settings: str = "",
    tables: str = "",
) -> str:
    brokers = "\n".join(
        f'[[broker]]\nid = "{id}"\nlisten = "127.0.0.1:{port}"\nadmin = "127.0.0.1:0"' for id, port in ports.items()
    )
    joined = "\n".join(f'[[link]]\nbetween = ["{a}", "{b}"]' for a, b in links)
    return f'schema = 1\n[overlay]\nname = "{name}"\n{settings}\n{tables}\n{brokers}\n{joined}\n'


@contextmanager
def brokers(folder: Path, ids: Sequence[str], **overlay: object) -> Iterator[dict[str, BrokerProcess]]:
    """Runs one process for each broker. Each broker has a link to the next."""
    ports = dict(zip(ids, free_ports(len(ids)), strict=True))
    links = [(a, b) for a, b in itertools.pairwise(ids)]
    file = folder / "overlay.toml"
    file.write_text(overlay_text(ports, links=links, **overlay))  # type: ignore[arg-type]
    running = {id: BrokerProcess(file, id) for id in ids}
    with ExitStack() as stack:
        for each in running.values():
            each.launch()
            stack.callback(each.stop)
        for each in running.values():
            each.wait_until_ready()
        yield running

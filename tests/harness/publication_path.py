"""Counts the code that one publication passes: files, functions, and switches between files.

python -m tests.harness.publication_path              one line of figures
python -m tests.harness.publication_path --functions  the functions too, in the order of their first call

Two brokers run in one event loop. A client publishes at the first one, and another receives at the second. A profile
hook records the project's functions from the publication until everything is settled. The figures are those of the
shortest of several such paths: a timer may add functions that have nothing to do with the publication.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from mercast import connect
from tests.harness.broker_processes import InLoop, OverlayFileMaker

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("broker", "matching", "routing", "topologies")
REPETITIONS = 5
SETTLED_AFTER_S = 0.3
"""Longer than settlement takes, and shorter than a heartbeat. The hook would record the calls of a condition."""
HEARTBEATS = {"heartbeat": {"every": "30s", "dead_after": "90s"}}


@dataclass
class PublicationPath:
    """The recorded functions."""

    functions: dict[tuple[str, str], None] = field(default_factory=dict)
    """File and function, in the order of the first call."""
    switches: int = 0
    _last: str = ""

    def record(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call":
            return
        path = Path(frame.f_code.co_filename)
        if not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in PACKAGES:
            return
        file = path.relative_to(ROOT).as_posix()
        self.functions[file, frame.f_code.co_qualname] = None
        self.switches += bool(self._last) and file != self._last
        self._last = file

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(file for file, _ in self.functions))


async def trace_publications(folder: Path) -> list[PublicationPath]:
    paths = []
    file = OverlayFileMaker(folder, ("b1", "b2"), (("b1", "b2"),), tables=HEARTBEATS)
    async with InLoop(file) as brokers:
        await brokers.linked()
        for server in brokers.servers.values():
            # It would add its timer to the recorded functions.
            server.housekeeping.pauses.stop()
        async with (
            connect(file.url("b1")) as publisher,
            connect(file.url("b2")) as subscriber,
            subscriber.subscribe("price > 90") as prices,
        ):
            await brokers.quiet()
            await publisher.publish({"price": 1})
            # Settlements and acknowledgements follow the delivery, and no state shows the last of them.
            await asyncio.sleep(SETTLED_AFTER_S)
            for _ in range(REPETITIONS):
                path = PublicationPath()
                sys.setprofile(path.record)
                try:
                    await publisher.publish({"price": 92.5})
                    await anext(prices)
                    await asyncio.sleep(SETTLED_AFTER_S)
                finally:
                    sys.setprofile(None)
                paths.append(path)
    return paths


def measure() -> PublicationPath:
    with tempfile.TemporaryDirectory() as folder:
        paths = asyncio.run(trace_publications(Path(folder)))
    return min(paths, key=lambda path: (len(path.functions), path.switches))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", action="store_true", help="list the functions too")
    chosen = parser.parse_args()
    path = measure()
    if chosen.functions:
        for file, function in path.functions:
            print(f"{file}  {function}")
    print(f"{len(path.files)} files, {len(path.functions)} functions, {path.switches} switches between files")


if __name__ == "__main__":
    main()

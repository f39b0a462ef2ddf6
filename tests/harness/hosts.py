"""Several hosts on one machine, as network namespaces with virtual cables between them."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Sequence
from itertools import combinations
from types import TracebackType
from typing import Self

import pytest

from tests.harness.programs import path_of


def need_namespaces() -> None:
    """Skips the test if this process may not create network namespaces."""
    ip = path_of("ip")
    name = f"mc-try-{uuid.uuid4().hex[:6]}"
    made = subprocess.run([ip, "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"network namespaces are not allowed here (root is needed): {made.stderr.strip()}")
    subprocess.run([ip, "netns", "delete", name], check=True)


class Hosts:
    """Hosts 1 to n, each with the address 10.77.0.n, and a cable between every two of them."""

    def __init__(self, count: int) -> None:
        self._ip = path_of("ip")
        self._tag = uuid.uuid4().hex[:6]
        self._count = count
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        try:
            for host in range(1, self._count + 1):
                self._run("netns", "add", self._name(host))
                self._within(host, "link", "set", "lo", "up")
                self._within(host, "address", "add", f"{self.address(host)}/32", "dev", "lo")
            for one, other in combinations(range(1, self._count + 1), 2):
                self._lay_cable(one, other)
        except BaseException:
            self._tear_down()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._tear_down()

    def _tear_down(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        for host in range(1, self._count + 1):
            # Deletes its cables too.
            subprocess.run([self._ip, "netns", "delete", self._name(host)], capture_output=True, check=False)

    def address(self, host: int) -> str:
        return f"10.77.0.{host}"

    def start(self, host: int, command: Sequence[str], **options: object) -> subprocess.Popen[str]:
        process: subprocess.Popen[str] = subprocess.Popen(
            [self._ip, "netns", "exec", self._name(host), *command],
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            **options,  # type: ignore[call-overload]
        )
        self._processes.append(process)
        return process

    def cut(self, one: int, other: int) -> None:
        self._within(one, "link", "set", f"to{other}", "down")
        self._within(other, "link", "set", f"to{one}", "down")

    def heal(self, one: int, other: int) -> None:
        for here, there in ((one, other), (other, one)):
            self._within(here, "link", "set", f"to{there}", "up")
        for here, there in ((one, other), (other, one)):
            # The kernel removes routes over a cable that is cut.
            self._route(here, there)

    def _lay_cable(self, one: int, other: int) -> None:
        ends = f"to{other}", f"to{one}"
        first, second = (self._link_address(min(one, other), max(one, other), is_first) for is_first in (True, False))
        peer = ("peer", "name", ends[1], "netns", self._name(other))
        self._within(one, "link", "add", ends[0], "type", "veth", *peer)
        self._within(one, "address", "add", f"{first}/30", "dev", ends[0])
        self._within(other, "address", "add", f"{second}/30", "dev", ends[1])
        self.heal(one, other)

    def _route(self, here: int, there: int) -> None:
        via = self._link_address(min(here, there), max(here, there), there < here)
        source = ("src", self.address(here))
        self._within(here, "route", "replace", f"{self.address(there)}/32", "via", via, *source)

    @staticmethod
    def _link_address(low: int, high: int, is_first: bool) -> str:
        return f"10.77.{10 * low + high}.{1 if is_first else 2}"

    def _name(self, host: int) -> str:
        return f"mc-{self._tag}-{host}"

    def _within(self, host: int, *words: str) -> None:
        self._run("-n", self._name(host), *words)

    def _run(self, *words: str) -> None:
        done = subprocess.run([self._ip, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"

"""The process that watches over an overlay's brokers: starts each, and starts it again when it ends by itself.
A broker that left the overlay for good stays away.

Run by `mercast up` as `python -m broker.deployment.local.supervisor PLAN`, PLAN in JSON. SIGTERM ends the brokers
in good order, then the supervisor.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from broker.deployment.local.processes import ProcessIdentity
from broker.deployment.local.run_folder import LEFT, BrokerState, OverlayState, RunFolder

SHORTEST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 30.0
STABLE_AFTER_S = 30.0
"""A broker that ran for so long is started again without a long pause."""


@dataclass(frozen=True, slots=True)
class SupervisorPlan:
    name: str
    file: str
    folder: str
    brokers: tuple[str, ...]
    options: tuple[str, ...] = ()
    """For each `mercast broker`."""
    stop_within_s: float = 10.0

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> SupervisorPlan:
        content: Mapping[str, object] = json.loads(text)
        brokers, options = content["brokers"], content["options"]
        assert isinstance(brokers, list)
        assert isinstance(options, list)
        return cls(
            str(content["name"]),
            str(content["file"]),
            str(content["folder"]),
            tuple(brokers),
            tuple(options),
            float(str(content["stop_within_s"])),
        )


def broker_command(plan: SupervisorPlan, broker: str) -> list[str]:
    # -P: a folder called `broker` where the user stands must not be taken for the package.
    return [sys.executable, "-P", "-m", "mercast", "broker", plan.file, "--id", broker, *plan.options]


class Supervisor:
    def __init__(self, plan: SupervisorPlan) -> None:
        self._plan = plan
        self._folder = RunFolder(Path(plan.folder))
        self._states = {id: BrokerState(id, None, "starting") for id in plan.brokers}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        self._write()
        keepers = [asyncio.create_task(self._keep(id)) for id in self._plan.brokers]
        await self._stopping.wait()
        await self._stop()
        await asyncio.gather(*keepers)
        self._folder.remove_state()

    async def _keep(self, id: str) -> None:
        """Runs the broker, again and again, until it leaves or the supervisor is told to stop."""
        loop = asyncio.get_running_loop()
        pause_s = SHORTEST_PAUSE_S
        while not self._stopping.is_set():
            started_at = loop.time()
            code = await self._run_once(id)
            if self._stopping.is_set():
                break
            if self._states[id].phase == LEFT and code == 0:
                self._say(f"broker {id} has left the overlay")
                self._set(replace(self._states[id], process=None, listen=None, admin=None, last_exit=code))
                return
            if loop.time() - started_at > STABLE_AFTER_S:
                pause_s = SHORTEST_PAUSE_S
            state = self._states[id]
            self._say(f"broker {id} ended with code {code}; started again in {pause_s:g} s")
            self._set(replace(state, process=None, phase="restarting", restarts=state.restarts + 1, last_exit=code))
            try:
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            except TimeoutError:
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        self._set(replace(self._states[id], process=None, phase="stopped"))

    async def _run_once(self, id: str) -> int:
        with self._folder.log_of(id).open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *broker_command(self._plan, id),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        self._processes[id] = process
        identity = ProcessIdentity.of(process.pid)
        self._set(replace(self._states[id], process=identity, phase="starting", listen=None, admin=None))
        if self._stopping.is_set():
            process.terminate()
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                self._heard(id, line)
            return await process.wait()
        finally:
            del self._processes[id]

    def _heard(self, id: str, line: bytes) -> None:
        """A broker prints one line when it serves, and one when it has left the overlay."""
        try:
            told = json.loads(line)
            if told.get("left"):
                self._set(replace(self._states[id], phase=LEFT))
                return
            state = replace(self._states[id], phase="serving", listen=told["listen"], admin=told["admin"])
        except (ValueError, KeyError, TypeError, AttributeError):
            self._say(f"broker {id} said {line!r}")
        else:
            self._set(state)

    async def _stop(self) -> None:
        self._say("stopping")
        for process in self._processes.values():
            process.terminate()
        end = asyncio.get_running_loop().time() + self._plan.stop_within_s
        while self._processes and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.02)
        for id, process in self._processes.items():
            self._say(f"broker {id} did not stop within {self._plan.stop_within_s:g} s and is killed")
            process.kill()

    def _set(self, state: BrokerState) -> None:
        self._states[state.id] = state
        self._write()

    def _write(self) -> None:
        me = ProcessIdentity.of(os.getpid())
        self._folder.write_state(OverlayState(self._plan.name, self._plan.file, me, tuple(self._states.values())))

    def _say(self, text: str) -> None:
        print(text, flush=True)


if __name__ == "__main__":
    asyncio.run(Supervisor(SupervisorPlan.from_text(sys.argv[1])).run())

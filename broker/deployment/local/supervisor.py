"""The process that supervises an overlay's brokers: it starts them, and restarts a broker that exits.

It does not restart a broker that has left the overlay. `mercast up` runs it as
`python -m broker.deployment.local.supervisor PLAN`, with PLAN in JSON. On SIGTERM it stops the brokers in good order
and exits.
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

from broker.deployment.local.errors import DeploymentError
from broker.deployment.local.processes import ProcessIdentity
from broker.deployment.local.run_folder import LEFT, BrokerState, OverlayState, RunFolder

SHORTEST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 30.0
STABLE_AFTER_S = 30.0
"""After a broker has run for this long, the pause before its next restart is the shortest again."""


@dataclass(frozen=True, slots=True)
class SupervisorPlan:
    """The supervisor's argument: the overlay, its run folder, and the brokers to start."""

    name: str
    file: str
    folder: str
    brokers: tuple[str, ...]
    options: tuple[str, ...] = ()
    """Command-line options for every `mercast broker` process."""
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
    # -P keeps the working directory off the import path, where a folder called `broker` would hide the package.
    return [sys.executable, "-P", "-m", "mercast", "broker", plan.file, "--id", broker, *plan.options]


class Supervisor:
    """Runs one task for each broker, and writes their states to the run folder."""

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
        tasks = [asyncio.create_task(self._supervise(id)) for id in self._plan.brokers]
        await self._stopping.wait()
        await self._stop()
        await asyncio.gather(*tasks)
        self._folder.remove_state()

    async def _supervise(self, id: str) -> None:
        """Runs the broker and restarts it until it leaves the overlay or the supervisor stops."""
        loop = asyncio.get_running_loop()
        pause_s = SHORTEST_PAUSE_S
        while not self._stopping.is_set():
            started_at = loop.time()
            try:
                code = await self._run_once(id)
            except DeploymentError as error:
                self._log(f"broker {id} cannot be started: {error}")
                code = None
            if self._stopping.is_set():
                break
            if self._states[id].phase == LEFT and code == 0:
                self._log(f"broker {id} has left the overlay")
                self._set(replace(self._states[id], process=None, listen=None, admin=None, last_exit=code))
                return
            if loop.time() - started_at > STABLE_AFTER_S:
                pause_s = SHORTEST_PAUSE_S
            state = self._states[id]
            self._log(f"broker {id} ended with code {code}; started again in {pause_s:g} s")
            self._set(replace(state, process=None, phase="restarting", restarts=state.restarts + 1, last_exit=code))
            try:
                await asyncio.wait_for(self._stopping.wait(), pause_s)
            except TimeoutError:
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        self._set(replace(self._states[id], process=None, phase="stopped"))

    async def _run_once(self, id: str) -> int:
        with self._folder.open_log(self._folder.log_of(id)) as log:
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
                self._handle_line(id, line)
            return await process.wait()
        finally:
            del self._processes[id]

    def _handle_line(self, id: str, line: bytes) -> None:
        """Handles a line of a broker's output. A broker prints one when it serves, and one when it has left."""
        try:
            message = json.loads(line)
            if message.get("left"):
                self._set(replace(self._states[id], phase=LEFT))
                return
            state = replace(self._states[id], phase="serving", listen=message["listen"], admin=message["admin"])
        except (ValueError, KeyError, TypeError, AttributeError):
            self._log(f"broker {id} said {line!r}")
        else:
            self._set(state)

    async def _stop(self) -> None:
        self._log("stopping")
        for process in self._processes.values():
            process.terminate()
        end = asyncio.get_running_loop().time() + self._plan.stop_within_s
        while self._processes and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.02)
        for id, process in self._processes.items():
            self._log(f"broker {id} did not stop within {self._plan.stop_within_s:g} s and is killed")
            process.kill()

    def _set(self, state: BrokerState) -> None:
        self._states[state.id] = state
        self._write()

    def _write(self) -> None:
        me = ProcessIdentity.of(os.getpid())
        state = OverlayState(self._plan.name, self._plan.file, me, tuple(self._states.values()))
        try:
            self._folder.write_state(state)
        except DeploymentError as error:
            # The brokers go on running. The next change of a state writes all states.
            self._log(f"the state is not written: {error}")

    def _log(self, text: str) -> None:
        print(text, flush=True)


if __name__ == "__main__":
    asyncio.run(Supervisor(SupervisorPlan.from_text(sys.argv[1])).run())

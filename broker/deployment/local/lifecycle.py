"""Starting an overlay's broker processes, and stopping them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from broker.config.overlay_config import BrokerConfig, read_config
from broker.deployment.local.admin_client import fetch_status
from broker.deployment.local.errors import DeploymentError, NotConnectedInTimeError
from broker.deployment.local.overlay_files import find_overlay_file
from broker.deployment.local.preflight import check, select_brokers
from broker.deployment.local.processes import wait_for_exit
from broker.deployment.local.run_folder import BrokerState, OverlayState, RunFolder, folder_of, running_folders
from broker.deployment.local.supervisor import SupervisorPlan

Progress = Callable[[str, int, int], None]
"""What is being done, how many brokers are done, of how many."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    name: str | None = None
    """Instead of the overlay's own."""
    only: tuple[str, ...] = ()
    is_insecure: bool = False
    allows_missing_peers: bool = False
    trace: Path | None = None
    """Where brokers record what they do, each in a folder of its own."""
    timeout_s: float = 30.0


def up(overlay: str, options: UpOptions, progress: Progress) -> OverlayState:
    """Starts the brokers and returns when they are connected. If that fails, nothing is left running."""
    file = find_overlay_file(overlay)
    config = read_config(file)
    brokers = select_brokers(config, options.only)
    folder = folder_of(options.name or config.name)
    state = folder.state()
    if state is not None and state.is_running:
        raise DeploymentError(
            f"overlay {folder.name} is up already; `mercast down {folder.name}` stops it, "
            "--name starts another beside it"
        )
    check(brokers, is_insecure=options.is_insecure, allows_missing_peers=options.allows_missing_peers)
    folder.create()
    _start_supervisor(folder, file, brokers, options)
    try:
        return _wait_until_connected(folder, brokers, options, progress)
    except BaseException:
        _stop(folder, within_s=5.0)
        raise


def _start_supervisor(folder: RunFolder, file: Path, brokers: Sequence[BrokerConfig], options: UpOptions) -> None:
    plan = SupervisorPlan(
        folder.name,
        str(file),
        str(folder.path),
        tuple(broker.id for broker in brokers),
        _broker_options(options),
    )
    with (folder.path / "supervisor.log").open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-P", "-m", "broker.deployment.local.supervisor", plan.as_text()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # It outlives this command and the terminal.
            start_new_session=True,
        )


def _broker_options(options: UpOptions) -> tuple[str, ...]:
    insecure = ("--insecure",) if options.is_insecure else ()
    # Absolute, because a broker may be started again from wherever the supervisor is.
    trace = ("--trace", str(options.trace.absolute())) if options.trace is not None else ()
    return insecure + trace


def _wait_until_connected(
    folder: RunFolder, brokers: Sequence[BrokerConfig], options: UpOptions, progress: Progress
) -> OverlayState:
    end = time.monotonic() + options.timeout_s
    expected = _expected_neighbours(brokers, options)
    while True:
        state = folder.state()
        states = state.brokers if state is not None else ()
        for broker in states:
            if broker.restarts:
                raise DeploymentError(_last_words(folder, broker))
        waiting = [each.id for each in states if (lack := _lacking(each, expected[each.id])) or lack is None]
        progress("brokers connected", len(states) - len(waiting), len(brokers))
        if state is not None and not waiting:
            return state
        if time.monotonic() > end:
            raise NotConnectedInTimeError(_too_late(folder, state, expected, options.timeout_s))
        time.sleep(0.05)


def _expected_neighbours(brokers: Sequence[BrokerConfig], options: UpOptions) -> dict[str, set[str]]:
    here = {broker.id for broker in brokers}
    return {
        broker.id: {
            neighbour.id for neighbour in broker.neighbours if neighbour.id in here or not options.allows_missing_peers
        }
        for broker in brokers
    }


def _lacking(broker: BrokerState, expected: set[str]) -> set[str] | None:
    """The neighbours without a link; None when the broker does not serve yet. Without admin pages nobody can ask."""
    if broker.listen is None:
        return None
    if broker.admin is None:
        return set()
    status = fetch_status(broker.admin)
    return None if status is None else {id for id in expected if not status.neighbours.get(id)}


def _last_words(folder: RunFolder, broker: BrokerState) -> str:
    words = "\n  ".join(folder.last_lines(broker.id)) or "it said nothing"
    return f"broker {broker.id} ended with code {broker.last_exit} ({folder.log_of(broker.id)}):\n  {words}"


def _too_late(folder: RunFolder, state: OverlayState | None, expected: dict[str, set[str]], within_s: float) -> str:
    if state is None:
        return f"the supervisor did not start within {within_s:g} s; see {folder.path / 'supervisor.log'}"
    parts = []
    for broker in state.brokers:
        lacking = _lacking(broker, expected[broker.id])
        if lacking is None:
            parts.append(f"{broker.id} does not answer")
        elif lacking:
            parts.append(f"{broker.id} has no link to {', '.join(sorted(lacking))}")
    return f"not connected within {within_s:g} s: {'; '.join(parts)}; logs are in {folder.path}"


def running(names: Sequence[str]) -> list[RunFolder]:
    """The named overlays, which must run; without names all that run."""
    folders = {folder.name: folder for folder in running_folders()}
    for name in names:
        if name not in folders:
            known = ", ".join(folders) or "none"
            raise DeploymentError(f"no overlay {name!r} is up here; running: {known}")
    return [folders[name] for name in names] if names else list(folders.values())


def down(folder: RunFolder, within_s: float) -> OverlayState:
    """Stops the overlay's brokers in good order; those that do not stop in time are killed."""
    state = folder.state()
    if state is None:
        raise DeploymentError(f"no overlay {folder.name!r} is up here")
    _stop(folder, within_s)
    return state


def _stop(folder: RunFolder, within_s: float) -> None:
    end = time.monotonic() + 1.0
    while (state := folder.state()) is None:
        # Just started: it has not written its number yet.
        if time.monotonic() > end:
            return
        time.sleep(0.02)
    state.supervisor.send(signal.SIGTERM)
    wait_for_exit([state.supervisor], within_s + 2.0)
    # A supervisor that was killed leaves its brokers; one that hangs is not waited for.
    last = folder.state() or state
    state.supervisor.send(signal.SIGKILL)
    brokers = [broker.process for broker in last.brokers if broker.process is not None]
    for process in brokers:
        process.send(signal.SIGTERM)
    for process in wait_for_exit(brokers, within_s):
        process.send(signal.SIGKILL)
    wait_for_exit(brokers, 5.0)
    folder.remove_state()


def overlays_to_stop(names: Sequence[str], *, every: bool) -> list[RunFolder]:
    """Without names there must be no doubt which one is meant."""
    found = running(names)
    if not found:
        raise DeploymentError("no overlay is up here")
    if len(found) > 1 and not names and not every:
        known = ", ".join(folder.name for folder in found)
        raise DeploymentError(f"several overlays are up: {known}; name one, or say --all")
    return found

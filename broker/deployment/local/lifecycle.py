"""Starts and stops the broker processes of an overlay."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from broker.config.overlay_config import BrokerConfig, read_config
from broker.deployment.local.admin_client import AdminClient
from broker.deployment.local.errors import DeploymentError, NotConnectedInTimeError
from broker.deployment.local.overlay_files import find_overlay_file
from broker.deployment.local.preflight import check_brokers, select_brokers
from broker.deployment.local.processes import wait_for_exit
from broker.deployment.local.run_folder import BrokerState, OverlayState, RunFolder, run_folder_of, running_folders
from broker.deployment.local.supervisor import SupervisorPlan
from broker.progress import ShowProgress


@dataclass(frozen=True, slots=True)
class UpOptions:
    name: str | None = None
    """The name of the running overlay, if it differs from the overlay's own."""
    only: tuple[str, ...] = ()
    is_insecure: bool = False
    allows_missing_peers: bool = False
    trace: Path | None = None
    """The folder for traces. Each broker records in a folder of its own."""
    timeout_s: float = 30.0


def start_overlay(overlay: str, options: UpOptions, progress: ShowProgress) -> OverlayState:
    """Starts the brokers and returns when they are connected. Stops all of them if that fails."""
    file = find_overlay_file(overlay)
    config = read_config(file)
    brokers = select_brokers(config, options.only)
    folder = run_folder_of(options.name or config.name)
    state = folder.state()
    if state is not None and state.is_running:
        raise DeploymentError(
            f"overlay {folder.name} is up already; `mercast down {folder.name}` stops it, "
            "--name starts another beside it"
        )
    check_brokers(brokers, is_insecure=options.is_insecure, allows_missing_peers=options.allows_missing_peers)
    folder.create()
    _start_supervisor(folder, file, brokers, options)
    try:
        return _wait_until_connected(AdminClient(file), folder, brokers, options, progress)
    except BaseException:
        _stop(folder, timeout_s=5.0)
        raise


def _start_supervisor(folder: RunFolder, file: Path, brokers: Sequence[BrokerConfig], options: UpOptions) -> None:
    plan = SupervisorPlan(
        folder.name,
        str(file),
        str(folder.path),
        tuple(broker.id for broker in brokers),
        _broker_options(options),
    )
    with folder.open_log(folder.supervisor_log) as log:
        subprocess.Popen(
            [sys.executable, "-P", "-m", "broker.deployment.local.supervisor", plan.as_text()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # The supervisor must outlive this command and the terminal.
            start_new_session=True,
        )


def _broker_options(options: UpOptions) -> tuple[str, ...]:
    insecure = ("--insecure",) if options.is_insecure else ()
    # Absolute, because the supervisor may have another working directory when it restarts a broker.
    trace = ("--trace", str(options.trace.absolute())) if options.trace is not None else ()
    return insecure + trace


def _wait_until_connected(
    client: AdminClient,
    folder: RunFolder,
    brokers: Sequence[BrokerConfig],
    options: UpOptions,
    progress: ShowProgress,
) -> OverlayState:
    end = time.monotonic() + options.timeout_s
    expected = _expected_neighbours(brokers, options)
    while True:
        state = folder.state()
        states = state.brokers if state is not None else ()
        for broker in states:
            if broker.restarts:
                raise DeploymentError(_exit_message(folder, broker))
        missing = {each.id: _missing_links(client, each, expected[each.id]) for each in states}
        waiting = [id for id, links in missing.items() if links is None or links]
        progress("brokers connected", len(states) - len(waiting), len(brokers))
        if state is not None and not waiting:
            return state
        if time.monotonic() > end:
            raise NotConnectedInTimeError(_timeout_message(client, folder, state, expected, options.timeout_s))
        time.sleep(0.05)


def _expected_neighbours(brokers: Sequence[BrokerConfig], options: UpOptions) -> dict[str, set[str]]:
    here = {broker.id for broker in brokers}
    return {
        broker.id: {
            neighbour.id for neighbour in broker.neighbours if neighbour.id in here or not options.allows_missing_peers
        }
        for broker in brokers
    }


def _missing_links(client: AdminClient, broker: BrokerState, expected: set[str]) -> set[str] | None:
    """The expected neighbours without a link, or None if the broker does not serve yet.

    Empty for a broker without admin pages, because its links are unknown.
    """
    if broker.listen is None:
        return None
    if broker.admin is None:
        return set()
    status = client.fetch_status(broker.admin)
    return None if status is None else {id for id in expected if not status.neighbours.get(id)}


def _exit_message(folder: RunFolder, broker: BrokerState) -> str:
    words = "\n  ".join(folder.last_lines(broker.id)) or "it said nothing"
    return f"broker {broker.id} ended with code {broker.last_exit} ({folder.log_of(broker.id)}):\n  {words}"


def _timeout_message(
    client: AdminClient, folder: RunFolder, state: OverlayState | None, expected: dict[str, set[str]], timeout_s: float
) -> str:
    if state is None:
        return f"the supervisor did not start within {timeout_s:g} s; see {folder.supervisor_log}"
    parts = []
    for broker in state.brokers:
        missing = _missing_links(client, broker, expected[broker.id])
        if missing is None:
            parts.append(f"{broker.id} does not answer")
        elif missing:
            parts.append(f"{broker.id} has no link to {', '.join(sorted(missing))}")
    return f"not connected within {timeout_s:g} s: {'; '.join(parts)}; logs are in {folder.path}"


def running_overlays(names: Sequence[str]) -> list[RunFolder]:
    """The named overlays, or all without names. Raises DeploymentError if a named overlay does not run."""
    folders = {folder.name: folder for folder in running_folders()}
    for name in names:
        if name not in folders:
            known = ", ".join(folders) or "none"
            raise DeploymentError(f"no overlay {name!r} is up here; running: {known}")
    return [folders[name] for name in names] if names else list(folders.values())


def stop_overlay(folder: RunFolder, timeout_s: float) -> OverlayState:
    """Stops the overlay's brokers in good order. Kills brokers that do not stop in time."""
    state = folder.state()
    if state is None:
        raise DeploymentError(f"no overlay {folder.name!r} is up here")
    _stop(folder, timeout_s)
    return state


def _stop(folder: RunFolder, timeout_s: float) -> None:
    end = time.monotonic() + 1.0
    while (state := folder.state()) is None:
        # A supervisor that has just started has not written its process id yet.
        if time.monotonic() > end:
            return
        time.sleep(0.02)
    state.supervisor.send(signal.SIGTERM)
    wait_for_exit([state.supervisor], timeout_s + 2.0)
    # Brokers keep running if their supervisor was killed. A supervisor that hangs is killed here.
    last = folder.state() or state
    state.supervisor.send(signal.SIGKILL)
    brokers = [broker.process for broker in last.brokers if broker.process is not None]
    for process in brokers:
        process.send(signal.SIGTERM)
    for process in wait_for_exit(brokers, timeout_s):
        process.send(signal.SIGKILL)
    wait_for_exit(brokers, 5.0)
    folder.remove_state()


def overlays_to_stop(names: Sequence[str], *, every: bool) -> list[RunFolder]:
    """The overlays that `mercast down` stops. Raises DeploymentError if several run and none is named."""
    found = running_overlays(names)
    if not found:
        raise DeploymentError("no overlay is up here")
    if len(found) > 1 and not names and not every:
        known = ", ".join(folder.name for folder in found)
        raise DeploymentError(f"several overlays are up: {known}; name one, or say --all")
    return found

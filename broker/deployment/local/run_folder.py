"""The run folder: a folder for each overlay that runs on this machine, with process ids, addresses and logs.

<run folder>/<overlay>/overlay.json      the supervisor and its brokers, as last written by the supervisor
                       broker-b1.log     the log of b1
                       supervisor.log

Commands end the processes that `overlay.json` names. So they read it only if no other user can have written it: the run
folder, the overlay's folder and the file must belong to this user, and no other user may write to them.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

import msgspec

from broker.deployment.local.errors import DeploymentError
from broker.deployment.local.private_folder import VARIABLE, PrivateFolder
from broker.deployment.local.processes import ProcessIdentity

STATE = "overlay.json"
LEFT = "left"
"""The phase of a broker that has left its overlay. The supervisor does not restart it."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def run_root() -> Path:
    """`MERCAST_RUN_DIR`, or else a folder of the user that the system removes at a reboot."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "mercast"
    return Path(tempfile.gettempdir()) / f"mercast-{os.getuid()}"


@dataclass(frozen=True, slots=True)
class BrokerState:
    id: str
    process: ProcessIdentity | None
    phase: str
    """starting, serving, restarting, left or stopped."""
    listen: str | None = None
    """The address that the broker listens on. The broker reports it when it starts to serve."""
    admin: str | None = None
    """The address of the admin pages, reported together with `listen`."""
    restarts: int = 0
    last_exit: int | None = None

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.is_alive


@dataclass(frozen=True, slots=True)
class OverlayState:
    name: str
    file: str
    supervisor: ProcessIdentity
    brokers: tuple[BrokerState, ...]

    @property
    def is_running(self) -> bool:
        return self.supervisor.is_alive or any(broker.is_alive for broker in self.brokers)


class RunFolder:
    """The folder of one overlay: its state and its logs."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        return self.path.name

    def create(self) -> None:
        """Creates the folder, or removes old state and logs from it.

        Other users have no access, because they could otherwise make the supervisor start any program.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with PrivateFolder(self.path.parent) as root:
                root.make(self.name)
            with self._opened() as folder:
                for old in folder.names():
                    if old.endswith((".json", ".log")):
                        folder.remove(old)
        except OSError as error:
            raise DeploymentError(f"cannot make the run folder {self.path}: {error.strerror}") from error

    @contextmanager
    def _opened(self) -> Iterator[PrivateFolder]:
        with PrivateFolder(self.path.parent) as root, root.enter(self.name) as folder:
            yield folder

    @property
    def supervisor_log(self) -> Path:
        return self.path / "supervisor.log"

    def log_of(self, broker: str) -> Path:
        return self.path / f"broker-{quote(broker, safe='')}.log"

    def open_log(self, log: Path) -> BinaryIO:
        """Opens a log of this folder to write at its end."""
        with self._opened() as folder:
            return folder.append(log.name)

    def write_state(self, state: OverlayState) -> None:
        with self._opened() as folder:
            folder.replace(STATE, json.dumps(asdict(state), indent=1).encode())

    def state(self) -> OverlayState | None:
        """The state of the overlay, or None if there is none. Raises DeploymentError if others can have written it."""
        try:
            with self._opened() as folder:
                content = folder.read(STATE)
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(content, type=OverlayState)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            text = f"{self.path / STATE} is no state of an overlay: {error}; end its processes and remove the file"
            raise DeploymentError(text) from error

    def remove_state(self) -> None:
        """Removes the state of a stopped overlay. The logs stay until the next start."""
        with suppress(FileNotFoundError), self._opened() as folder:
            folder.remove(STATE)

    def last_lines(self, broker: str, count: int = 5) -> list[str]:
        try:
            with self._opened() as folder:
                content = folder.read(self.log_of(broker).name)
        except FileNotFoundError:
            return []
        return content.decode(errors="replace").splitlines()[-count:]


def run_folder_of(name: str) -> RunFolder:
    if not _PLAIN.fullmatch(name):
        raise DeploymentError(
            f"overlay {name!r} cannot have a run folder of that name; use letters, digits, dots, dashes and underscores"
        )
    return RunFolder(run_root() / name)


def running_folders() -> list[RunFolder]:
    """The folders of the overlays that run, sorted by name."""
    try:
        with PrivateFolder(run_root()) as root:
            # A user's own folder may also have files and folders that are no run folders.
            paths = [root.path / name for name in root.names() if os.path.lexists(root.path / name / STATE)]
    except FileNotFoundError:
        return []
    folders = [RunFolder(path) for path in paths]
    return [folder for folder in folders if (state := folder.state()) is not None and state.is_running]

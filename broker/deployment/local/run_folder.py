"""The run folder: a folder for each overlay that runs on this machine, with process ids, addresses and logs.

<run folder>/<overlay>/overlay.json      the supervisor and its brokers, as last written by the supervisor
                       broker-b1.log     the log of b1
                       supervisor.log
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from broker.deployment.local.errors import DeploymentError
from broker.deployment.local.processes import ProcessIdentity

VARIABLE = "MERCAST_RUN_DIR"
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
            if self.path.parent.stat().st_uid != os.getuid():
                raise DeploymentError(
                    f"{self.path.parent} belongs to another user; set {VARIABLE} to a folder of yours"
                )
            self.path.mkdir(mode=0o700, exist_ok=True)
            for old in self.path.iterdir():
                if old.suffix in (".json", ".log"):
                    old.unlink()
        except OSError as error:
            raise DeploymentError(f"cannot make the run folder {self.path}: {error.strerror}") from error

    def log_of(self, broker: str) -> Path:
        return self.path / f"broker-{quote(broker, safe='')}.log"

    def write_state(self, state: OverlayState) -> None:
        temporary = self.path / f".{STATE}"
        temporary.write_text(json.dumps(asdict(state), indent=1), encoding="utf-8")
        temporary.replace(self.path / STATE)

    def state(self) -> OverlayState | None:
        content = _json(self.path / STATE)
        return None if content is None else _overlay_state(content)

    def remove_state(self) -> None:
        """Removes the state of a stopped overlay. The logs stay until the next start."""
        (self.path / STATE).unlink(missing_ok=True)

    def last_lines(self, broker: str, count: int = 5) -> list[str]:
        try:
            return self.log_of(broker).read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
        except FileNotFoundError:
            return []


def run_folder_of(name: str) -> RunFolder:
    if not _PLAIN.fullmatch(name):
        raise DeploymentError(
            f"overlay {name!r} cannot have a run folder of that name; use letters, digits, dots, dashes and underscores"
        )
    return RunFolder(run_root() / name)


def running_folders() -> list[RunFolder]:
    """The folders of the overlays that run, sorted by name."""
    root = run_root()
    if not root.is_dir():
        return []
    folders = [RunFolder(path) for path in sorted(root.iterdir()) if (path / STATE).is_file()]
    return [folder for folder in folders if (state := folder.state()) is not None and state.is_running]


def _json(path: Path) -> Mapping[str, object] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DeploymentError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise DeploymentError(f"{path} does not hold an object")
    return content


def _overlay_state(content: Mapping[str, object]) -> OverlayState:
    brokers = content["brokers"]
    assert isinstance(brokers, list)
    supervisor = _identity(content["supervisor"])
    assert supervisor is not None
    return OverlayState(
        str(content["name"]),
        str(content["file"]),
        supervisor,
        tuple(
            BrokerState(
                each["id"],
                _identity(each["process"]),
                each["phase"],
                each["listen"],
                each["admin"],
                each["restarts"],
                each["last_exit"],
            )
            for each in brokers
        ),
    )


def _identity(content: object) -> ProcessIdentity | None:
    return ProcessIdentity(content["pid"], content["started"]) if isinstance(content, dict) else None

"""Finds the address of a broker's admin pages, from the overlay file or from the run folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from broker.config.address import Address, parse_address
from broker.config.overlay_config import read_config
from broker.deployment.local.errors import DeploymentError, PreflightError
from broker.deployment.local.lifecycle import running_overlays
from broker.deployment.local.preflight import lacks_admin_pages
from broker.deployment.local.run_folder import LEFT, BrokerState, OverlayState
from topologies.errors import nearest


@dataclass(frozen=True, slots=True)
class AdminPagesLocation:
    address: Address
    overlay_file: Path


def find_admin_pages(overlay: str, id: str) -> AdminPagesLocation:
    """Returns where a broker's admin pages are. `overlay` is a file, or the name of an overlay that runs here."""
    path = Path(overlay)
    # An overlay's name may contain a dot, so a suffix alone does not make it a file name.
    is_name = any(folder.name == overlay for folder in running_overlays([])) or (
        not path.suffix and len(path.parts) == 1
    )
    if is_name and not path.is_file():
        states = _running_states([overlay])
    else:
        admin = read_config(path).broker(id).admin
        if admin is None:
            raise PreflightError(f"broker {id} has no admin pages: {path} says admin = 'off'")
        if admin.port:
            return AdminPagesLocation(admin, path)
        # The file says port 0. Only the run folder has the port that the broker chose.
        states = [state for state in _running_states([]) if Path(state.file) == path.resolve()]
        states = [state for state in states if any(each.id == id for each in state.brokers)]
        if not states:
            raise DeploymentError(
                f"broker {id} of {path} was not started by `mercast up` here, and its admin pages are at a port "
                "that the file does not tell; use --admin HOST:PORT"
            )
        if len(states) > 1:
            names = ", ".join(state.name for state in states)
            raise DeploymentError(f"broker {id} of {path} runs in several overlays; name one of them: {names}")
    return AdminPagesLocation(_running_address(states[0], id), Path(states[0].file))


def _running_states(names: list[str]) -> list[OverlayState]:
    return [state for folder in running_overlays(names) if (state := folder.state()) is not None]


def _running_address(state: OverlayState, id: str) -> Address:
    brokers: dict[str, BrokerState] = {each.id: each for each in state.brokers}
    broker = brokers.get(id)
    if broker is None:
        raise PreflightError(f"overlay {state.name} has no broker {id!r} here; {nearest(id, list(brokers))}")
    if broker.phase == LEFT:
        raise DeploymentError(f"broker {id} has left overlay {state.name} already")
    if broker.listen is None:
        raise DeploymentError(f"broker {id} of overlay {state.name} does not serve: {broker.phase}")
    if broker.admin is None:
        why = "pip install 'mercast[admin]'" if lacks_admin_pages() else f"{state.file} says admin = 'off'"
        raise DeploymentError(f"broker {id} of overlay {state.name} has no admin pages; {why}")
    return parse_address(broker.admin)

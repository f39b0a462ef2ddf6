"""Finds overlay files by path, and the overlays that Mercast ships by name."""

from __future__ import annotations

from pathlib import Path

from broker.deployment.local.errors import PreflightError
from topologies.errors import nearest

SHIPPED = Path(__file__).parent / "overlays"


def shipped_names() -> list[str]:
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def find_overlay_file(overlay: str) -> Path:
    """Returns the file with that path, or else the shipped overlay with that name."""
    path = Path(overlay)
    if path.is_file():
        return path.resolve()
    names = shipped_names()
    if overlay in names:
        return SHIPPED / f"{overlay}.toml"
    if path.suffix or len(path.parts) > 1:
        raise PreflightError(f"there is no file {overlay}; write one, or take a shipped overlay: {', '.join(names)}")
    raise PreflightError(f"there is no file and no shipped overlay {overlay!r}; {nearest(overlay, names)}")

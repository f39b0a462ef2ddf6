"""Checks that results can be written to a path, before work that takes minutes."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

from experiments.errors import OutputError


def check_folder(folder: Path) -> None:
    """Refuses a folder in which no file can be created. Creates a missing folder for the test, and removes it."""
    missing: list[Path] = []
    try:
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        # Permissions are not enough: root has all of them, but cannot write below /proc or on a read-only disk.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileExistsError as error:
        raise OutputError(folder, "it is a file, not a folder") from error
    except OSError as error:
        raise OutputError(folder, error.strerror or str(error)) from error
    finally:
        for each in missing:
            with suppress(OSError):
                each.rmdir()


def check_file(path: Path, *, makes_folder: bool = True) -> None:
    """Refuses a file that cannot be written. Its folder may be missing if `makes_folder`: the caller creates it."""
    try:
        if path.is_dir():
            raise OutputError(path, "it is a folder; name a file")
        if not makes_folder and not path.parent.is_dir():
            raise OutputError(path, f"there is no folder {path.parent}")
        if path.exists():
            with path.open("ab"):
                return
    except OSError as error:
        raise OutputError(path, error.strerror or str(error)) from error
    try:
        check_folder(path.parent)
    except OutputError as error:
        raise OutputError(path, error.reason) from error

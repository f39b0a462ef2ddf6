"""A folder that only the present user can write to, and its files.

Every check is made on an opened file, and reading and writing use the same open file. A check of a path would be
useless: another user could exchange the file between the check and its use.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from broker.deployment.local.errors import DeploymentError

VARIABLE = "MERCAST_RUN_DIR"
_OWN_FOLDER = f"set {VARIABLE} to a folder of your own"


class PrivateFolder:
    """An open folder. It and each of its files that are used belong to this user, and no other user can write to them.

    Methods raise DeploymentError if that is not so, and FileNotFoundError if the file does not exist.
    """

    def __init__(self, path: Path, *, parent: PrivateFolder | None = None) -> None:
        """`path`: the folder, or its name in the open folder `parent`."""
        self.path: Path = path if parent is None else parent.path / path
        self.descriptor = _open(self.path, path, os.O_RDONLY | os.O_DIRECTORY, parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)

    def names(self) -> list[str]:
        with os.scandir(self.descriptor) as entries:
            return sorted(entry.name for entry in entries)

    def make(self, name: str) -> None:
        """Makes a folder in this folder, if there is none."""
        try:
            os.mkdir(name, 0o700, dir_fd=self.descriptor)
        except FileExistsError:
            return

    def enter(self, name: str) -> PrivateFolder:
        """Opens a folder in this folder."""
        return PrivateFolder(Path(name), parent=self)

    def read(self, name: str) -> bytes:
        with os.fdopen(self._open(name, os.O_RDONLY), "rb") as file:
            return file.read()

    def append(self, name: str) -> BinaryIO:
        """Opens a file to write at its end. Makes the file if there is none."""
        return os.fdopen(self._open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")

    def replace(self, name: str, content: bytes) -> None:
        """Writes the file. A reader sees the old content or the new content, never a part of it."""
        temporary = f".{name}"
        self.remove(temporary)
        with os.fdopen(self._open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(content)
        os.replace(temporary, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Removes the file, if there is one."""
        try:
            os.unlink(name, dir_fd=self.descriptor)
        except FileNotFoundError:
            return

    def _open(self, name: str, flags: int) -> int:
        return _open(self.path / name, Path(name), flags, self)


def _open(path: Path, name: Path, flags: int, parent: PrivateFolder | None) -> int:
    """Opens a file or folder and checks it. `name` is relative to `parent`; errors show `path`."""
    # Without O_NONBLOCK, opening a pipe would wait for its other end.
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, 0o600, dir_fd=None if parent is None else parent.descriptor)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DeploymentError(_open_error(path, error)) from error
    try:
        _check(path, os.fstat(descriptor), is_folder=bool(flags & os.O_DIRECTORY))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _open_error(path: Path, error: OSError) -> str:
    # The link is looked up only for the message. O_NOFOLLOW has refused it already.
    if error.errno in (errno.ELOOP, errno.ENOTDIR) and path.is_symlink():
        return f"{path} is a symbolic link, which another user may have made; remove it, or {_OWN_FOLDER}"
    return f"{path} cannot be opened: {error.strerror}; {_OWN_FOLDER}"


def _check(path: Path, status: os.stat_result, *, is_folder: bool) -> None:
    if not is_folder and not stat.S_ISREG(status.st_mode):
        raise DeploymentError(f"{path} is not a file; remove it, or {_OWN_FOLDER}")
    me = os.geteuid()
    if status.st_uid != me:
        raise DeploymentError(f"{path} belongs to {_user(status.st_uid)}, and this is {_user(me)}; {_OWN_FOLDER}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(status.st_mode)
        raise DeploymentError(
            f"{path} has the mode {mode:o}, so that other users can write to it; "
            f"check its content and run `chmod go-w {path}`, or {_OWN_FOLDER}"
        )


def _user(id: int) -> str:
    try:
        return f"user {pwd.getpwuid(id).pw_name} ({id})"
    except KeyError:
        return f"user {id}"

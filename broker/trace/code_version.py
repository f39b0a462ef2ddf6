"""The code version of a trace or a result: the installed version, and in a git checkout the commit.

It is read once for each process, because a sweep needs it for every run.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

UNKNOWN = "unknown"
CHECKOUT = Path(__file__).resolve().parents[2]
"""The folder of the packages: the git checkout of an editable install, otherwise the folder of installed packages."""
CODE = ("*.py", "*.cpp", "*.hpp", "*.toml", "*.css", ":!tests")
"""The files that a result may depend on. Changes of other files, such as results, do not count as changed code."""
GIT_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class CodeVersion:
    """The version of the code that wrote a trace or a result."""

    version: str
    commit: str = UNKNOWN
    is_changed: bool | None = None
    """Whether the code differs from the commit; None if the commit is unknown."""

    def __str__(self) -> str:
        changed = " with changes" if self.is_changed else ""
        return f"mercast {self.version}, commit {self.commit[:12]}{changed}"


@cache
def code_version() -> CodeVersion:
    return read_code_version(CHECKOUT)


def read_code_version(checkout: Path) -> CodeVersion:
    """Reads the code version. The commit is unknown without git, or outside a checkout of this project."""
    installed = version("mercast")
    top = _git(checkout, "rev-parse", "--show-toplevel")
    # Packages may be installed inside the checkout of another project, whose commit is not theirs.
    if top is None or Path(top) != checkout:
        return CodeVersion(installed)
    commit = _git(checkout, "rev-parse", "HEAD")
    changes = _git(checkout, "status", "--porcelain", "--", *CODE)
    if commit is None or changes is None:
        return CodeVersion(installed)
    return CodeVersion(installed, commit, bool(changes))


def _git(checkout: Path, *words: str) -> str | None:
    """The output of a git command, or None if git is missing or the command fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=GIT_WITHIN_S,
            # A status query must not write git's index during a commit.
            env={**environment, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

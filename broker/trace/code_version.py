"""Which code made a trace or a result: the installed version, and in a git checkout the commit.

Read once for each process: a sweep asks for every run.
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
"""The folder that has the packages: of a git checkout in an editable install, else of the installed packages."""
CODE = ("*.py", "*.cpp", "*.hpp", "*.toml", "*.css", ":!tests")
"""What a result may depend on. Other files, such as results themselves, may change without making it another code."""
GIT_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class CodeVersion:
    version: str
    commit: str = UNKNOWN
    is_changed: bool | None = None
    """Whether the code differs from the commit; None where the commit is not known."""

    def __str__(self) -> str:
        changed = " with changes" if self.is_changed else ""
        return f"mercast {self.version}, commit {self.commit[:12]}{changed}"


@cache
def code_version() -> CodeVersion:
    return read_code_version(CHECKOUT)


def read_code_version(checkout: Path) -> CodeVersion:
    """Without git, or outside a checkout of this project, the commit is unknown."""
    installed = version("mercast")
    top = _git(checkout, "rev-parse", "--show-toplevel")
    # Packages that are installed inside somebody's checkout are not that checkout's code.
    if top is None or Path(top) != checkout:
        return CodeVersion(installed)
    commit = _git(checkout, "rev-parse", "HEAD")
    changes = _git(checkout, "status", "--porcelain", "--", *CODE)
    if commit is None or changes is None:
        return CodeVersion(installed)
    return CodeVersion(installed, commit, bool(changes))


def _git(checkout: Path, *words: str) -> str | None:
    """What git says, or None where it is missing or refuses."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=GIT_WITHIN_S,
            # Looking must not write git's index while somebody commits.
            env={**environment, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

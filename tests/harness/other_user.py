"""Runs commands as other users of this machine. Only root can do that."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.harness.programs import path_of

NOBODY = 65534
SOMEBODY = 65533
"""User ids without rights."""


def words_as(user: int) -> list[str]:
    """The words before a command that run it as this user. Skips the test if this process may not do that."""
    # The Python interpreter may be in a folder that only root can read, so the user keeps the right to read all files.
    right = "+dac_read_search"
    ids = ["--reuid", str(user), "--regid", str(user), "--clear-groups"]
    words = [path_of("setpriv"), *ids, "--inh-caps", right, "--ambient-caps", right]
    tried = subprocess.run([*words, sys.executable, "-c", ""], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"commands cannot run as another user here (root is needed): {tried.stderr.strip()}")
    return words

"""Exit codes of commands that fail."""

from __future__ import annotations

import sys
from typing import NoReturn


def exit_with_error(error: Exception) -> NoReturn:
    """Prints the error's message and exits with its `exit_code`. Raises an error without `exit_code` again."""
    exit_code = getattr(error, "exit_code", None)
    if not isinstance(exit_code, int):
        raise error
    print(f"mercast: {error}", file=sys.stderr)
    raise SystemExit(exit_code) from None

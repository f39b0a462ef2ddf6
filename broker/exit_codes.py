"""How a command ends over an error."""

from __future__ import annotations

import sys
from typing import NoReturn


def exit_with_error(error: Exception) -> NoReturn:
    """With the error's message and exit code, if it is one of those that users are meant to see."""
    exit_code = getattr(error, "exit_code", None)
    if not isinstance(exit_code, int):
        raise error
    print(f"mercast: {error}", file=sys.stderr)
    raise SystemExit(exit_code) from None

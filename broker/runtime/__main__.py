"""One broker, as `mercast broker` starts it: `python -m broker.runtime ARGUMENTS`.

ARGUMENTS are the arguments of `run_broker` as JSON. This module does not import the command-line parser, which would
occupy a fifth of a broker's memory as long as the broker runs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from broker.exit_codes import exit_with_error
from broker.runtime.process import run_broker


def main() -> None:
    path, id, join, is_insecure, trace, level = json.loads(sys.argv[1])
    try:
        run_broker(Path(path), id, join, is_insecure, Path(trace) if trace else None, level)
    except Exception as error:
        exit_with_error(error)


main()

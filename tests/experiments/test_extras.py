"""Proves that a plain installation, without extras, says what to install before it works, and still lists scenarios."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("simpy", "pyarrow", "numpy", "matplotlib", "networkx", "pyspark")


def without(hidden: tuple[str, ...], *words: str) -> subprocess.CompletedProcess[str]:
    code = (
        f"import sys\nsys.modules.update(dict.fromkeys({hidden!r}))\n"
        f"sys.argv = ['mercast', *{words!r}]\nimport mercast\nmercast.main()"
    )
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)


def test_scenarios_are_listed_without_any_extra() -> None:
    done = without(EXTRAS, "simulate", "list")
    assert done.returncode == 0, done.stderr
    assert "gtitm-20" in done.stdout


@pytest.mark.parametrize(
    ("hidden", "words", "says"),
    [
        (EXTRAS, ("simulate", "line"), "simulations need simpy: pip install 'mercast[sim]'"),
        (("pyarrow",), ("simulate", "line", "--out", "none"), "traces need pyarrow: pip install 'mercast[sim]'"),
        (EXTRAS, ("simulate-bench",), "simulations need simpy: pip install 'mercast[sim]'"),
        (EXTRAS, ("demo",), "the demo's simulations need simpy: pip install 'mercast[sim,spark]'"),
        (("matplotlib",), ("demo",), "the demo's figures need matplotlib: pip install 'mercast[sim,spark]'"),
        (
            EXTRAS,
            ("experiment", "run", "text-1.3"),
            "the experiments' runs need simpy: pip install 'mercast[sim,spark]'",
        ),
        (
            ("matplotlib",),
            ("experiment", "run", "text-1.3"),
            "the experiments' figures need matplotlib: pip install 'mercast[sim,spark]'",
        ),
    ],
)
def test_what_is_missing_is_named_with_what_to_type(hidden: tuple[str, ...], words: tuple[str, ...], says: str) -> None:
    done = without(hidden, *words)
    assert (done.returncode, done.stderr) == (3, f"mercast: {says}\n")

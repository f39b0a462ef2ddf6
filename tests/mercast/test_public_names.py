"""`from mercast import …` offers what users need, and loads a library only when its name is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mercast
from broker.trace.schema import HopRow, TraceError

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("asyncio", "lark", "msgpack", "simpy", "pyarrow", "numpy", "networkx", "typer")


def test_importing_the_package_loads_no_library() -> None:
    script = f"import sys, mercast\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", mercast.__all__)
def test_every_public_name_can_be_called(name: str) -> None:
    assert callable(getattr(mercast, name))


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'subscribe'"):
        mercast.subscribe  # noqa: B018


def test_expressions_and_indexes() -> None:
    index = mercast.create_index("auto")
    index.add(1, mercast.parse("price < 100"))
    index.add(2, mercast.attr("price") > 50)
    assert list(index.match({"price": 70}).ids) == [1, 2]
    assert list(index.match({"price": 30}).ids) == [1]


def test_a_run_and_its_trace(tmp_path: Path) -> None:
    summary = mercast.simulate(
        "line", "d-dbr", seed=3, settings={"clients.subscriptions_each": 5}, out=tmp_path / "run"
    )
    assert summary.seed == 3
    assert summary.missed == 0
    trace = mercast.read_trace(tmp_path / "run")
    assert trace["deliveries"].num_rows == summary.delivered > 0
    assert {"hops", "deliveries", "publications"} <= set(trace)
    assert all(isinstance(row, HopRow) for row in trace.rows("hops"))


def test_a_folder_without_a_trace_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=f"{tmp_path} holds no trace"):
        mercast.read_trace(tmp_path)

"""Proves that an installation without extras names the missing package before any work, and still lists scenarios."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.figures.registry import select
from experiments.figures.run_figure import needs_spark
from experiments.figures.spark_columns import COLUMNS_FILE
from experiments.sweeps.sweep import OUTCOME

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("simpy", "pyarrow", "numpy", "matplotlib", "networkx", "pyspark", "jinja2")


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
        (("jinja2",), ("demo",), "the demo's pages need jinja2: pip install 'mercast[sim,spark]'"),
        (("jinja2",), ("experiment", "report"), "pages need jinja2: pip install 'mercast[spark]'"),
        (
            ("jinja2",),
            ("analyse", "none"),
            "the analysis's figures and pages need jinja2: pip install 'mercast[spark]'",
        ),
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
def test_a_missing_package_is_named_with_the_command_to_type(
    hidden: tuple[str, ...], words: tuple[str, ...], says: str
) -> None:
    done = without(hidden, *words)
    assert (done.returncode, done.stderr) == (3, f"mercast: {says}\n")


def test_an_experiment_whose_traces_spark_must_analyse_is_refused_before_its_runs(tmp_path: Path) -> None:
    words = ("experiment", "run", "fig-10.1.12", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out"))
    done = without(("pyspark",), *words)
    says = "the analysis needs pyspark.sql: pip install 'mercast[spark]'"
    assert (done.returncode, done.stderr) == (3, f"mercast: {says}\n")
    assert not list(tmp_path.iterdir())


def test_runs_whose_tables_were_kept_need_no_spark(tmp_path: Path) -> None:
    (entry,) = select(["fig-10.1.12"])
    for point in entry.points("quick"):
        assert needs_spark(entry, "quick", tmp_path, force=False)
        folder = tmp_path / point.spec.folder_name
        folder.mkdir(exist_ok=True)
        (folder / OUTCOME).write_text(json.dumps({"numbers": {}, "lists": {}, "seconds": 1.0}))
        assert needs_spark(entry, "quick", tmp_path, force=False)
        (folder / COLUMNS_FILE).write_text(json.dumps({table: {} for table in entry.tables}))
    assert not needs_spark(entry, "quick", tmp_path, force=False)
    assert needs_spark(entry, "quick", tmp_path, force=True)
    (without_tables,) = select(["text-1.3"])
    assert not needs_spark(without_tables, "quick", tmp_path, force=True)

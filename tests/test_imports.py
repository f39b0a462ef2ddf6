"""Who may import whom: the direction of imports is the architecture, so a breach fails here."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MAY_IMPORT = {
    "matching": set(),
    "topologies": set(),
    "routing": {"matching"},
    "broker": {"routing", "matching", "topologies"},
    "experiments": {"broker", "routing", "matching", "topologies"},
}
PACKAGES = set(MAY_IMPORT)

# What would give the broker core a clock, a socket or a thread of its own.
WORLDLY = {"asyncio", "simpy", "socket", "time", "threading", "logging", "multiprocessing", "subprocess"}
OUTSIDE_THE_CORE = (
    "experiments/",
    "broker/client/",
    "broker/deployment/",
    "broker/simulation/",
    "broker/runtime/",
    "broker/gateway/",
    "broker/security/",
)
ONLY_IN = {
    "pyspark": ("experiments/analysis/", "experiments/sweep_spark.py"),
    "duckdb": ("experiments/analysis/",),
    "networkx": ("topologies/",),
    "cryptography": ("broker/security/",),
    "simpy": ("broker/simulation/",),
    "pyarrow": ("broker/trace_files.py", "experiments/analysis/"),
    "aiomqtt": ("broker/gateway/",),
    "paho": ("broker/gateway/",),
}
HEAVY = ("pyspark", "networkx", "matplotlib", "numpy", "lark", "re2", "msgpack", "simpy", "pyarrow")


def modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def core_modules() -> list[Path]:
    return [path for path in modules() if not place(path).startswith(OUTSIDE_THE_CORE)]


def imported_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their package in full"
            yield node.module or ""


def imports_of(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imported_names(ast.parse(path.read_text()))}


def place(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", modules(), ids=place)
def test_a_module_imports_only_what_its_package_may(path: Path) -> None:
    package = place(path).partition("/")[0]
    assert (imports_of(path) & PACKAGES) - {package} <= MAY_IMPORT[package]


@pytest.mark.parametrize("path", core_modules(), ids=place)
def test_the_core_knows_no_clock_and_no_socket(path: Path) -> None:
    assert not imports_of(path) & WORLDLY


@pytest.mark.parametrize("path", modules(), ids=place)
def test_a_large_dependency_is_imported_in_its_one_place(path: Path) -> None:
    for dependency, places in ONLY_IN.items():
        assert dependency not in imports_of(path) or place(path).startswith(places)


@pytest.mark.parametrize("path", modules(), ids=place)
def test_randomness_comes_from_a_generator_that_was_passed_in(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "random":
            assert node.attr == "Random", f"line {node.lineno}: random.{node.attr} draws from a global generator"
        if isinstance(node, ast.ImportFrom) and node.module == "random":
            assert [alias.name for alias in node.names] == ["Random"]


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "--version",
        "match --help",
        "topology --help",
        "simulate --help",
        "deploy --help",
        "mqtt-bench --help",
        "experiment --help",
        "demo --help",
        "pub --help",
        "up --help",
        "broker --help",
        "analyse --help",
    ],
)
def test_help_and_version_load_nothing_heavy(words: str) -> None:
    script = (
        "import sys, mercast\n"
        "try:\n    mercast.main()\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code\n"
        f"print('loaded', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words.split()], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "loaded []"
    assert len(done.stdout.splitlines()) > 1

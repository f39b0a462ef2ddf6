"""Which package and subpackage may import which. The direction of imports is the architecture."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MAY_IMPORT = {
    "matching": set(),
    "topologies": set(),
    "routing": {"matching"},
    "broker": {"routing", "matching", "topologies"},
    "experiments": {"broker", "routing", "matching", "topologies"},
    "mercast": {"experiments", "broker", "routing", "matching", "topologies"},
}
PACKAGES = set(MAY_IMPORT)

# Which subpackages of its package a subpackage may import, besides the modules at the top. Subpackages that are not
# listed here import no other.
ROOMS = {
    "broker/client": {"config", "security", "wire"},
    "broker/config": {"core", "wire"},
    "broker/deployment": {"config", "security"},
    "broker/mqtt": {"client", "config", "core", "security", "wire"},
    "broker/runtime": {"config", "core", "mqtt", "security", "trace", "wire"},
    "broker/security": {"config"},
    "broker/simulation": {"core", "trace", "wire"},
    "broker/trace": {"core", "wire"},
    "experiments/benchmarks": {"workloads"},
    "experiments/demo": {"analysis", "figures", "report", "sweeps"},
    "experiments/figures": {"analysis", "sweeps"},
    "experiments/report": {"figures", "workloads"},
    "experiments/scenario": {"workloads"},
    "experiments/simulate": {"scenario"},
    "experiments/sweeps": {"analysis", "scenario", "simulate", "studies"},
    "experiments/torture": {"simulate", "sweeps"},
    "matching/indexes": {"expressions", "languages", "native"},
    "matching/languages": {"expressions"},
    "matching/native": {"expressions", "languages"},
    "topologies/files": {"clustering"},
}
# Subpackages that may import less than their package: all that they may import of other packages.
NARROW = {
    "broker/core": {"matching", "routing"},
    "broker/wire": {"routing.messages"},
}

# Modules that would give the broker core a clock, a socket or a thread.
WORLDLY = {"asyncio", "simpy", "socket", "time", "threading", "logging", "multiprocessing", "subprocess"}
WITHOUT_IO = ("broker/core/", "broker/wire/", "broker/config/", "matching/", "routing/", "topologies/")
ONLY_IN = {
    "pyspark": ("experiments/analysis/", "experiments/sweeps/spark.py"),
    "duckdb": ("experiments/analysis/",),
    "networkx": ("topologies/",),
    "cryptography": ("broker/security/",),
    "simpy": ("broker/simulation/",),
    "pyarrow": ("broker/trace/files.py", "broker/trace/recorded_trace.py", "experiments/analysis/"),
    "aiomqtt": ("broker/mqtt/",),
    "paho": ("broker/mqtt/",),
    "yaml": ("broker/deployment/manifests/rendering.py",),
    "jinja2": ("broker/deployment/manifests/rendering.py", "experiments/html_pages.py"),
}
HEAVY = (
    "pyspark",
    "networkx",
    "matplotlib",
    "numpy",
    "lark",
    "re2",
    "msgpack",
    "msgspec",
    "simpy",
    "pyarrow",
    "jinja2",
    "yaml",
    "tomli_w",
)


def modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def core_modules() -> list[Path]:
    return [path for path in modules() if place(path).startswith(WITHOUT_IO)]


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
def test_a_module_imports_only_packages_that_its_package_may(path: Path) -> None:
    package = place(path).partition("/")[0]
    assert (imports_of(path) & PACKAGES) - {package} <= MAY_IMPORT[package]


def targets(path: Path) -> Iterator[str]:
    """The project's modules that a module imports, by their full names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in PACKAGES)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in PACKAGES:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if is_module(full) else node.module


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def room_of(module: str) -> str:
    """The package and its room, as `broker/core`; empty for a module at the top of a package."""
    parts = module.split(".")
    return "/".join(parts[:2]) if len(parts) > 1 and ROOT.joinpath(*parts[:2]).is_dir() else ""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("path", modules(), ids=place)
def test_a_module_imports_only_the_rooms_that_its_room_may(path: Path) -> None:
    room = room_of(name_of(path))
    if not room:
        return
    package = room.partition("/")[0]
    others = {room_of(target) for target in targets(path) if target.partition(".")[0] == package} - {"", room}
    assert {each.partition("/")[2] for each in others} <= ROOMS.get(room, set())


@pytest.mark.parametrize("path", [path for path in modules() if room_of(name_of(path)) in NARROW], ids=place)
def test_a_subpackage_with_narrow_imports_imports_nothing_else(path: Path) -> None:
    room = room_of(name_of(path))
    own = room.replace("/", ".")
    for target in targets(path):
        allowed = (own, "broker.lazy_exports", *NARROW[room])
        assert any(target == each or target.startswith(f"{each}.") for each in allowed), target


def test_every_room_that_is_named_exists() -> None:
    for room, others in ROOMS.items():
        package = room.partition("/")[0]
        for each in (room, *(f"{package}/{other}" for other in others)):
            assert (ROOT / each / "__init__.py").is_file(), each


def test_simulation_runtime_and_client_do_not_know_each_other() -> None:
    drivers = {"client", "runtime", "simulation"}
    for driver in drivers:
        assert not ROOMS[f"broker/{driver}"] & drivers


def test_the_parts_of_a_running_broker_do_not_know_the_server() -> None:
    """The server connects the parts. A part that imports it, even for a type, could reach all others."""
    folder = ROOT / "broker" / "runtime"
    # The package itself exports the server.
    server = {"broker.runtime", "broker.runtime.server"}
    importing = {path.name for path in folder.rglob("*.py") if server & set(targets(path))}
    assert importing <= {"__init__.py", "__main__.py", "process.py", "server.py"}
    assert len((folder / "server.py").read_text().splitlines()) <= 150


def test_no_packages_import_each_other_in_a_circle() -> None:
    """At each level, the modules and packages of one package are the nodes; a circle may not pass through a package."""
    importing: dict[str, set[str]] = {}
    for path in modules():
        if path.name == "__init__.py":
            # A package may offer what its modules define.
            continue
        source = name_of(path).split(".")
        for target in targets(path):
            aim = target.split(".")
            level = next((n for n, pair in enumerate(zip(source, aim, strict=False)) if pair[0] != pair[1]), None)
            if level:
                importing.setdefault(".".join(source[: level + 1]), set()).add(".".join(aim[: level + 1]))
    for node in importing:
        if ROOT.joinpath(*node.split(".")).is_dir():
            assert node not in reached_from(node, importing), f"{node} imports itself in a circle"


def reached_from(node: str, importing: Mapping[str, set[str]]) -> set[str]:
    """What the node imports, and what that imports, and so on."""
    found: set[str] = set()
    ahead = [*importing.get(node, ())]
    while ahead:
        each = ahead.pop()
        if each not in found:
            found.add(each)
            ahead += importing.get(each, ())
    return found


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
        "torture --help",
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


def exporting_packages() -> list[Path]:
    return [path for path in modules() if path.name == "__init__.py" and "__all__" in path.read_text()]


@pytest.mark.parametrize("path", exporting_packages(), ids=place)
def test_every_exported_name_exists(path: Path) -> None:
    """`make docs` checks that each of them has a docstring."""
    package = importlib.import_module(name_of(path))
    for name in package.__all__:
        assert hasattr(package, name), name


@pytest.mark.parametrize("path", [path for path in modules() if path.name == "__init__.py"], ids=place)
def test_every_package_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))

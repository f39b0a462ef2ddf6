"""Backends by name: the available ones, their results, and the error if the compiled module is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import matching
from matching import registry
from matching.errors import BackendMissingError, UnknownIndexError
from tests.harness.programs import needs_compiler
from tests.matching.indexes.test_every_index import IndexAgainstScan

ROOT = Path(__file__).resolve().parents[3]

NATIVE_NAMES = registry.names("native")

HIDES_THE_MODULE = """
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "matching._native" else found(name, package)
sys.modules["matching._native"] = None
"""


@pytest.mark.parametrize("name", NATIVE_NAMES)
def test_the_native_backend_answers_as_the_scan_does(name: str) -> None:
    class Machine(IndexAgainstScan):
        index_name = name

        def __init__(self) -> None:
            super().__init__()
            self.index = matching.create(name, backend="native")

    run_state_machine_as_test(Machine, settings=settings(max_examples=40, stateful_step_count=30, deadline=None))


@needs_compiler
def test_auto_uses_the_native_indexes_when_they_are_there() -> None:
    index = matching.create("auto")
    index.add(1, "a = 1")
    index.add(2, "a = 1 OR b = 2")
    index.add(3, "(a = 1 OR b = 1) AND (a = 2 OR c = 1) AND (b = 3 OR c = 4) AND NOT (a = 7 XOR b = 9)")
    details = index.describe().details
    assert (details["conjunctions"], details["split subscriptions"], details["arbitrary expressions"]) == (3, 1, 1)
    assert type(index) is registry.info("auto").load("native")
    assert type(matching.create("auto", backend="python")) is registry.info("auto").load("python")


@needs_compiler
def test_the_version_names_the_backend() -> None:
    assert "native core" in _run("import mercast, sys; sys.argv = ['mercast', '--version']; mercast.main()")


def test_without_the_compiled_module_the_error_names_the_fix() -> None:
    script = HIDES_THE_MODULE + (
        "import matching\n"
        "from matching.errors import BackendMissingError\n"
        "from matching.registry import describe_backend\n"
        "print(describe_backend())\n"
        "assert 'flat' not in matching.names()\n"
        "index = matching.create('auto'); index.add(1, 'a = 1'); assert list(index.match({'a': 1}).ids) == [1]\n"
        "for name in ('flat', 'a-tree'):\n"
        "    try:\n"
        "        matching.create(name, backend='native')\n"
        "    except BackendMissingError as error:\n"
        "        assert 'g++' in str(error) and 'make install' in str(error) and name in str(error)\n"
        "    else:\n"
        "        raise AssertionError(name)\n"
        "try:\n"
        "    matching.create('flat')\n"
        "except BackendMissingError as error:\n"
        "    print(error.exit_code)\n"
    )
    said = _run(script).splitlines()
    assert said == ["matching in pure Python, no native core installed", str(BackendMissingError.exit_code)]


def test_a_backend_that_an_index_lacks_is_refused_by_name() -> None:
    with pytest.raises(UnknownIndexError, match="flat has no backend 'python'; it has native"):
        matching.create("flat", backend="python")


@needs_compiler
def test_matching_natively_loads_no_numpy_and_little_memory() -> None:
    """Importing takes at most 15 MB more than a bare interpreter."""
    resident = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    bare = int(_run(resident))
    script = (
        "import sys\n"
        "from matching.native.flat import Flat\n"
        "from matching.expressions.model import And, Operator, Predicate\n"
        "index = Flat()\n"
        "index.add(1, And((Predicate('a', Operator.EQ, (1,)), Predicate('s', Operator.EQ, ('x',)))))\n"
        "assert list(index.match({'a': 1, 's': 'x'}).ids) == [1]\n"
        "assert 'numpy' not in sys.modules\n"
    )
    used = int(_run(script + resident))
    assert used - bare <= 15 * 1024, f"{used - bare} KB more"


def _run(script: str) -> str:
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, env=environment, check=True
    )
    return done.stdout.strip()

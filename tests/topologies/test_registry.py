"""Every model is found by name, with parameters as text or values. A misspelt name is refused with the nearest one."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.harness.overlay_examples import EXAMPLES
from topologies.clustering.clusters import cluster_by_size
from topologies.errors import ParameterError
from topologies.files.toml import OverlayFile, format_overlay
from topologies.registry import MODELS, generate

ROOT = Path(__file__).resolve().parents[2]
SEEDED = [model for model in EXAMPLES if model not in ("line", "ring", "star", "tree")]

DIGEST = "d84b83fcede726f591f2ce76908aa1718a0e20339bad991b4b0cb17dc27e46f0"


def digest() -> str:
    """Returns a digest of the content of an overlay file of every model, in clusters. The layout of the file depends
    on the version of tomli-w."""
    files = [
        tomllib.loads(format_overlay(OverlayFile(cluster_by_size(generate(model, parameters, seed=11), 6))))
        for model, parameters in EXAMPLES.items()
    ]
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def test_the_examples_cover_every_model() -> None:
    assert list(EXAMPLES) == list(MODELS)


@pytest.mark.parametrize("model", EXAMPLES)
def test_parameters_may_be_values_or_text(model: str) -> None:
    as_text = {
        name: "x".join(map(str, value)) if isinstance(value, list) else str(value)
        for name, value in EXAMPLES[model].items()
    }
    assert generate(model, EXAMPLES[model], seed=4) == generate(model, as_text, seed=4)


@pytest.mark.parametrize("model", SEEDED)
def test_another_seed_gives_another_overlay(model: str) -> None:
    assert generate(model, EXAMPLES[model], seed=4) != generate(model, EXAMPLES[model], seed=5)


def test_overlays_are_the_same_on_every_machine_to_the_last_digit() -> None:
    """A new digest means that seeds give other overlays than before, and earlier results can no longer be
    reproduced."""
    assert digest() == DIGEST


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_overlays_do_not_depend_on_the_order_of_sets(hash_seed: str) -> None:
    script = "from tests.topologies.test_registry import digest; print(digest())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
    )
    assert done.stdout.strip() == DIGEST


@pytest.mark.parametrize("model", EXAMPLES)
def test_every_default_is_a_value_that_its_model_accepts(model: str) -> None:
    defaults = {p.name: p.default for p in MODELS[model].parameters if p.default is not None}
    assert generate(model, defaults | EXAMPLES[model], seed=4) == generate(model, EXAMPLES[model], seed=4)


@pytest.mark.parametrize(
    ("model", "parameters", "words"),
    [
        ("waxmann-2", {}, "unknown model 'waxmann-2'; did you mean 'waxman-2'"),
        ("mesh", {}, "unknown model 'mesh'; known: doar-leslie, exponential"),
        ("random", {"brokers": 10, "dgree": 3}, "model 'random' has no parameter 'dgree'; did you mean 'degree'"),
        ("random", {"degree": 3}, "model 'random' needs the parameter 'brokers': number of brokers"),
        ("random", {"brokers": "ten"}, "brokers must be a whole number, not 'ten'"),
        ("random", {"brokers": 10.5}, "brokers must be a whole number, not 10.5"),
        ("random", {"brokers": True}, "brokers must be a whole number, not True"),
        ("random", {"brokers": 10, "degree": "inf"}, "degree must be a number, not 'inf'"),
        ("random", {"brokers": 10, "degree": [3]}, r"degree must be a number, not \[3\]"),
        ("hierarchy", {"levels": "4xten"}, "levels must be whole numbers, such as 10x100, not '4xten'"),
        ("hierarchy", {"levels": []}, "levels must be whole numbers"),
        ("hierarchy", {"edges": 3}, "edges must be text, not 3"),
        ("hierarchy", {"levels": "4x6"}, "needs degree, or alpha: one for all levels or 2, one for each"),
        ("hierarchy", {"levels": "4x6", "alpha": "0.5", "degree": 3}, "give alpha or degree, not both"),
        ("hierarchy", {"levels": "4x6", "alpha": "0.9", "edges": "waxman"}, "unknown edge model 'waxman'"),
        ("hierarchy", {"levels": "4x6", "degree": 3, "brokers": 25}, "brokers = 25, but levels = 4x6 make 24"),
        ("transit-stub", {"brokers": 90}, "brokers = 90, but transit_domains = 1, transit_nodes = 10, .* make 100"),
        ("transit-stub", {"degree": 6, "stub_alpha": 0.4}, "give stub_alpha or degree, not both"),
    ],
)
def test_wrong_names_and_values_are_refused(model: str, parameters: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        generate(model, parameters)


def test_a_hierarchy_accepts_one_alpha_for_all_levels_or_one_for_each() -> None:
    assert generate("hierarchy", {"levels": "3x4", "alpha": 0.9}) == generate(
        "hierarchy", {"levels": "3x4", "alpha": "0.9,0.9"}
    )
    assert len(generate("hierarchy", {"levels": "3x4", "alpha": [1, 1]}).links) == 3 + 3 * 6

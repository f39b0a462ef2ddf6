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
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.overlay_examples import EXAMPLES
from topologies.clustering.clusters import cluster_by_size
from topologies.errors import ParameterError
from topologies.files.toml import OverlayFile, format_overlay
from topologies.files.typed_tables import TableReader
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
        ("random", {"brokers": 10, "dgree": 3}, "model 'random': dgree is unknown; did you mean 'degree'"),
        ("random", {"degree": 3}, "model 'random': brokers is missing; it must be a whole number, at least 1: number"),
        ("random", {"brokers": "ten"}, "model 'random': brokers is 'ten'; it must be a whole number"),
        ("random", {"brokers": 10.5}, "brokers is 10.5; it must be a whole number"),
        ("random", {"brokers": True}, "brokers is true; it must be a whole number"),
        ("random", {"brokers": 10, "degree": "inf"}, "degree is 'inf'; it must be a number"),
        ("random", {"brokers": 10, "degree": "null"}, "degree is 'null'; it must be a number"),
        ("random", {"brokers": 10, "degree": "3\udcff"}, r"degree is '3\\udcff'; it must be Unicode text"),
        ("random", {"\udcff": 10}, r"\\udcff is 10; it must be Unicode text"),
        ("random", {"brokers": 10, "degree": [3]}, r"degree is \[3\]; it must be a number"),
        (
            "hierarchy",
            {"levels": "4xten"},
            "levels is '4xten'; it must be whole numbers with x between, such as 10x100",
        ),
        ("hierarchy", {"levels": []}, r"levels is \[\]; it must be whole numbers, such as 10x100"),
        ("hierarchy", {"edges": 3}, "edges is 3; it must be text in quotes"),
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


@given(
    st.sampled_from([(model, parameter.name) for model in MODELS for parameter in MODELS[model].parameters]),
    st.sampled_from(
        ["", "x", "1,", "1x2", "nan", "1e999", "9" * 5_000, True, None, [], [None], {}, float("inf"), 1 << 70]
    )
    | st.text(st.characters(exclude_categories=[]))
    | st.floats()
    | st.integers(),
)
def test_any_value_of_any_parameter_is_read_or_refused_by_its_name(place: tuple[str, str], value: object) -> None:
    model, name = place
    reader = TableReader(model, ParameterError)
    needed = {each.name: 3 for each in MODELS[model].parameters if each.needed}
    problem = name
    try:
        reader.read_texts(MODELS[model].parameters_type, {**needed, name: value})
    except ParameterError as refusal:
        problem = str(refusal)
    assert name in problem


def test_a_hierarchy_accepts_one_alpha_for_all_levels_or_one_for_each() -> None:
    assert generate("hierarchy", {"levels": "3x4", "alpha": 0.9}) == generate(
        "hierarchy", {"levels": "3x4", "alpha": "0.9,0.9"}
    )
    assert len(generate("hierarchy", {"levels": "3x4", "alpha": [1, 1]}).links) == 3 + 3 * 6

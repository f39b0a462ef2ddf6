"""YAML readers read deployment files back as the content that was written."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.deployment.manifests.yaml_text import Yaml, to_documents, to_yaml
from tests.harness.yaml_reader import read_yaml

keys = st.one_of(st.sampled_from(["a", "on", "No", "app.kubernetes.io/name", "x y", "1", "", "-"]), st.text(max_size=8))
scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.sampled_from(
        ["", "no", "null", "1e3", "12:30", "# a", "- b", "a: b", "\u2028", "\x85", "None", '"', "\\", "a\nb"]
    ),
    st.text(max_size=12),
)
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=12,
)


@given(documents)
def test_written_content_reads_back(content: Yaml) -> None:
    assert read_yaml(to_yaml(content)) == content


def test_nested_lists_and_maps_are_written_in_block_form() -> None:
    assert to_yaml({"a": [{"b": 1, "c": ["x"]}, []], "d": {}}) == 'a:\n  - b: 1\n    c:\n      - "x"\n  - []\nd: {}\n'


@given(st.lists(documents, min_size=1, max_size=2))
def test_documents_are_separated(contents: list[Yaml]) -> None:
    assert len(to_documents(contents).split("\n---\n")) == len(contents)


def test_another_yaml_reader_agrees() -> None:
    python = shutil.which("python3", path="/usr/bin")
    script = "import sys, json, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))"
    content: dict[str, Yaml] = {
        "on": ["no", 1, True, "1e3", "12:30", "\u2028", {"k": {}, "l": []}],
        "x y": "a\nb",
        "n": {"m": -1},
    }
    if python is None or subprocess.run([python, "-c", "import yaml"], capture_output=True, check=False).returncode:
        pytest.skip("no PyYAML beside the system's Python; Debian, Ubuntu: apt-get install python3-yaml")
    done = subprocess.run([python, "-c", script], input=to_yaml(content), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == content

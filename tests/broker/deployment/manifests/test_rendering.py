"""YAML readers read deployment files back as the content that was written, and templates refuse a missing value."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import jinja2
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from broker.deployment.manifests.rendering import Yaml, render, to_yaml

# Some readers take these for other types than strings, or the characters in them for line ends.
WORDS = ["y", "N", "yes", "no", "On", "off", "true", "False", "null", "Null", "~", ".inf", ".NaN", "=", "<<"]
NUMBERS = ["1", "017", "0o17", "0x1F", "0b1", "1_000", "1e3", "-1.5e-3", ".5", "12:30", "2001-01-01", "2001-1-1T1:1:1Z"]
SIGNS = ["", " ", "# a", "- b", "a: b", "a #b", "*", "&", "!", "%", "@", "`", '"', "'", "\\", "\t", "\r"]
AMBIGUOUS = [*WORDS, *NUMBERS, *SIGNS, "\x85", "a\u2028b", "\ufeff", "\x00"]
FILES = ["a\nb", "a\n", "\na\n\n", " a\n  b\n", "a \nb\n", "key = 'ö'\n", "a\u2028b\nc\n", "a\tb\nc\n"]

keys = st.one_of(st.sampled_from(["a", "app.kubernetes.io/name", "x y", "-", *AMBIGUOUS]), st.text(max_size=8))
scalars = st.one_of(
    st.booleans(), st.integers(-(2**40), 2**40), st.sampled_from([*AMBIGUOUS, *FILES]), st.text(max_size=12)
)
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=12,
)


@given(documents)
def test_written_content_reads_back_with_its_keys_in_order(content: Yaml) -> None:
    assert json.dumps(yaml.safe_load(to_yaml(content))) == json.dumps(content)


@given(st.lists(documents, min_size=1, max_size=3))
def test_several_documents_read_back(contents: list[Yaml]) -> None:
    assert list(yaml.safe_load_all(to_yaml(*contents))) == contents


def test_nested_lists_and_maps_are_written_in_block_form() -> None:
    assert to_yaml({"d": [{"b": 1, "c": ["x"]}, []], "a": {}}) == "d:\n  - b: 1\n    c:\n      - x\n  - []\na: {}\n"


def test_a_value_that_occurs_twice_is_written_twice() -> None:
    labels: dict[str, Yaml] = {"app": "mercast"}
    assert to_yaml({"labels": labels, "selector": labels}) == "labels:\n  app: mercast\nselector:\n  app: mercast\n"


def test_a_file_within_a_document_keeps_its_lines() -> None:
    text = '[overlay]\nname = "Köln"\n\n[[broker]]\nid = "b1"\n'
    assert to_yaml({"overlay.toml": text}) == (
        'overlay.toml: |\n  [overlay]\n  name = "Köln"\n\n  [[broker]]\n  id = "b1"\n'
    )


def test_long_lines_are_not_broken() -> None:
    text = "word " * 50 + "end"
    assert to_yaml({"a": text}) == f"a: {text}\n"


@pytest.mark.parametrize("text", ["y", "N", "on", "null", "1e3", "0o17", "1_000e3", "12:30", "2001-1-1T1:1:1Z", ".5"])
def test_strings_that_some_reader_reads_as_another_type_are_quoted(text: str) -> None:
    assert to_yaml({text: text}) == f"'{text}': '{text}'\n"


def test_kubernetes_reads_the_same_content(tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is missing; the content was read with PyYAML alone")
    data = {str(number): text for number, text in enumerate([*AMBIGUOUS, *FILES])}
    # The keys of a config map may not be any text, but those of annotations are not checked here.
    metadata: dict[str, Yaml] = {"name": "y", "annotations": {text: text for text in AMBIGUOUS}}
    path = tmp_path / "map.yaml"
    path.write_text(to_yaml({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
    command = [kubectl, "label", "--local", "--filename", str(path), "--output", "json", "added=label"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    assert read["data"] == data
    assert read["metadata"]["name"] == "y"
    assert read["metadata"]["annotations"] == metadata["annotations"]


def test_a_template_refuses_a_missing_value() -> None:
    with pytest.raises(jinja2.UndefinedError, match="user_id"):
        render("Dockerfile", data="/data")

"""Alt files of GT-ITM are read and round-trip. Errors name the wrong line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.overlay_examples import EXAMPLES
from topologies.broker_and_link import Broker, Link
from topologies.errors import OverlayError, OverlayFileError
from topologies.files.gtitm import format_alt, parse_alt, read_alt_file, write_alt_file
from topologies.overlay import Overlay
from topologies.registry import generate

SMALL = """GRAPH (#nodes #edges id uu vv ww xx yy zz):
3 4 transtub{1,3,0}

VERTICES (index name u v w x y z):
0 T:0.0 12 7
1 S:0.0/0.0 20 3
2 S:0.0/0.1 21 4

EDGES (from-node to-node length a b):
0 1 9 4
1 2 1 1
"""


def test_a_small_file_is_read() -> None:
    overlay = parse_alt(SMALL, "small.alt", ms_per_unit=0.5)
    assert overlay == Overlay(
        "transtub{1,3,0}",
        (
            Broker("b001", position=(12, 7), label="T:0.0"),
            Broker("b002", position=(20, 3), label="S:0.0/0.0"),
            Broker("b003", position=(21, 4), label="S:0.0/0.1"),
        ),
        (Link("b001", "b002", 4.5, policy_weight=4), Link("b002", "b003", 0.5, policy_weight=1)),
    )


def test_a_file_is_written_as_it_was_read() -> None:
    assert format_alt(parse_alt(SMALL, "small.alt")) == SMALL


@pytest.mark.parametrize("model", EXAMPLES)
def test_every_model_is_read_as_it_was_written(model: str, tmp_path: Path) -> None:
    overlay = generate(model, EXAMPLES[model], seed=3)
    write_alt_file(tmp_path / "overlay.alt", overlay)
    assert read_alt_file(tmp_path / "overlay.alt") == overlay


def test_names_that_can_be_ids_become_ids() -> None:
    overlay = Overlay("two", (Broker("paris"), Broker("rome")), (Link("paris", "rome", 3.25),))
    assert parse_alt(format_alt(overlay), "two.alt") == overlay


def test_names_that_repeat_the_index_are_no_labels() -> None:
    text = SMALL.replace("T:0.0 12", "0 12").replace("S:0.0/0.0", "1").replace("S:0.0/0.1", "2")
    assert [(broker.id, broker.label) for broker in parse_alt(text, "flat.alt").brokers] == [
        ("b001", None),
        ("b002", None),
        ("b003", None),
    ]


def test_the_header_counts_both_directions_of_an_edge() -> None:
    overlay = generate("ring", {"brokers": 5})
    assert format_alt(overlay).splitlines()[1] == "5 10 ring-5"


def test_a_name_with_spaces_is_written_as_one_word() -> None:
    overlay = Overlay("my overlay", (Broker("a", label="the first"), Broker("b")), (Link("a", "b"),))
    assert parse_alt(format_alt(overlay), "spaces.alt").name == "my_overlay"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("GRAPH (#nodes", "GRAF (#nodes", r"bad.alt: line 1: expected the line 'GRAPH \(…\):'"),
        ("3 4 transtub", "three 4 transtub", "bad.alt: line 2: #nodes must be a whole number, not 'three'"),
        ("3 4 transtub{1,3,0}", "3", "line 2: expected '#nodes #edges id'"),
        ("3 4 transtub", "0 4 transtub", "line 2: #nodes must be at least 1, not 0"),
        ("3 4 transtub", "3 6 transtub", "header counts 6 arcs, which is 3 edges, but 2 are listed"),
        ("3 4 transtub", "4 4 transtub", "line 9: expected 'index name x y'|line 9: .*index must be a whole number"),
        ("VERTICES", "CORNERS", "line 4: expected the line 'VERTICES"),
        ("1 S:0.0/0.0 20 3", "1 S:0.0/0.0 20", "line 6: expected 'index name x y'"),
        ("1 S:0.0/0.0 20 3", "2 S:0.0/0.0 20 3", "line 6: vertex 2 where vertex 1 was expected"),
        ("1 S:0.0/0.0 20 3", "1 S:0.0/0.0 20 up", "line 6: y must be a number, not 'up'"),
        ("EDGES", "ARCS", "line 9: expected the line 'EDGES"),
        ("0 1 9 4", "0 3 9 4", "line 10: edge to vertex 3, but vertices are 0 to 2"),
        ("0 1 9 4", "0 1", "line 10: expected 'from-node to-node length policy-weight'"),
        ("0 1 9 4", "0 1 far 4", "line 10: length must be a number, not 'far'"),
        ("0 1 9 4", "0 1 9 heavy", "line 10: policy weight must be a whole number, not 'heavy'"),
    ],
)
def test_a_damaged_file_is_refused_with_the_line(old: str, new: str, words: str) -> None:
    assert old in SMALL
    with pytest.raises(OverlayFileError, match=words):
        parse_alt(SMALL.replace(old, new, 1), "bad.alt")


def test_a_file_that_ends_early_is_refused() -> None:
    with pytest.raises(OverlayFileError, match="the file ends where vertex 2 of 3 was expected"):
        parse_alt("\n".join(SMALL.splitlines()[:6]), "short.alt")


def test_a_file_of_a_disconnected_graph_is_refused_by_name() -> None:
    with pytest.raises(OverlayError, match=r"cut.alt: the overlay is disconnected"):
        parse_alt(SMALL.replace("3 4", "3 2").replace("1 2 1 1\n", ""), "cut.alt")


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(OverlayFileError, match=r"cannot read alt file .*none.alt: No such file"):
        read_alt_file(tmp_path / "none.alt")
    with pytest.raises(OverlayFileError, match=r"cannot write alt file .*none.alt: No such file"):
        write_alt_file(tmp_path / "nowhere" / "none.alt", generate("line", {"brokers": 2}))

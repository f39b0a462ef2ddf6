"""Overlay files round-trip and keep the keys of other modules. Errors name the wrong place."""

from __future__ import annotations

from datetime import date, datetime, time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.broker_and_link import Broker, Link
from topologies.clustering.clusters import cluster_by_size
from topologies.errors import OverlayError, OverlayFileError
from topologies.files.toml import (
    OverlayFile,
    TomlValue,
    format_overlay,
    parse_overlay,
    read_overlay_file,
    write_overlay_file,
)
from topologies.overlay import Overlay
from topologies.registry import generate

DEMO = """
schema = 1
[overlay]
name = "demo"
protocol = "merc"            # fbr | d-dbr | merc | flooding
advertise = "open"           # or "strict"
matcher = "auto"
[[broker]]
id = "b1"
clusters = ["west"]          # an edge broker lists several
listen = "127.0.0.1:7001"
[[broker]]
id = "b2"
clusters = ["west", "east"]
position = [1, 2.5]
[[broker]]
id = "b3"
clusters = ["east"]
[[link]]
between = ["b1", "b2"]
latency_ms = 2.0
[[link]]
between = ["b3", "b2"]
bandwidth_mbit = 100
policy_weight = 3
"""

texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    texts
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.dates(min_value=date(1900, 1, 1))
    | st.times()
    | st.datetimes(min_value=datetime(1900, 1, 1)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


@st.composite
def overlays(draw: st.DrawFn) -> Overlay:
    names = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=6)
    ids = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    numbers = st.floats(-1e6, 1e6)
    brokers = tuple(
        Broker(id, ("all",) if draw(st.just(True)) else (), draw(st.none() | st.tuples(numbers, numbers)), draw(texts))
        for id in ids
    )
    links = []
    for number in range(1, len(ids)):
        links.append(
            Link(
                ids[draw(st.integers(0, number - 1))],
                ids[number],
                draw(st.floats(0, 1e6)),
                draw(st.none() | st.floats(0.001, 1e6)),
                draw(st.none() | st.integers(1, 1000)),
            )
        )
    return Overlay(draw(texts), brokers, tuple(links))


def test_the_documented_file_is_read() -> None:
    file = parse_overlay(DEMO, "demo.toml")
    assert file.overlay == Overlay(
        "demo",
        (Broker("b1", ("west",)), Broker("b2", ("west", "east"), (1.0, 2.5)), Broker("b3", ("east",))),
        (Link("b1", "b2", 2.0), Link("b2", "b3", 1.0, 100.0, 3)),
    )
    assert file.settings == {"protocol": "merc", "advertise": "open", "matcher": "auto"}
    assert file.broker_settings == {"b1": {"listen": "127.0.0.1:7001"}}


def test_writing_and_reading_keeps_the_tables_of_others(tmp_path: Path) -> None:
    file = parse_overlay(DEMO, "demo.toml")
    write_overlay_file(tmp_path / "copy.toml", file)
    assert read_overlay_file(tmp_path / "copy.toml") == file


@given(overlays())
def test_any_overlay_is_read_as_it_was_written(overlay: Overlay) -> None:
    assert parse_overlay(format_overlay(OverlayFile(overlay)), "any.toml").overlay == overlay


def test_generated_and_clustered_overlays_survive_too() -> None:
    overlay = cluster_by_size(generate("waxman-2", {"brokers": 40, "degree": 4}, seed=2), 10)
    assert len(overlay.clusters) == 4
    assert parse_overlay(format_overlay(OverlayFile(overlay)), "generated.toml").overlay == overlay
    transit = generate("transit-stub", {}, seed=2)
    assert parse_overlay(format_overlay(OverlayFile(transit)), "transit.toml").overlay == transit


@given(texts, values)
def test_any_value_of_others_is_read_as_it_was_written(key: str, value: TomlValue) -> None:
    file = with_values_of_others(key, value)
    assert parse_overlay(format_overlay(file), "any.toml") == file


def test_times_and_unusual_keys_are_written() -> None:
    value: TomlValue = {"at": time(1, 2, 3), "on": date(2020, 1, 2), 'quote"d': [True, 1.5e300]}
    file = with_values_of_others("a key", value)
    assert parse_overlay(format_overlay(file), "any.toml") == file


def with_values_of_others(key: str, value: TomlValue) -> OverlayFile:
    """A file with the value in each place that other modules own."""
    overlay = Overlay("two", (Broker("b1"), Broker("b2")), (Link("b1", "b2"),))
    brokers = {id: {"listen": value, "admin": {key: value}} for id in overlay.ids}
    return OverlayFile(overlay, {"matcher": value}, brokers, {"acl": {key: value}, "limits": {}})


def test_every_broker_and_link_has_its_own_table() -> None:
    """Also a short one: to `broker = [...]` nobody could add another [[broker]]."""
    overlay = Overlay("two", (Broker("b1"), Broker("b2")), (Link("b1", "b2"),))
    text = format_overlay(OverlayFile(overlay))
    assert (text.count("[[broker]]"), text.count("[[link]]")) == (2, 1)
    added = '\n[[broker]]\nid = "b3"\n[[link]]\nbetween = ["b2", "b3"]\n'
    assert parse_overlay(text + added, "added.toml").overlay.ids == ("b1", "b2", "b3")


def test_a_file_may_request_that_ends_of_unshared_links_become_edge_brokers() -> None:
    text = DEMO.replace('clusters = ["west", "east"]', 'clusters = ["west"]')
    with pytest.raises(OverlayError, match=r'demo.toml: no edge broker joins .*unshared_links = "join"'):
        parse_overlay(text, "demo.toml")
    joined = parse_overlay(text.replace('name = "demo"', 'name = "demo"\nunshared_links = "join"'), "demo.toml")
    assert joined.overlay.edge_brokers == ("b2",)
    assert joined.broker_settings == {"b1": {"listen": "127.0.0.1:7001"}}
    assert parse_overlay(text, "demo.toml", join_links=True) == joined
    assert parse_overlay(format_overlay(joined), "again.toml") == joined


def test_clusters_can_be_left_unread() -> None:
    text = DEMO.replace('clusters = ["west", "east"]', 'clusters = ["west"]\nedge = true')
    assert parse_overlay(text, "demo.toml", drop_clusters=True).overlay.clusters == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("schema = 1", "", r"bad.toml: schema is missing; it must be 1, at the top of the file"),
        ("schema = 1", "schema = 2", r"bad.toml: schema is 2; it must be 1, at the top of the file"),
        ("schema = 1", "schema = 1\nlinks = 3", r"bad.toml: links is unknown; did you mean 'link'\?"),
        ("[overlay]", "[overlay", r"bad.toml is not TOML: .*line 3"),
        ("[overlay]", "overlay = 3\n[[broker]]", r"overlay is 3; it must be a table"),
        (
            'protocol = "merc"',
            'protocl = "merc"',
            r"overlay\.protocl is unknown; did you mean 'protocol'\?",
        ),
        ('name = "demo"', "name = 3", r"overlay\.name is 3; it must be text in quotes"),
        ('name = "demo"', 'unshared_links = "jion"', r"overlay\.unshared_links is 'jion'; did you mean 'join'\?"),
        (
            'clusters = ["west"]',
            'cluster = ["west"]',
            r"broker\.1\.cluster \(b1\) is unknown; did you mean 'clusters'\?",
        ),
        ('id = "b1"', 'Id = "b1"', r"broker\.1\.Id is unknown; did you mean 'id'\?"),
        ('id = "b1"', "", r"broker\.1\.id is missing; it must be text in quotes"),
        ('id = "b1"', "id = 1", r"broker\.1\.id is 1; it must be text in quotes"),
        (
            'clusters = ["west"]',
            'clusters = "west"',
            r"broker\.1\.clusters \(b1\) is 'west'; it must be a list of names",
        ),
        ('clusters = ["west"]', "clusters = [1]", r"broker\.1\.clusters\.1 \(b1\) is 1; it must be text in quotes"),
        ('clusters = ["west"]', 'edge = "yes"', r"broker\.1\.edge \(b1\) is 'yes'; it must be true or false"),
        ("position = [1, 2.5]", "position = [1]", r"broker\.2\.position \(b2\) is \[1\]; it must be two numbers"),
        ("position = [1, 2.5]", 'position = [1, "x"]', r"broker\.2\.position\.2 \(b2\) is 'x'; it must be a number"),
        ("latency_ms = 2.0", "latency = 2.0", r"link\.1\.latency \(b1-b2\) is unknown; did you mean 'lat"),
        ("latency_ms = 2.0", 'latency_ms = "2"', r"link\.1\.latency_ms \(b1-b2\) is '2'; it must be a number"),
        (
            'between = ["b1", "b2"]',
            'between = ["b1"]',
            r"link\.1\.between \(b1\) is \['b1'\]; it must be the ids of two brokers",
        ),
        (
            "policy_weight = 3",
            "policy_weight = 1.5",
            r"link\.2\.policy_weight \(b3-b2\) is 1.5; it must be a whole number",
        ),
        ('[[link]]\nbetween = ["b1", "b2"]\nlatency_ms = 2.0\n[[link]]', "[link]", r"write \[\[link\]\] above each"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(old: str, new: str, words: str) -> None:
    assert old in DEMO
    with pytest.raises(OverlayFileError, match=words) as caught:
        parse_overlay(DEMO.replace(old, new, 1), "bad.toml")
    assert "bad.toml" in str(caught.value)
    assert caught.value.exit_code == 3


def test_an_invalid_overlay_is_refused_with_the_file() -> None:
    with pytest.raises(OverlayError, match=r"bad.toml: link b2-b9 names an unknown broker 'b9'"):
        parse_overlay(DEMO.replace('["b3", "b2"]', '["b9", "b2"]'), "bad.toml")


def test_files_that_cannot_be_opened_are_named(tmp_path: Path) -> None:
    with pytest.raises(OverlayFileError, match=r"cannot read overlay file .*none.toml: No such file"):
        read_overlay_file(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(OverlayFileError, match=r"latin.toml is not UTF-8 text"):
        read_overlay_file(tmp_path / "latin.toml")
    with pytest.raises(OverlayFileError, match=r"cannot write overlay file .*Is a directory"):
        write_overlay_file(tmp_path, parse_overlay(DEMO, "demo.toml"))

"""Attributes of messages keep their types. No message stops the gateway, and values that are left out are counted."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from broker.config.gateway_config import PropertyReading
from broker.config.topic_template import TopicTemplate
from broker.mqtt.fast_path.properties import MOST, PropertyPacker
from broker.mqtt.mapping import ORIGIN, MessageMapping, as_json
from matching.expressions.values import Value, check_publication

values = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.sampled_from(["true", "1", "01", "-0", '"x"', '"', "null", "1e999", "NaN", "", " 1"]),
    st.text(max_size=10).filter(lambda text: "\0" not in text),
)
names = st.text(min_size=1, max_size=6).filter(lambda name: name not in ("t", ORIGIN))
publications = st.dictionaries(names, values, max_size=5)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=10,
)


def is_carried(text: str) -> bool:
    """Whether a text has no control characters, no non-characters and none beyond the first plane."""
    return not any(
        unicodedata.category(each) in ("Cc", "Cs") or ord(each) >= 0xFFFE or 0xFDD0 <= ord(each) <= 0xFDEF
        for each in text
    )


def as_properties(publication: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Decodes packed properties with paho, without the mark."""
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    packed = PropertyPacker("me").pack(publication)
    _, length = properties.unpack(packed)  # type: ignore[no-untyped-call]
    assert length == len(packed)
    pairs: list[tuple[str, str]] = getattr(properties, "UserProperty")  # noqa: B009
    assert pairs[-1] == (ORIGIN, "me")
    return pairs[:-1]


def mapping(reading: PropertyReading = PropertyReading.TYPED) -> MessageMapping:
    return MessageMapping([TopicTemplate("d/{t}")], properties=reading)


def same(one: Mapping[str, Value] | None, other: Mapping[str, Value]) -> bool:
    """Whether values and their types are equal; 1, 1.0 and True are different."""
    assert one is not None
    return one == other and [type(value) for value in one.values()] == [type(other[name]) for name in one]


@given(publications)
def test_attributes_that_were_user_properties_read_back_with_their_types(publication: dict[str, Value]) -> None:
    carried = {name: value for name, value in publication.items() if is_carried(name)}
    mapped = mapping().map("d/x", b"", as_properties(publication))
    assert same(mapped.attributes, {**carried, "t": "x"})


@given(publications)
def test_user_properties_contain_nothing_that_mqtt_brokers_refuse(publication: dict[str, Value]) -> None:
    assert all(is_carried(text) for pair in as_properties(publication) for text in pair)


@given(publications)
def test_attributes_that_were_a_json_body_read_back_with_their_types(publication: dict[str, Value]) -> None:
    mapped = mapping().map("d/x", as_json(publication))
    assert same(mapped.attributes, {**publication, "t": "x"})


@given(publications)
def test_the_json_body_is_json(publication: dict[str, Value]) -> None:
    read = json.loads(as_json(publication), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert list(read) == list(publication)


@given(st.binary(max_size=60) | json_values.map(lambda value: json.dumps(value).encode()))
def test_for_any_payload_the_attributes_are_a_publication(payload: bytes) -> None:
    mapped = mapping().map("d/x", payload)
    assert mapped.attributes is not None
    assert check_publication(mapped.attributes) == mapped.attributes
    assert mapped.attributes["t"] == "x"


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)), max_size=4))
def test_for_any_properties_the_attributes_are_a_publication(pairs: list[tuple[str, str]]) -> None:
    mapped = mapping().map("d/x", b"", [(name, value) for name, value in pairs if name != ORIGIN])
    assert mapped.attributes is not None
    assert check_publication(mapped.attributes) == mapped.attributes


@given(st.dictionaries(names, st.sampled_from(["true", "1", '"x"', "a"]) | st.text(max_size=8), max_size=4))
def test_properties_read_as_text_stay_text(pairs: dict[str, str]) -> None:
    mapped = mapping(PropertyReading.TEXT).map("d/x", b"", pairs.items())
    assert mapped.attributes == {**pairs, "t": "x"}


def test_properties_can_be_left_unread() -> None:
    reading = mapping(PropertyReading.OFF)
    assert reading.map("d/x", b"", [("a", "1")]).attributes == {"t": "x"}
    assert reading.map("d/x", b"", [(ORIGIN, "g")]).reason == "delivered-by-gateway"


def test_the_topic_wins_over_a_property_and_a_property_over_the_payload() -> None:
    mapped = mapping().map("d/x", b'{"t": 1, "a": 1, "b": 1}', [("t", "2"), ("a", "2")])
    assert mapped.attributes == {"t": "x", "a": 2, "b": 1}


def test_objects_in_objects_are_named_with_dots() -> None:
    mapped = mapping().map("d/x", b'{"motor": {"rpm": 900, "": {"a": true}}, "motor.rpm": 1}')
    assert mapped.attributes == {"t": "x", "motor.rpm": 1, "motor..a": True}


def test_a_bare_value_has_a_name() -> None:
    assert mapping().map("d/x", b"31.5").attributes == {"t": "x", "value": 31.5}
    assert mapping().map("d/x", b'"on"').attributes == {"t": "x", "value": "on"}


def test_values_that_are_left_out_are_counted_by_reason() -> None:
    reading = mapping()
    deep = b'{"a":' * 12 + b"1" + b"}" * 12
    for payload in (
        b"not json",
        b"\xff\xfe",
        b"[" * 100_000,
        b"9" * 10_000,
        b'{"a": NaN}',
        b'{"a": null, "b": [1], "c": 9223372036854775808, "d": "\\ud800", "": 1}',
        deep,
    ):
        assert reading.map("d/x", payload).attributes == {"t": "x"}
    assert reading.left_out == {"payload-not-json": 5, "null": 1, "list": 1, "value-refused": 3, "too-deep": 1}


def test_numbers_too_large_for_doubles_are_infinite_both_ways() -> None:
    assert mapping().map("d/x", b'{"a": 1e999}').attributes == {"t": "x", "a": math.inf}
    assert as_json({"a": -math.inf}) == b'{"a":-1e999}'


def test_the_first_template_that_fits_reads_the_topic() -> None:
    reading = MessageMapping(
        [TopicTemplate("d/{room}/{n:number}"), TopicTemplate("d/#")],
        topic_attribute="topic",
        excluded=[TopicTemplate("d/secret/#")],
    )
    assert reading.map("d/lab/1", b"").attributes == {"room": "lab", "n": 1, "topic": "d/lab/1"}
    assert reading.map("d/lab", b"").attributes == {"topic": "d/lab"}
    assert reading.map("d/lab/x", b"").reason == "topic-level"
    assert reading.map("d/secret/1", b"").reason == "excluded-topic"
    assert reading.map("e", b"").reason == "no-template"


def test_remembered_topics_stay_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.mqtt.mapping.REMEMBERED_TOPICS", 3)
    reading = mapping()
    for number in range(20):
        assert reading.map(f"d/{number}", b"").attributes == {"t": str(number)}


@pytest.mark.parametrize("count", [0, 1, MOST, MOST + 10])
def test_the_number_of_user_properties_is_limited(count: int) -> None:
    publication: dict[str, Value] = {f"a{number}": "x" * number for number in range(count)}
    assert as_properties(publication) == list(publication.items())[:MOST]


def test_a_text_that_is_too_long_for_a_property_is_left_out() -> None:
    assert as_properties({"a": "x" * 65_536, "b" * 65_536: 1, "c": 2}) == [("c", "2")]

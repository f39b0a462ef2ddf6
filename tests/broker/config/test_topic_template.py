"""Topic templates match exactly the topics that their MQTT filter matches, and convert levels to their types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config.tables import ConfigError
from broker.config.topic_template import LevelError, TopicTemplate, filter_covers, minimal_filters

level_texts = st.sampled_from(["", "a", "b", "lab", "$SYS", "x y", "ä"])
topics = st.lists(level_texts, min_size=1, max_size=4).map("/".join).filter(bool)
filter_levels = st.one_of(st.just("+"), level_texts)


@st.composite
def filters(draw: st.DrawFn) -> str:
    levels = draw(st.lists(filter_levels, min_size=1, max_size=4))
    if draw(st.booleans()):
        levels.append("#")
    text = "/".join(levels)
    return text or "a"


def mqtt_matches(topic_filter: str, topic: str) -> bool:
    """An independent implementation of the matching rule of the MQTT standard."""
    wanted, given_levels = topic_filter.split("/"), topic.split("/")
    if topic.startswith("$") and wanted[0] in ("+", "#"):
        return False
    for place, level in enumerate(wanted):
        if level == "#":
            return True
        if place >= len(given_levels) or level not in ("+", given_levels[place]):
            return False
    return len(wanted) == len(given_levels)


@given(filters(), topics)
def test_a_template_matches_the_same_topics_as_its_filter(text: str, topic: str) -> None:
    template = TopicTemplate(text)
    assert template.topic_filter == text
    assert (template.read(topic) is not None) == mqtt_matches(text, topic)


@given(filters(), filters(), topics)
def test_a_filter_that_covers_another_matches_all_its_topics(wide: str, narrow: str, topic: str) -> None:
    if filter_covers(wide, narrow) and mqtt_matches(narrow, topic):
        assert mqtt_matches(wide, topic)


@given(st.lists(filters(), max_size=5), topics)
def test_minimal_filters_match_the_same_topics_as_all_filters(texts: list[str], topic: str) -> None:
    templates = [TopicTemplate(text) for text in texts]
    minimal = minimal_filters(templates)
    assert any(mqtt_matches(each, topic) for each in texts) == any(mqtt_matches(each, topic) for each in minimal)


@given(st.lists(st.text(alphabet="abc/+#ä $", max_size=6).filter(lambda text: "/" not in text), min_size=1, max_size=5))
def test_levels_in_braces_become_attributes(levels: list[str]) -> None:
    template = TopicTemplate("/".join(f"{{a{place}}}" for place in range(len(levels))))
    topic = "/".join(levels)
    expected = None if topic.startswith("$") else {f"a{place}": level for place, level in enumerate(levels)}
    assert template.read(topic) == expected


def test_levels_have_the_types_that_the_template_says() -> None:
    template = TopicTemplate("plant/{line:number}/{indoors:boolean}/{name:string}/#")
    assert template.topic_filter == "plant/+/+/+/#"
    assert template.read("plant/7/true/7/x/y") == {"line": 7, "indoors": True, "name": "7"}
    assert template.read("plant/-1.5e2/false") is None
    assert template.read("plant/-1.5e2/false/a") == {"line": -150.0, "indoors": False, "name": "a"}
    with pytest.raises(LevelError, match=r"level 2 \(line\): 'seven' is not a number"):
        template.read("plant/seven/true/a")
    with pytest.raises(LevelError, match="neither true nor false"):
        template.read("plant/7/yes/a")
    with pytest.raises(LevelError, match="64 bits"):
        template.read(f"plant/{2**70}/true/a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a/#/b", "# stands alone, at the end"),
        ("a/b#", "# stands alone, at the end"),
        ("a/b+", r"\+ stands alone"),
        ("a/{b}c", "one {name} alone between slashes"),
        ("a/{b", "one {name} alone between slashes"),
        ("a/{}", "hold no attribute's name"),
        ("{a}/{a}", "{a} occurs twice"),
        ("{a:float}", "'float' is no type; take string, number, boolean"),
        ("a/\0", "character 0"),
        ("x" * 70_000, "longer than 65535 bytes"),
    ],
)
def test_an_invalid_template_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TopicTemplate(text)

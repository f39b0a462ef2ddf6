"""TOML values that a key of a file does not expect: other types, numbers without end, empty and nested values."""

from __future__ import annotations

from datetime import date, datetime

import tomli_w
from hypothesis import strategies as st

from topologies.files.typed_tables import parse_toml

CHOSEN = (
    *("true", "false", "nan", "-nan", "inf", "-inf", "0", "-1", "1.5", "-0.0", "1e308", "1e400"),
    *(str(1 << 63), str(-(1 << 63) - 1), "9" * 400, "9" * 5_000, "0x" + "f" * 5_000),
    *('""', '" "', '"\\u0000"', '"null"', '"0s"', '"off"', '"1:2:3"', f'"{"x" * 1_000}"'),
    *("[]", "[[]]", '[1, "x"]', '[""]', "[nan]", "[{}]", "{}", "{a = 1}", '{id = "x", name = 3}'),
    *("1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "[" * 60 + "]" * 60, "[" * 2_000 + "]" * 2_000),
)
"""Values as they are written in a file. Some of them cannot be parsed."""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
parsed_values = st.recursive(
    texts
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.dates(min_value=date(1900, 1, 1))
    | st.times()
    | st.datetimes(min_value=datetime(1900, 1, 1)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


def _written(value: object) -> str:
    """Returns the value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_written(key)} = {_written(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return tomli_w.dumps({"key": value}).removeprefix("key = ").removesuffix("\n")


hostile_values: st.SearchStrategy[str] = st.sampled_from(CHOSEN) | parsed_values.map(_written)


def is_readable(text: str) -> bool:
    """Whether the document can be parsed, so that an error can name a key."""
    try:
        parse_toml(text, "", ValueError)
    except ValueError:
        return False
    return True

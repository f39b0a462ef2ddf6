"""Tables become typed structs, and every error names the source, the whole key, the value and what is allowed."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from topologies.files.typed_tables import (
    INT_MAX,
    Count,
    Finite,
    Number,
    Positive,
    Share,
    Table,
    TableReader,
    about,
    expecting,
    key_names,
    parse_toml,
    read_text,
    shown_value,
)


class TableError(Exception):
    pass


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Even:
    """A type of the project's own, which files have as text."""

    def __init__(self, number: int) -> None:
        self.number = number


def parse_even(text: str) -> Even:
    if not text.isdecimal() or int(text) % 2:
        raise ValueError(f"{text!r} is not even; write 2 or 4")
    return Even(int(text))


class Inner(Table, frozen=True, kw_only=True):
    id: str = ""
    share: Share = 0.5
    pair: tuple[Finite, Finite] | None = None


class Outer(Table, frozen=True, kw_only=True):
    count: Annotated[Count, about("number of things")]
    rate: Positive = 1.0
    number: Number = 0.0
    few: Annotated[int, Meta(gt=0, le=9)] = 1
    text: str | None = None
    flag: bool = False
    colour: Colour = Colour.RED
    mode: Literal["fast", "slow"] = "fast"
    size: Count | Literal["all"] = "all"
    names: tuple[str, ...] = ()
    even: Even | None = None
    level: Annotated[Literal[0, 1], expecting("0 (off) or 1 (on)")] = 0
    inner: Inner = Inner()
    part: tuple[Inner, ...] = ()
    free: Any = None


READER = TableReader("file.toml", TableError, {Even: parse_even})


def problem_of(table: object, reader: TableReader = READER, **options: Any) -> str:
    """The message about a table, without the source."""
    with pytest.raises(TableError) as refused:
        reader.read(Outer, table, **options)
    source, _, problem = str(refused.value).partition(": ")
    assert source == "file.toml"
    return problem


def test_a_table_becomes_a_struct() -> None:
    table = {"count": 3, "rate": 2, "colour": "green", "even": "4", "part": [{"pair": [1, 2]}], "free": {"a": [1]}}
    read = READER.read(Outer, table)
    assert (read.count, read.rate, read.colour, read.size) == (3, 2.0, Colour.GREEN, "all")
    assert isinstance(read.rate, float)
    assert read.even is not None
    assert read.even.number == 4
    assert read.part == (Inner(pair=(1.0, 2.0)),)
    assert read.free == {"a": [1]}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("count", 0, "count is 0; it must be at least 1"),
        ("count", INT_MAX + 1, f"count is {INT_MAX + 1}; it must be at least 1 and at most {INT_MAX}"),
        ("count", True, "count is true; it must be a whole number, at least 1"),
        ("count", 1.0, "count is 1.0; it must be a whole number, at least 1"),
        ("rate", 0, "rate is 0; it must be above 0"),
        ("rate", float("nan"), "rate is nan; it must be a number, above 0"),
        ("rate", float("-inf"), "rate is -inf; it must be a number, above 0"),
        ("number", -0.5, "number is -0.5; it must be at least 0"),
        ("number", "1", "number is '1'; it must be a number, at least 0"),
        ("few", 10, "few is 10; it must be above 0 and at most 9"),
        ("text", 3, "text is 3; it must be text in quotes"),
        ("text", {}, "text is {}; it must be text in quotes"),
        ("flag", 1, "flag is 1; it must be true or false"),
        ("colour", "gren", "colour is 'gren'; did you mean 'green'?"),
        ("colour", 3, "colour is 3; it must be 'red' or 'green'"),
        ("mode", "quick", "mode is 'quick'; known: fast, slow"),
        ("size", "al", "size is 'al'; it must be a whole number, at least 1, or 'all'"),
        ("size", 0, "size is 0; it must be at least 1"),
        ("names", "a", "names is 'a'; it must be a list, each text in quotes"),
        ("names", ["a", 2], "names.2 is 2; it must be text in quotes"),
        ("even", "3", "even: '3' is not even; write 2 or 4"),
        ("even", 2, "even is 2; it must be text in quotes"),
        ("even", {}, "even is {}; it must be text in quotes"),
        ("level", 2, "level is 2; it must be 0 (off) or 1 (on)"),
        ("level", "on", "level is 'on'; it must be 0 (off) or 1 (on)"),
        ("inner", 3, "inner is 3; it must be a table"),
        ("inner", {"share": 2}, "inner.share is 2; it must be at least 0 and at most 1"),
        ("inner", {"shar": 2}, "inner.shar is unknown; did you mean 'share'?"),
        ("inner", {"pair": [1]}, "inner.pair is [1]; it must be a list of 2, each a number"),
        ("inner", {"pair": [1, "x"]}, "inner.pair.2 is 'x'; it must be a number"),
        ("part", {}, "part is {}; it must be a list of tables; write [[part]] above each"),
        ("part", [{}, 3], "part.2 is 3; it must be a table"),
        ("part", [{}, {"share": "x"}], "part.2.share is 'x'; it must be a number, at least 0 and at most 1"),
        ("part", [{"id": "p1", "share": -1}], "part.1.share (p1) is -1; it must be at least 0 and at most 1"),
        ("part", [{"id": "p1", "x": 1}], "part.1.x (p1) is unknown; known: id, pair, share"),
        ("colours", 1, "colours is unknown; did you mean 'colour'?"),
        ("x` - at `$.count", 1, f"x` - at `$.count is unknown; known: {', '.join(sorted(key_names(Outer)))}"),
        ("inner", {"x` - at `$.inner.id": 1}, "inner.x` - at `$.inner.id is unknown; known: id, pair, share"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(key: str, value: object, message: str) -> None:
    assert problem_of({"count": 1, key: value}) == message


def test_a_missing_key_is_named_with_its_meaning() -> None:
    assert problem_of({}) == "count is missing; it must be a whole number, at least 1: number of things"


def test_the_key_of_the_table_itself_begins_the_key() -> None:
    assert problem_of({"count": 0}, key="a.b") == "a.b.count is 0; it must be at least 1"
    assert problem_of({"cont": 0}, key="a.b") == "a.b.cont is unknown; did you mean 'count'?"
    assert problem_of(3, key="a.b") == "a.b is 3; it must be a table"


def test_keys_of_another_reader_are_left_out_and_suggested() -> None:
    table = {"count": 1, "other": object()}
    assert READER.read(Outer, table, others=("other",)).count == 1
    assert problem_of({**table, "othr": 1}, others=("other",)) == "othr is unknown; did you mean 'other'?"


def test_a_long_value_is_shortened() -> None:
    assert len(problem_of({"count": 1, "flag": "x" * 1_000})) < 300
    assert shown_value([True, "x"]) == "[True, 'x']"


def test_a_key_from_the_command_line_is_named_as_such() -> None:
    reader = TableReader("file.toml", TableError, typed_keys=("a.inner.share", "a.part"))
    with pytest.raises(TableError, match=r"--set: a\.inner\.share is 2;"):
        reader.read(Outer, {"count": 1, "inner": {"share": 2}}, "a")
    with pytest.raises(TableError, match=r"--set: a\.part\.1\.share is 2;"):
        reader.read(Outer, {"count": 1, "part": [{"share": 2}]}, "a")
    with pytest.raises(TableError, match=r"file\.toml: a\.count is 0;"):
        reader.read(Outer, {"count": 0}, "a")


@dataclass(frozen=True, slots=True)
class Lists:
    wholes: tuple[int, ...] = ()
    numbers: tuple[float, ...] | None = None
    number: float = 0.0

    def __post_init__(self) -> None:
        if self.number < 0:
            raise LookupError("a wrong type of error") if self.number < -1 else ValueError("number is below 0")


@pytest.mark.parametrize(
    ("texts", "lists"),
    [
        ({"wholes": "10x100"}, Lists((10, 100))),
        ({"wholes": " 10 x 100 ", "number": " 5 "}, Lists((10, 100), None, 5.0)),
        ({"wholes": "3", "numbers": "0.6,0.2"}, Lists((3,), (0.6, 0.2))),
        ({"wholes": 3, "numbers": [1, 2]}, Lists((3,), (1.0, 2.0))),
    ],
)
def test_values_may_be_texts(texts: dict[str, object], lists: Lists) -> None:
    assert READER.read_texts(Lists, texts) == lists


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"wholes": "4xten"}, "wholes is '4xten'; it must be whole numbers with x between, such as 10x100"),
        ({"numbers": "1;2"}, "numbers is '1;2'; it must be numbers with commas between, such as 0.6,0.2"),
        ({"numbers": "null"}, "numbers is 'null'; it must be a list, each a number"),
        ({"number": "\udcff"}, r"number is '\udcff'; it must be Unicode text"),
    ],
)
def test_wrong_texts_are_named_with_what_is_allowed(texts: dict[str, object], message: str) -> None:
    with pytest.raises(TableError, match=re.escape(f"file.toml: {message}")):
        READER.read_texts(Lists, texts)


def test_errors_of_a_dataclass_itself_pass_unchanged() -> None:
    with pytest.raises(ValueError, match=r"^number is below 0$"):
        READER.read(Lists, {"number": -1})
    with pytest.raises(LookupError, match="a wrong type of error"):
        READER.read(Lists, {"number": -2})


@given(st.dictionaries(st.text(), st.none() | st.text() | st.integers() | st.floats() | st.lists(st.integers())))
def test_any_table_is_read_or_refused(table: dict[str, object]) -> None:
    with pytest.raises(TableError):
        READER.read(Outer, {**table, "count": None})


def test_text_that_is_not_toml_is_refused() -> None:
    for text in ("a = ", f"a = {'9' * 5_000}"):
        with pytest.raises(TableError, match=r"file\.toml is not TOML"):
            parse_toml(text, "file.toml", TableError)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"[a]\nb = [1, {INT_MAX + 1}]", "file.toml: a.b.2 is a whole number of more than 64 bits"),
        ("a = 0x" + "f" * 5_000, "file.toml: a is a whole number of more than 64 bits"),
        ("a = " + "[" * 60 + "]" * 60, "file.toml: a.1.1.1"),
        ("a = " + "[" * 5_000 + "]" * 5_000, "file.toml is nested more than 50 levels deep"),
    ],
)
def test_values_beyond_the_limits_of_toml_are_refused(text: str, message: str) -> None:
    with pytest.raises(TableError, match=re.escape(message)):
        parse_toml(text, "file.toml", TableError)
    assert parse_toml(f"a = [{-INT_MAX - 1}, {INT_MAX}]", "", TableError) == {"a": [-INT_MAX - 1, INT_MAX]}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(TableError, match=r"plan .*latin is not UTF-8 text"):
        read_text(tmp_path / "latin", "plan", TableError)
    with pytest.raises(TableError, match=r"cannot read plan .*none: No such file"):
        read_text(tmp_path / "none", "plan", TableError)
    with pytest.raises(TableError, match=r"cannot read plan .*null byte"):
        read_text(tmp_path / "a\0b", "plan", TableError)


def test_structs_and_dataclasses_have_their_keys_in_order() -> None:
    assert key_names(Inner) == ("id", "share", "pair")
    assert key_names(Lists) == ("wholes", "numbers", "number")


def test_reading_tables_loads_no_graph_library() -> None:
    script = "import sys, topologies.registry, topologies.files.toml; print('networkx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

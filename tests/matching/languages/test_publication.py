"""The text forms of publications: pairs and JSON, and their errors."""

from __future__ import annotations

import math

import pytest
from hypothesis import given

from matching.errors import PublicationError, ValueRefusedError
from matching.expressions.values import Value
from matching.languages.publication import parse_publication, to_publication_text
from tests.harness.expression_strategies import ODD_ATTRIBUTES, publications


@pytest.mark.parametrize(
    ("text", "publication"),
    [
        ("", {}),
        ("symbol=IBM price=92.5", {"symbol": "IBM", "price": 92.5}),
        ("  a=1\n\tb=-2 ", {"a": 1, "b": -2}),
        ("a=1.0 b=1e3 c=+4", {"a": 1.0, "b": 1000.0, "c": 4}),
        ("a=true b=FALSE c='true'", {"a": True, "b": False, "c": "true"}),
        ("a='two words' b=\"it's\" c='it''s' d=''", {"a": "two words", "b": "it's", "c": "it's", "d": ""}),
        ("a='12' b=x-1", {"a": "12", "b": "x-1"}),
        ("url=http://x/?q=1&r=2", {"url": "http://x/?q=1&r=2"}),
        ('"x y"=1 "say ""hi"""=2', {"x y": 1, 'say "hi"': 2}),
        ("device.temp=20 größe=3", {"device.temp": 20, "größe": 3}),
        ('{"a": 1, "b": "x", "c": true, "d": 2.5}', {"a": 1, "b": "x", "c": True, "d": 2.5}),
        (" {} ", {}),
    ],
)
def test_both_forms_are_read(text: str, publication: dict[str, Value]) -> None:
    read = parse_publication(text)
    assert read == publication
    assert [type(value) for value in read.values()] == [type(value) for value in publication.values()]


@given(publications(attributes=ODD_ATTRIBUTES))
def test_a_publication_reads_back_as_itself(publication: dict[str, Value]) -> None:
    finite = {name: value for name, value in publication.items() if value not in (math.inf, -math.inf)}
    assert repr(parse_publication(to_publication_text(finite))) == repr(finite)


@pytest.mark.parametrize("word", ["true", "False", "NaN", "inf", "12", "1e5", "two words", "a=b", "it's", ""])
def test_a_string_that_would_be_read_as_something_else_is_written_in_quotes(word: str) -> None:
    text = to_publication_text({"a": word, "b": "plain"})
    assert text.endswith("' b=plain")
    assert parse_publication(text) == {"a": word, "b": "plain"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("symbol", "column 1: 'symbol' is not name=value; a value with spaces stands in quotes: name='two words'"),
        (
            "city=New York",
            "column 10: 'York' is not name=value; a value with spaces stands in quotes: name='two words'",
        ),
        ("a=1 b=", "column 5: 'b=' has no value"),
        ("=1", "column 1: '=1' is not name=value; a value with spaces stands in quotes: name='two words'"),
        ("a='x", "column 1: 'a='x' has a quote that is not closed"),
        ("a=it's", "column 1: 'a=it's' goes on after its value; a value with quotes inside stands in quotes"),
        ("a=1 a=2", "attribute 'a' occurs twice"),
        ("a=NaN", "attribute 'a': NaN is not a value; for the string write a=\"'NaN'\""),
        ("a=-inf", "attribute 'a': -inf is not a value; for the string write a=\"'-inf'\""),
        ("a=1e999", "attribute 'a': '1e999' is beyond the largest number, 1.7976931348623157e308"),
        ("a=9223372036854775808", "attribute 'a': integer '9223372036854775808' does not fit in 64 bits"),
        ('{"a": 1', "line 1, column 8: not JSON: Expecting ',' delimiter"),
        ('{"a": 1, "a": 2}', "attribute 'a' occurs twice"),
        ('{"a": NaN}', "NaN is not a value"),
        ('{"a": ' + "9" * 5000 + "}", "the JSON object holds a number or a nesting that no publication can have"),
        ('{"a": ' + "[" * 100_000, "the JSON object holds a number or a nesting that no publication can have"),
    ],
)
def test_other_texts_than_publications_are_refused_with_their_place(text: str, message: str) -> None:
    with pytest.raises(PublicationError) as refused:
        parse_publication(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": {"b": 1}}', "attribute 'a': dict is not a value"),
        ('{"a": [1]}', "attribute 'a': list is not a value"),
        ('{"a": null}', "attribute 'a': NoneType is not a value"),
        ('{"": 1}', "attribute name '' is not a non-empty string"),
        ('""=1', "attribute name '' is not a non-empty string"),
    ],
)
def test_values_and_names_that_cannot_be_are_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ValueRefusedError, match=message):
        parse_publication(text)

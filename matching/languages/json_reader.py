"""JSON read without recursion, so that depth is limited by our limits and not by the interpreter's stack.

Stricter than `json.loads` where that would lose something: a key that occurs twice, NaN and Infinity, and integers
beyond 64 bits are refused, each with its line and column.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from matching.errors import ParseError
from matching.languages.limits import END, UNLIMITED, Form, ParseLimits, Unexpected, in_words, quoted, read
from matching.languages.tokens import NOT_NUMBERS, placed_number

if TYPE_CHECKING:
    from lark import Lark, Token

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_GRAMMAR = r"""
    ?start: value
    ?value: object | array | STRING -> string | NUMBER -> number | LITERAL -> literal
    object: _OPEN (member (_COMMA member)*)? _CLOSE
    member: STRING _COLON value
    array: _OPEN_LIST (value (_COMMA value)*)? _CLOSE_LIST
    STRING: /"(?:[^"\\\x00-\x1f]|\\["\\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/
    NUMBER: /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/
    LITERAL: /-?[a-zA-Z_]+/
    _OPEN: "{"
    _CLOSE: "}"
    _OPEN_LIST: "["
    _CLOSE_LIST: "]"
    _COMMA: ","
    _COLON: ":"
    %declare UNKNOWN_WORD
    %ignore /[ \t\r\n]+/
"""


_LITERALS = {"true": True, "false": False, "null": None}


def read_json(text: str, limits: ParseLimits) -> Json:
    """What the text says. Of the limits, only the length is looked at."""
    value: Json = read(_FORM, text, replace(UNLIMITED, max_length=limits.max_length))
    return value


class _Builder:
    """What the parser does when a rule of the grammar is complete; methods have the rules' names."""

    def object(self, children: list[tuple[Token, Json]]) -> Json:
        members: dict[str, Json] = {}
        for token, value in children:
            key = json.loads(token)
            if key in members:
                problem = f"the key {quoted(token)} occurs twice"
                raise ParseError(problem, line=token.line, column=token.column, token=str(token))
            members[key] = value
        return members

    def member(self, children: tuple[Token, Json]) -> tuple[Token, Json]:
        return (children[0], children[1])

    def array(self, children: list[Json]) -> Json:
        return children

    def string(self, children: list[Token]) -> Json:
        text: str = json.loads(children[0])
        return text

    def number(self, children: list[Token]) -> Json:
        return placed_number(children[0]).value

    def literal(self, children: list[Token]) -> Json:
        return _LITERALS[children[0]]


@cache
def _parser() -> Lark:
    from lark import Lark, Token

    def known(token: Token) -> Token:
        return token if token in _LITERALS else Token.new_borrow_pos("UNKNOWN_WORD", token.value, token)

    builder: Any = _Builder()  # lark asks for attributes with the rules' names, not for a class of its own
    return Lark(_GRAMMAR, parser="lalr", lexer="basic", transformer=builder, lexer_callbacks={"LITERAL": known})


_EXPECTATIONS = (
    ({"STRING", "NUMBER", "LITERAL", "_OPEN", "_OPEN_LIST"}, ("a value",)),
    ({"STRING"}, ("a key in double quotes",)),
    ({"_COLON"}, ("':'",)),
    ({"_COMMA"}, ("','",)),
    ({"_CLOSE"}, ("'}'",)),
    ({"_CLOSE_LIST"}, ("']'",)),
    ({END}, ("the end",)),
)


def _expected(unexpected: Unexpected) -> list[str]:
    return in_words(unexpected.accepted, _EXPECTATIONS)


def _explain(unexpected: Unexpected) -> str | None:
    token = unexpected.token
    if token.type == "UNKNOWN_WORD":
        is_number = token.lstrip("-").lower() in NOT_NUMBERS
        return f"{quoted(token)} is not {'a number that JSON has' if is_number else 'JSON'}"
    return None


def _explain_character(rest: str) -> str | None:
    if rest[0] == '"':
        return f"the string {quoted(rest)} is not closed, or has a line break or an escape that JSON lacks"
    return "strings stand in double quotes in JSON" if rest[0] == "'" else None


_FORM = Form(
    _parser,
    _expected,
    _explain,
    _explain_character,
    counted=frozenset(),
    brackets={"_OPEN": "_CLOSE", "_OPEN_LIST": "_CLOSE_LIST"},
)

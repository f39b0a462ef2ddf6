"""The JSON form of expressions, for programs that write subscriptions.

    {"and": […]}  {"or": […]}  {"not": …}  {"xor": [a, b]}  {"xnor": [a, b]}  true  false
    {"attribute": "price", "operator": "<", "value": 100}
    {"attribute": "price", "operator": "between", "values": [80, 120]}
    {"attribute": "region", "operator": "exists"}

Operators are those of the SQL-like form, in any case. `not_in` and `not-in` are read as `not in`. An empty `and` is
true, and an empty `or` is false. An `and` or `or` of one expression is that expression. Errors report a path, such as
`$.and[1].operator`.

JSON text is parsed without recursion, so that `ParseLimits` limit the depth and not the interpreter's stack. The parser
is stricter than `json.loads` where that would lose information. It refuses duplicate keys, NaN, Infinity and integers
beyond 64 bits, and reports line and column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from matching.errors import ExpressionError, ParseError, ValueRefusedError
from matching.expressions.model import (
    FALSE,
    PRESENCE_OPERATORS,
    RANGE_OPERATORS,
    SET_OPERATORS,
    TRUE,
    And,
    Expression,
    Not,
    Operator,
    Or,
    Predicate,
    Xnor,
    Xor,
)
from matching.expressions.printing import check_written_size, write
from matching.expressions.values import check_attribute, check_value
from matching.languages.parser import (
    DEFAULT_LIMITS,
    END,
    UNLIMITED,
    Form,
    ParseLimits,
    Unexpected,
    describe_expected,
    quoted,
    run_parser,
)
from matching.languages.tokens import NOT_NUMBERS, parse_number_token
from matching.nearest import nearest

if TYPE_CHECKING:
    from lark import Lark, Token

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_WORDS: dict[type[Expression], str] = {And: "and", Or: "or", Not: "not", Xor: "xor", Xnor: "xnor"}
_KEYS = (*_WORDS.values(), "attribute", "operator", "value", "values")
_PREDICATE_KEYS = _KEYS[len(_WORDS) :]
_OPERATORS = {operator.lower(): operator for operator in Operator} | {"==": Operator.EQ, "<>": Operator.NE}


def to_json(expression: Expression) -> Json:
    """Converts the expression to objects that `json.dumps` accepts. Shared nodes are shared in the result, too."""
    check_written_size(expression)
    built: dict[int, Json] = {}
    for node in expression.nodes():
        built[id(node)] = _node_json(node, [built[id(child)] for child in node.children])
    return built[id(expression)]


def to_json_text(expression: Expression) -> str:
    """Writes the expression as JSON text, at any depth."""
    check_written_size(expression)
    return write(expression, lambda leaf: json.dumps(_node_json(leaf, []), ensure_ascii=False), _parts)


def _node_json(node: Expression, children: list[Json]) -> Json:
    if isinstance(node, Predicate):
        return _predicate_json(node)
    if not node.children:
        return isinstance(node, And)
    return {_WORDS[type(node)]: children[0] if isinstance(node, Not) else children}


def _predicate_json(predicate: Predicate) -> Json:
    members: dict[str, Json] = {"attribute": predicate.attribute, "operator": predicate.operator.lower()}
    if predicate.operator in SET_OPERATORS | RANGE_OPERATORS:
        members["values"] = list(predicate.values)
    elif predicate.operator not in PRESENCE_OPERATORS:
        members["value"] = predicate.values[0]
    return members


def _parts(node: Expression) -> list[str | Expression]:
    if isinstance(node, Not):
        return ['{"not": ', node.children[0], "}"]
    parts: list[str | Expression] = [f'{{"{_WORDS[type(node)]}": [']
    for position, child in enumerate(node.children):
        parts += [", ", child] if position else [child]
    return [*parts, "]}"]


def parse_json(source: Json, limits: ParseLimits = DEFAULT_LIMITS) -> Expression:
    """Parses an expression from JSON text or from the result of `json.loads`."""
    return _ExpressionParser(limits).expression(parse_json_value(source, limits) if isinstance(source, str) else source)


@dataclass(frozen=True, slots=True)
class _Path:
    """A path in the JSON document. It is a linked list, so that its text is only built for an error message."""

    parent: _Path | None = None
    step: str = "$"
    depth: int = 0

    def __truediv__(self, key: str) -> _Path:
        return _Path(self, f".{key}", self.depth)

    def item(self, position: int) -> _Path:
        return _Path(self, f"[{position}]", self.depth)

    def below(self) -> _Path:
        """The same path, counted as one level deeper in the expression."""
        return _Path(self.parent, self.step, self.depth + 1)

    def __str__(self) -> str:
        steps: list[str] = []
        path: _Path | None = self
        while path is not None:
            steps.append(path.step)
            path = path.parent
        return "".join(reversed(steps))


@dataclass(frozen=True, slots=True)
class _ParseTask:
    """Parse an expression from this source."""

    source: Json
    path: _Path


@dataclass(frozen=True, slots=True)
class _Combine:
    """Make a node from the last `count` finished expressions."""

    make: Callable[[Sequence[Expression]], Expression]
    count: int


_Task: TypeAlias = _ParseTask | _Combine


class _ExpressionParser:
    """Parses one source. It uses a stack of tasks instead of recursion."""

    def __init__(self, limits: ParseLimits) -> None:
        self._limits = limits
        self._predicates = 0

    def expression(self, source: Json) -> Expression:
        finished: list[Expression] = []
        pending: list[_Task] = [_ParseTask(source, _Path())]
        while pending:
            task = pending.pop()
            if isinstance(task, _Combine):
                first = len(finished) - task.count
                finished[first:] = [task.make(finished[first:])]
            elif isinstance(task.source, bool):
                finished.append(TRUE if task.source else FALSE)
            elif isinstance(task.source, dict) and not task.source.keys().isdisjoint(_WORDS.values()):
                pending += self._connective(task.source, task.path)
            else:
                finished.append(self._predicate(task.source, task.path))
        return finished[0]

    def _connective(self, source: dict[str, Json], path: _Path) -> list[_Task]:
        word = next(key for key in source if key in _WORDS.values())
        if len(source) > 1:
            other = next(key for key in source if key != word)
            raise ParseError(f"{word!r} stands alone in its object, not with {other!r}", path=str(path / other))
        operands, below = source[word], (path / word).below()
        self._limits.check_depth(below.depth)
        if word == "not":
            return [_Combine(lambda children: Not(children[0]), 1), _ParseTask(operands, below)]
        if not isinstance(operands, list):
            raise ParseError(f"{word!r} takes a list, not {_json_kind(operands)}", path=str(below))
        if word in ("xor", "xnor") and len(operands) != 2:
            raise ParseError(f"{word!r} takes two expressions, not {len(operands)}", path=str(below))
        tasks = [_ParseTask(operand, below.item(position)) for position, operand in enumerate(operands)]
        return [_Combine(_CONNECTIVES[word], len(operands)), *reversed(tasks)]

    def _predicate(self, source: Json, path: _Path) -> Predicate:
        self._predicates += 1
        self._limits.check_predicates(self._predicates)
        if not isinstance(source, dict):
            raise ParseError(f"an expression is an object, true or false, not {_json_kind(source)}", path=str(path))
        for key in source:
            if key not in _PREDICATE_KEYS:
                raise ParseError(f"unknown key {key!r}{nearest(str(key), _KEYS)}", path=str(path / str(key)))
        for key in ("attribute", "operator"):
            if key not in source:
                raise ParseError(f"the key {key!r} is missing", path=str(path))
        operator = _operator(source["operator"], path / "operator")
        values = _values(source, operator, path)
        try:
            return Predicate(check_attribute(source["attribute"]), operator, tuple(values))  # type: ignore[arg-type]
        except (ExpressionError, ValueRefusedError) as error:
            raise ParseError(str(error), path=str(_faulty_path(source, values, path))) from None


_CONNECTIVES: dict[str, Callable[[Sequence[Expression]], Expression]] = {
    "and": And.of,
    "or": Or.of,
    "xor": lambda children: Xor(*children),
    "xnor": lambda children: Xnor(*children),
}


def _operator(source: Json, path: _Path) -> Operator:
    if not isinstance(source, str):
        raise ParseError(f"an operator is a string, not {_json_kind(source)}", path=str(path))
    word = " ".join(source.lower().replace("_", " ").replace("-", " ").split())
    if word not in _OPERATORS:
        raise ParseError(f"unknown operator {source!r}{nearest(word, _OPERATORS)}", path=str(path))
    return _OPERATORS[word]


def _values(source: dict[str, Json], operator: Operator, path: _Path) -> list[Json]:
    if "value" in source and "values" in source:
        raise ParseError("'value' and 'values' stand in one object; keep one", path=str(path / "values"))
    if "values" in source:
        values = source["values"]
        if not isinstance(values, list):
            raise ParseError(f"'values' takes a list, not {_json_kind(values)}", path=str(path / "values"))
        return values
    if "value" in source:
        return [source["value"]]
    if operator in SET_OPERATORS | RANGE_OPERATORS:
        raise ParseError(f"{operator.lower()!r} needs the key 'values'", path=str(path))
    if operator not in PRESENCE_OPERATORS:
        raise ParseError(f"{operator.lower()!r} needs the key 'value'", path=str(path))
    return []


def _faulty_path(source: dict[str, Json], values: Sequence[Json], path: _Path) -> _Path:
    try:
        check_attribute(source["attribute"])
    except ValueRefusedError:
        return path / "attribute"
    if "values" not in source:
        return path / "value" if "value" in source else path
    for position, value in enumerate(values):
        try:
            check_value(value, "")
        except ValueRefusedError:
            return (path / "values").item(position)
    return path / "values"


def _json_kind(source: Json) -> str:
    if isinstance(source, dict):
        return "an object"
    if isinstance(source, list):
        return "a list"
    return "null" if source is None else json.dumps(source)


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


def parse_json_value(text: str, limits: ParseLimits) -> Json:
    """Parses JSON text. Of the limits, only the length applies."""
    value: Json = run_parser(_FORM, text, replace(UNLIMITED, max_length=limits.max_length))
    return value


class _Builder:
    """Builds the result. The parser calls a method when it completes the rule of the same name."""

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
        return parse_number_token(children[0]).value

    def literal(self, children: list[Token]) -> Json:
        return _LITERALS[children[0]]


@cache
def _parser() -> Lark:
    from lark import Lark, Token

    def known(token: Token) -> Token:
        return token if token in _LITERALS else Token.new_borrow_pos("UNKNOWN_WORD", token.value, token)

    builder: Any = _Builder()  # lark looks up methods by the names of rules; it does not need its own class
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
    return describe_expected(unexpected.accepted, _EXPECTATIONS)


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

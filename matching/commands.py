"""Commands on expressions alone: `mercast match parse`, `explain` and `indexes`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from matching.errors import ParseError
    from matching.expressions.model import Expression

_CONTEXT_CHARACTERS = 60


class Form(StrEnum):
    SQL = "sql"
    JSON = "json"
    PADRES = "padres"


class NormalForm(StrEnum):
    NEGATION = "nnf"
    DISJUNCTIVE = "dnf"
    CONJUNCTIVE = "cnf"


def match_parse(
    expression: Annotated[str, typer.Argument(help="The expression in any form, or - to read it from stdin.")],
    form: Annotated[Form, typer.Option(help="The form to print. Which form is read shows by itself.")] = Form.SQL,
    normal: Annotated[
        NormalForm | None, typer.Option(help="Print the negation, disjunctive or conjunctive normal form.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="An object with the text, the JSON form, and what the expression is.")
    ] = False,
) -> None:
    """Read an expression and print it in its plainest spelling.

    Reads the SQL-like form, the form of PADRES (text that begins with a \\[)
    and the JSON form (text that begins with a {). What is wrong with a text is
    said with its line and column, and shown.

    \b
    Examples:
      mercast match parse "symbol = 'IBM' and price between 80 and 120"
      mercast match parse "\\[symbol,eq,'IBM'],\\[price,>,80]"
      mercast match parse "not (a = 1 xor b like 'x%')" --normal dnf
      mercast match parse "price < 100" --form json
      mercast match parse - --json < expression.txt
    """
    from matching.expressions.printing import to_text
    from matching.languages.json import to_json_text
    from matching.languages.padres import to_padres

    parsed = _normal_form(_parsed(expression), normal)
    if as_json:
        print(_described(parsed))
    elif form is Form.PADRES:
        print(to_padres(parsed))
    else:
        print(to_json_text(parsed) if form is Form.JSON else to_text(parsed))


def match_explain(
    expression: Annotated[str, typer.Argument(help="The expression in any form, or - to read it from stdin.")],
    publication: Annotated[
        list[str], typer.Argument(help="Words like symbol=IBM price=92.5, or one JSON object in quotes.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Every node with its truth, value and reason.")] = False,
) -> None:
    """Show why a publication matches an expression, or why not.

    The first line says which predicates decide; below it stands the expression
    as a tree, each part with its truth: true, false, or undefined where an
    attribute is missing or of another class. Only true matches.

    The exit code is 0 whether it matches or not; --json says "matches".

    \b
    Examples:
      mercast match explain "symbol = 'IBM' AND price < 100" symbol=IBM price=130
      mercast match explain "price < 100 OR NOT EXISTS region" '{"price": 120}'
      mercast match explain "note CONTAINS 'two'" "note='two words'"
    """
    from matching.expressions.explain import explain
    from matching.languages.publication import parse_publication

    explanation = explain(_parsed(expression), parse_publication(" ".join(publication)))
    if not as_json:
        print(f"{explanation.reason}\n\n{explanation}")
        return
    nodes = [
        {
            "level": node.level,
            "truth": node.truth,
            "node": node.label,
            "found": node.found,
            "reason": node.reason,
        }
        for node in explanation.nodes
    ]
    answer = {"matches": explanation.is_match, "truth": explanation.truth, "reason": explanation.reason, "nodes": nodes}
    print(json.dumps(answer, ensure_ascii=False))


def match_indexes(
    as_json: Annotated[bool, typer.Option("--json", help="A list of objects instead of a table.")] = False,
) -> None:
    """List the matching indexes, and what each can hold.

    An index for conjunctions takes predicates joined by AND, each of which may
    be negated.

    \b
    Examples:
      mercast match indexes
      mercast match indexes --json
    """
    from matching.registry import info, names

    indexes = [info(name) for name in names()]
    if as_json:
        rows = [
            {"name": one.name, "title": one.title, "accepts": one.accepts, "backends": one.backends} for one in indexes
        ]
        print(json.dumps(rows))
        return
    table = [("NAME", "ACCEPTS", "BACKENDS", "WHAT IT IS")]
    table += [(one.name, str(one.accepts), ", ".join(one.backends), one.title) for one in indexes]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


COMMANDS: dict[str, Callable[..., None]] = {
    "match parse": match_parse,
    "match explain": match_explain,
    "match indexes": match_indexes,
}


def _parsed(text: str) -> Expression:
    if text == "-":
        # Bytes that are not UTF-8 become lone surrogates. The parser refuses those and reports their place.
        text = sys.stdin.buffer.read().decode("utf-8", errors="surrogateescape")
    return parse_argument(text)


def parse_argument(text: str) -> Expression:
    """Parses an expression of the command line. Prints the place of an error with a caret before it raises."""
    from matching.errors import ParseError
    from matching.languages.sql import parse

    try:
        return parse(text)
    except ParseError as error:
        _point_at(error, text)
        raise


def _point_at(error: ParseError, text: str) -> None:
    """Prints the line with the error, and a caret below the column."""
    if error.line is None or error.column is None:
        return
    lines = text.split("\n")
    line = lines[error.line - 1] if error.line <= len(lines) else ""
    before = line[max(0, error.column - 1 - _CONTEXT_CHARACTERS) : error.column - 1]
    after = line[error.column - 1 : error.column - 1 + _CONTEXT_CHARACTERS]
    shown = "".join(character if character.isprintable() else " " for character in before + after)
    print(f"  {shown}\n  {' ' * len(before)}^", file=sys.stderr)


def _normal_form(expression: Expression, normal: NormalForm | None) -> Expression:
    from matching.expressions import normal_forms

    if normal is NormalForm.NEGATION:
        return normal_forms.negation_normal_form(expression)
    if normal is NormalForm.DISJUNCTIVE:
        return normal_forms.to_disjunctive_normal_form(expression)
    if normal is NormalForm.CONJUNCTIVE:
        return normal_forms.to_conjunctive_normal_form(expression)
    return expression


def _described(expression: Expression) -> str:
    from matching.expressions.normal_forms import as_conjunction
    from matching.languages.json import to_json_text

    facts = {
        "text": str(expression),
        "predicates": expression.size,
        "depth": expression.depth,
        "attributes": list(dict.fromkeys(predicate.attribute for predicate in expression.predicates())),
        "is_conjunction": as_conjunction(expression) is not None,
    }
    # The json module cannot write an expression of any depth, so the text of `to_json_text` is inserted.
    return f'{json.dumps(facts, ensure_ascii=False)[:-1]}, "expression": {to_json_text(expression)}}}'

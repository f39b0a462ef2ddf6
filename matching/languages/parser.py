"""Parses a text with a grammar, enforces limits, and describes errors in the user's words.

Each text form (SQL-like, PADRES, JSON) is a `Form`: its parser, and the words for its terminals in error messages. The
parser is LALR(1) and builds the result while it reads. No step recurses. A text that is nested a hundred thousand
levels deep therefore takes time linear in its length, as any other text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from matching.errors import ExpressionTooLargeError, ParseError

if TYPE_CHECKING:
    from lark import Lark, Token

END = "$END"
_MAX_QUOTE_LENGTH = 40


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """The limits on a text. Beyond a limit, the parser raises `ExpressionTooLargeError`."""

    max_length: int = 65_536
    """Characters."""
    max_predicates: int = 4_096
    max_depth: int = 1_000
    """The number of parentheses that are open at once, and of connectives above a predicate."""

    def check_length(self, text: str) -> None:
        """Raises `ExpressionTooLargeError` if the text has too many characters."""
        if len(text) > self.max_length:
            raise ExpressionTooLargeError("the expression, in characters,", len(text), self.max_length)

    def check_predicates(self, count: int) -> None:
        """Raises `ExpressionTooLargeError` if there are too many predicates."""
        if count > self.max_predicates:
            raise ExpressionTooLargeError("the expression, in predicates,", count, self.max_predicates)

    def check_depth(self, depth: int) -> None:
        """Raises `ExpressionTooLargeError` if there are too many levels."""
        if depth > self.max_depth:
            raise ExpressionTooLargeError("the expression, in levels,", depth, self.max_depth)


DEFAULT_LIMITS = ParseLimits()
UNLIMITED = ParseLimits(sys.maxsize, sys.maxsize, sys.maxsize)


@dataclass(frozen=True, slots=True)
class Unexpected:
    """A token that the grammar does not allow at its place. `$END` is the end of the text."""

    token: Token
    previous: Token | None
    accepted: Set[str]
    """The terminals that the grammar allows at this place."""
    open_bracket: Token | None
    """The innermost bracket that is still open."""

    @property
    def is_end(self) -> bool:
        return self.token.type == END


Expectations: TypeAlias = Sequence[tuple[Set[str], Sequence[str]]]
"""Sets of terminals and the words for each set. The first set whose terminals are all allowed is used."""


def describe_expected(accepted: Set[str], expectations: Expectations) -> list[str]:
    remaining = set(accepted)
    words: list[str] = []
    for terminals, labels in expectations:
        if terminals <= remaining:
            remaining -= terminals
            words += labels
    return words


@dataclass(frozen=True, slots=True)
class Form:
    """A text form: its parser and its error messages."""

    parser: Callable[[], Lark]
    expected: Callable[[Unexpected], Sequence[str]]
    """Returns what the grammar allows at the place, in the user's words."""
    explain: Callable[[Unexpected], str | None]
    """Returns a better message than `unexpected …`, or None."""
    explain_character: Callable[[str], str | None]
    """Returns a message for a text that no token begins with, such as an open quote, or None."""
    counted: Set[str]
    """Terminals that occur exactly once in every predicate."""
    brackets: Mapping[str, str]
    """Opening terminals, each with its closing terminal."""


class _TokenCounter:
    """Counts the tokens before the last one, and checks the counts against the limits."""

    def __init__(self, form: Form, limits: ParseLimits) -> None:
        self._limits = limits
        self._counted = form.counted
        self._opening = frozenset(form.brackets)
        self._closing = frozenset(form.brackets.values())
        self._predicates = 0
        self.open: list[Token] = []
        self.last: Token | None = None
        self.previous_to_last: Token | None = None

    def advance(self, token: Token) -> None:
        """Counts the previous token and stores this one as the last."""
        if self.last is not None:
            self._count(self.last)
        self.previous_to_last, self.last = self.last, token

    def _count(self, token: Token) -> None:
        if token.type in self._counted:
            self._predicates += 1
            self._limits.check_predicates(self._predicates)
        if token.type in self._opening:
            self.open.append(token)
            self._limits.check_depth(len(self.open))
        elif token.type in self._closing and self.open:
            self.open.pop()


def run_parser(form: Form, text: str, limits: ParseLimits) -> Any:
    """Parses the text with the parser of the form and returns its result."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    limits.check_length(text)
    parsing = form.parser().parse_interactive(text)
    counter = _TokenCounter(form, limits)
    try:
        for token in parsing.iter_parse():
            counter.advance(token)
        end = _end_token(counter.last)
        counter.advance(end)
        return parsing.feed_token(end)
    except UnexpectedCharacters as error:
        raise _character_error(form, text[error.pos_in_stream :], error.line, error.column) from None
    except UnexpectedToken:
        raise _token_error(form, text, counter) from None


def _end_token(last: Token | None) -> Token:
    from lark import Token

    if last is None:
        return Token(END, "", line=1, column=1)
    return Token(END, "", line=last.end_line, column=last.end_column)


def _character_error(form: Form, rest: str, line: int, column: int) -> ParseError:
    problem = form.explain_character(rest) or f"unexpected character {rest[0]!r}"
    return ParseError(problem, line=line, column=column, token=rest[0])


def _token_error(form: Form, text: str, counter: _TokenCounter) -> ParseError:
    assert counter.last is not None
    accepted = _accepted_after(form, text if counter.last.type == END else text[: counter.last.start_pos])
    innermost = counter.open[-1] if counter.open else None
    unexpected = Unexpected(counter.last, counter.previous_to_last, accepted, innermost)
    return ParseError(
        form.explain(unexpected) or _plain_problem(unexpected, form),
        line=unexpected.token.line,
        column=unexpected.token.column,
        token=str(unexpected.token),
        expected=form.expected(unexpected),
    )


def _accepted_after(form: Form, text: str) -> Set[str]:
    """The terminals that may follow a text that is valid so far.

    The parser that failed cannot answer this: it may have reduced rules because of the wrong token.
    """
    parsing = form.parser().parse_interactive(text)
    parsing.exhaust_lexer()
    accepted: Set[str] = parsing.accepts()  # type: ignore[no-untyped-call]
    return accepted


def _plain_problem(unexpected: Unexpected, form: Form) -> str:
    token, innermost = unexpected.token, unexpected.open_bracket
    if unexpected.is_end:
        if unexpected.previous is None:
            return "the text is empty"
        if innermost is not None:
            return f"the text ends, but the {str(innermost)!r} at {place(innermost)} is not closed"
        return "the text ends too early"
    if token.type in form.brackets.values() and not unexpected.accepted & {token.type} and innermost is None:
        return f"the {str(token)!r} closes nothing"
    return f"unexpected {quoted(str(token))}"


def place(token: Token) -> str:
    return f"line {token.line}, column {token.column}"


def quoted(text: str) -> str:
    """The text, shortened, in quotes unless it has its own."""
    shortened = text if len(text) <= _MAX_QUOTE_LENGTH else text[: _MAX_QUOTE_LENGTH - 1] + "…"
    shortened = shortened.replace("\n", "\\n").replace("\r", "\\r")
    return shortened if text[:1] in ("'", '"') else f"'{shortened}'"

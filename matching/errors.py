"""The errors of matching.

    MatchingError
    ├── ValueRefusedError            a value that no predicate or publication can have (NaN, a 65-bit integer, a list)
    ├── PublicationError             a publication that is not a map from names to values, or not valid MessagePack
    ├── ExpressionError              an invalid expression
    │   ├── ParseError               text that is not an expression; has line, column, token and expected tokens
    │   └── ExpressionTooLargeError  an expression, or one of its normal forms, is beyond a limit
    ├── UnsupportedExpressionError   the index cannot store this kind of expression
    ├── DuplicateIdError             `add` with an id that is in the index
    ├── UnknownIdError               an id that is not in the index
    ├── UnknownIndexError            no index, backend or option has that name
    └── BackendMissingError          a native index, but the compiled module is not installed

Each error has the values of its message as attributes. `exit_code` is the exit code of the command line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


class MatchingError(Exception):
    """An error of this package. Every error that it raises is of this class."""

    exit_code = 1


class ValueRefusedError(MatchingError, ValueError):
    exit_code = 2


class PublicationError(MatchingError, ValueError):
    exit_code = 2


class ExpressionError(MatchingError, ValueError):
    exit_code = 2


class ParseError(ExpressionError):
    """Text that is not an expression. `line` and `column` count from 1. The JSON form uses `path` for the place."""

    def __init__(
        self,
        problem: str,
        *,
        line: int | None = None,
        column: int | None = None,
        token: str | None = None,
        expected: Sequence[str] = (),
        path: str | None = None,
    ) -> None:
        self.problem = problem
        self.line = line
        self.column = column
        self.token = token
        self.expected = tuple(expected)
        self.path = path
        super().__init__(self._message())

    def _message(self) -> str:
        places = []
        if self.line is not None:
            places.append(f"line {self.line}, column {self.column}")
        if self.path is not None:
            places.append(f"at {self.path}")
        place = ", ".join(places)
        text = f"{place}: {self.problem}" if place else self.problem
        if self.expected:
            text += f"; expected {_one_of(self.expected)}"
        return text


def _one_of(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


class ExpressionTooLargeError(ExpressionError):
    def __init__(self, what: str, size: int, limit: int) -> None:
        self.what = what
        self.size = size
        self.limit = limit
        super().__init__(f"{what} is {_readable(size)}, the limit is {limit:,}")


def _readable(size: int) -> str:
    """The size with few digits. A chain of XORs can be 2**1000 predicates long when written out."""
    return f"{size:,}" if size < 10**15 else f"over 10^{int((size.bit_length() - 1) * math.log10(2))}"


class UnsupportedExpressionError(MatchingError):
    exit_code = 2

    def __init__(self, index: str, accepts: str, reason: str) -> None:
        self.index = index
        self.accepts = accepts
        super().__init__(f"{index} holds {accepts} only: {reason}; use 'auto' or 'scan' for this expression")


class DuplicateIdError(MatchingError, KeyError):
    def __init__(self, id: int) -> None:
        self.id = id
        super().__init__(f"id {id} is taken; remove it first")

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownIdError(MatchingError, KeyError):
    def __init__(self, id: int) -> None:
        self.id = id
        super().__init__(f"id {id} is not in the index")

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownIndexError(MatchingError, LookupError):
    exit_code = 2


class BackendMissingError(MatchingError, RuntimeError):
    exit_code = 3

    def __init__(self, index: str) -> None:
        self.index = index
        super().__init__(
            f"{index} with the native backend needs the compiled module, which this installation lacks; "
            "install a C++20 compiler (Debian, Ubuntu: apt-get install g++) and run 'make install', "
            "or 'pip install --force-reinstall .'"
        )

"""Values and names with their token, so that an error of the expression model reports the place in the text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matching.errors import ExpressionError, ParseError, ValueRefusedError
from matching.expressions.model import Operator, Predicate
from matching.expressions.values import CLASS_BY_TYPE, LARGEST_INT, SMALLEST_INT, Value, check_attribute, check_value
from matching.languages.parser import quoted

if TYPE_CHECKING:
    from lark import Token

NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
NOT_NUMBERS = frozenset(("nan", "inf", "infinity"))
"""Words that other programs print for numbers. They are refused instead of being read as strings."""
_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX_INTEGER_LENGTH = len(str(SMALLEST_INT))


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value or a name, with the token that it was read from."""

    value: Value
    token: Token


def parse_number(text: str) -> int | float:
    """Parses a number of an expression or a publication. The caller must have matched the text with `NUMBER`."""
    if not _INTEGER.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise ValueRefusedError(f"{quoted(text)} is beyond the largest number, 1.7976931348623157e308")
        return number
    # Python refuses to convert thousands of digits. Such a number does not fit in 64 bits anyway.
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > _MAX_INTEGER_LENGTH or not SMALLEST_INT <= int(text) <= LARGEST_INT:
        raise ValueRefusedError(f"integer {quoted(text)} does not fit in 64 bits")
    return int(text)


def error_at(error: ExpressionError | ValueRefusedError, token: Token) -> ParseError:
    """The same message as a ParseError at the token's place."""
    return ParseError(str(error), line=token.line, column=token.column, token=str(token))


def parse_number_token(token: Token) -> LocatedValue:
    try:
        return LocatedValue(parse_number(str(token)), token)
    except ValueRefusedError as error:
        raise error_at(error, token) from None


def unquote(token: Token) -> str:
    """The text between a token's quotes. A doubled quote becomes one quote."""
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)


def build_predicate(name: LocatedValue, operator: Operator, operands: Sequence[LocatedValue]) -> Predicate:
    """Builds the predicate. Raises ParseError at the token of the invalid part."""
    try:
        return Predicate(str(name.value), operator, tuple(operand.value for operand in operands))
    except (ExpressionError, ValueRefusedError) as error:
        raise error_at(error, _faulty_token(name, operands)) from None


def _faulty_token(name: LocatedValue, operands: Sequence[LocatedValue]) -> Token:
    try:
        check_attribute(name.value)
    except ValueRefusedError:
        return name.token
    for operand in operands:
        if CLASS_BY_TYPE[type(operand.value)] is not CLASS_BY_TYPE[type(operands[0].value)]:
            return operand.token
        try:
            check_value(operand.value, "")
        except ValueRefusedError:
            return operand.token
    return operands[0].token if operands else name.token

"""Named parameters of generators. A command line gives them as text, a scenario file as typed values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from topologies.errors import ParameterError, nearest

Kind = Literal["whole", "number", "text", "wholes", "numbers"]
Value = int | float | str | tuple[float, ...]
_IN_WORDS: dict[Kind, str] = {
    "whole": "a whole number",
    "number": "a number",
    "text": "text",
    "wholes": "whole numbers, such as 10x100",
    "numbers": "a number, or several, such as 0.6,0.2",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a model. A needed one has no default. The default None means that it may be left out."""

    name: str
    kind: Kind
    help: str
    default: Value | None = None
    needed: bool = False


class Values:
    """The checked values of one model's parameters, with defaults for those that were not given."""

    def __init__(self, model: str, parameters: Sequence[Parameter], given: Mapping[str, object]) -> None:
        known = {parameter.name: parameter for parameter in parameters}
        for name in given:
            if name not in known:
                raise ParameterError(f"model {model!r} has no parameter {name!r}; {nearest(name, known)}")
        self._values: dict[str, Value | None] = {}
        for name, parameter in known.items():
            if given.get(name) is not None:
                self._values[name] = _converted(parameter, given[name])
            elif parameter.needed:
                raise ParameterError(f"model {model!r} needs the parameter {name!r}: {parameter.help}")
            else:
                self._values[name] = parameter.default

    def whole(self, name: str) -> int:
        value = self.whole_or_none(name)
        assert value is not None
        return value

    def whole_or_none(self, name: str) -> int | None:
        value = self._values[name]
        assert value is None or isinstance(value, int)
        return value

    def number(self, name: str) -> float:
        value = self.number_or_none(name)
        assert value is not None
        return value

    def number_or_none(self, name: str) -> float | None:
        value = self._values[name]
        assert value is None or isinstance(value, int | float)
        return value

    def text(self, name: str) -> str:
        value = self._values[name]
        assert isinstance(value, str)
        return value

    def wholes(self, name: str) -> tuple[int, ...]:
        return tuple(int(number) for number in self.numbers(name))

    def numbers(self, name: str) -> tuple[float, ...]:
        """Returns the numbers of a list. Empty if the parameter was left out."""
        value = self._values[name]
        assert value is None or isinstance(value, tuple)
        return value or ()


def _converted(parameter: Parameter, value: object) -> Value:
    if parameter.kind == "text":
        converted: Value | None = value if isinstance(value, str) else None
    elif parameter.kind == "whole":
        converted = _whole(value)
    elif parameter.kind == "number":
        converted = _number(value)
    else:
        converted = _numbers(value, whole=parameter.kind == "wholes")
    if converted is None:
        raise ParameterError(f"{parameter.name} must be {_IN_WORDS[parameter.kind]}, not {value!r}")
    return converted


def _whole(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number == int(number) else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _numbers(value: object, *, whole: bool) -> tuple[float, ...] | None:
    items: Sequence[object]
    if isinstance(value, str):
        items = re.split(r"[x,]", value)
    elif isinstance(value, list | tuple):
        items = value
    else:
        items = [value]
    numbers = [_whole(item) if whole else _number(item) for item in items]
    found = tuple(number for number in numbers if number is not None)
    return found if found and len(found) == len(numbers) else None

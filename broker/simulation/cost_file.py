"""The file of the cost profile `native`: the costs of matching and forwarding on the machine that wrote it.

    [frames]                 nanoseconds for a received frame, and for a sent frame
    in_ns = 21000
    out_ns = 21000

    [index.pst-bloom]        nanoseconds for each lookup in a table, each subscription in it, each that matches
    asked_ns = 9000.0
    stored_ns = 1.5
    matched_ns = 800.0

    [machine]                the origin of the figures; nothing is computed from it

A run reads coefficients and never a clock, so it is the same on every machine.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from broker.simulation.costs import CostProfile

NATIVE = "native"
"""The name of the cost profile whose costs come from a file."""


class CostFileError(Exception):
    """A cost file that cannot be used. The message names the file and the key."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class IndexCosts:
    """Nanoseconds of an index: for each lookup, for each stored and for each matching subscription."""

    asked_ns: float
    stored_ns: float
    matched_ns: float


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """The content of a cost file: the costs of frames and indexes on one machine."""

    frame_in_ns: int
    frame_out_ns: int
    indexes: Mapping[str, IndexCosts]
    machine: Mapping[str, str]
    source: str

    def profile(self, index: str) -> CostProfile:
        """The cost profile of brokers that match with this index."""
        costs = self.indexes.get(index)
        if costs is None:
            raise CostFileError(
                f"{self.source} has no [index.{index}]; it has {', '.join(self.indexes)}. "
                "Write a file for this machine: mercast calibrate FILE"
            )
        return CostProfile(
            NATIVE, costs.stored_ns, costs.matched_ns, self.frame_in_ns, self.frame_out_ns, costs.asked_ns
        )


def read_costs(path: Path | None = None) -> MeasuredCosts:
    """Reads the coefficients of the file, or those that ship with the package."""
    if path is None:
        shipped = resources.files("broker.simulation") / "native.toml"
        return _parsed(shipped.read_text(encoding="utf-8"), "native.toml of this package")
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CostFileError(f"cannot read costs from {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CostFileError(f"{path} is not UTF-8 text: {error.reason}") from error
    return _parsed(text, str(path))


def _parsed(text: str, source: str) -> MeasuredCosts:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CostFileError(f"{source} is not TOML: {error}") from error
    frames = _table(document, "frames", source)
    indexes = _table(document, "index", source)
    machine = _table(document, "machine", source)
    return MeasuredCosts(
        frame_in_ns=round(_number(frames, "in_ns", f"{source}: frames")),
        frame_out_ns=round(_number(frames, "out_ns", f"{source}: frames")),
        indexes={name: _index(_table(indexes, name, source), f"{source}: index.{name}") for name in indexes},
        machine={str(key): str(value) for key, value in machine.items()},
        source=source,
    )


def _index(table: Mapping[str, object], place: str) -> IndexCosts:
    return IndexCosts(
        _number(table, "asked_ns", place), _number(table, "stored_ns", place), _number(table, "matched_ns", place)
    )


def _table(parent: Mapping[str, object], key: str, source: str) -> Mapping[str, object]:
    table = parent.get(key)
    if not isinstance(table, dict):
        raise CostFileError(f"{source}: {key} must be a table; see the file that `mercast calibrate FILE` writes")
    return table


def _number(table: Mapping[str, object], key: str, place: str) -> float:
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise CostFileError(f"{place}.{key} is {value!r}; it must be nanoseconds, at least 0")
    return float(value)

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

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from broker.simulation.costs import CostProfile
from topologies.files.typed_tables import Table, TableReader, expecting, parse_toml, read_text

NATIVE = "native"
"""The name of the cost profile whose costs come from a file."""
Nanoseconds: TypeAlias = Annotated[float, Meta(ge=0, le=1e15), expecting("nanoseconds, at least 0")]
_AS_WRITTEN = expecting("a table, as in the file that `mercast calibrate FILE` writes")


class CostFileError(Exception):
    """A cost file that cannot be used. The message names the file and the key."""

    exit_code = 3


class IndexCosts(Table, frozen=True):
    """Nanoseconds of an index: for each lookup, for each stored and for each matching subscription."""

    asked_ns: Nanoseconds
    stored_ns: Nanoseconds
    matched_ns: Nanoseconds


class FrameCosts(Table, frozen=True):
    in_ns: Nanoseconds
    out_ns: Nanoseconds


class CostDocument(Table, frozen=True):
    frames: Annotated[FrameCosts, _AS_WRITTEN]
    index: Annotated[dict[str, Any], _AS_WRITTEN]
    machine: Annotated[dict[str, Any], _AS_WRITTEN]


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
    return _parsed(read_text(path, "cost file", CostFileError), str(path))


def _parsed(text: str, source: str) -> MeasuredCosts:
    reader = TableReader(source, CostFileError)
    document = reader.read(CostDocument, parse_toml(text, source, CostFileError))
    return MeasuredCosts(
        frame_in_ns=round(document.frames.in_ns),
        frame_out_ns=round(document.frames.out_ns),
        indexes={name: reader.read(IndexCosts, costs, f"index.{name}") for name, costs in document.index.items()},
        machine={key: str(value) for key, value in document.machine.items()},
        source=source,
    )

"""Reads daily stock quotes from a CSV file, such as a download of a ticker's history.

    date,ticker,open,high,low,close,volume
    2015-01-05,IBM,161.27,161.27,159.19,159.51,4880389

The first line names the columns, in any order and any case. `symbol` is another name for `ticker`. Other columns are
ignored. Prices are read as exact decimals and stored in cents.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from experiments.errors import QuoteFileError

COLUMNS = ("date", "ticker", "open", "high", "low", "close", "volume")
_OTHER_NAMES = {"symbol": "ticker"}
_PRICE = re.compile(r"([0-9]{1,12})(?:\.([0-9]*))?")
_VOLUME = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class Quote:
    """The quote of a symbol for a trading day, with prices in cents."""

    symbol: str
    day: date
    open: int
    high: int
    low: int
    close: int
    volume: int


def read_quotes(path: Path) -> list[Quote]:
    """The file's quotes, in its order. Refuses a file without quotes."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            quotes = list(_quotes(lines, path))
    except OSError as error:
        raise QuoteFileError(f"cannot read quote file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise QuoteFileError(f"quote file {path} is not UTF-8 text: {error.reason}") from error
    if not quotes:
        raise QuoteFileError(f"quote file {path} has no quotes")
    return quotes


def _quotes(lines: Iterable[str], path: Path) -> Iterator[Quote]:
    rows = csv.reader(lines, strict=True)
    try:
        head = next(rows, [])
        columns = _columns(head, path)
        for row in rows:
            location = f"{path}, line {rows.line_num}"
            if row and len(row) != len(head):
                raise QuoteFileError(f"{location} has {len(row)} columns, and the first line names {len(head)}")
            if row:
                yield _quote(row, columns, location)
    except csv.Error as error:
        raise QuoteFileError(f"{path}, line {rows.line_num}: {error}") from error


def _columns(head: list[str], path: Path) -> dict[str, int]:
    """The position of each column."""
    names = [name.strip().casefold() for name in head]
    columns: dict[str, int] = {}
    for position, name in enumerate(_OTHER_NAMES.get(name, name) for name in names):
        if name in columns and name in COLUMNS:
            raise QuoteFileError(f"{path}, line 1: column {name} is there twice")
        columns[name] = position
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise QuoteFileError(
            f"{path}, line 1: column {missing[0]} is missing; the first line must name {','.join(COLUMNS)}"
        )
    return columns


def _quote(row: list[str], columns: Mapping[str, int], location: str) -> Quote:
    fields = {name: row[columns[name]].strip() for name in COLUMNS}
    if not fields["ticker"]:
        raise QuoteFileError(f"{location}, column ticker is empty")
    prices = {name: _cents(fields[name], f"{location}, column {name}") for name in ("open", "high", "low", "close")}
    if prices["low"] > prices["high"]:
        raise QuoteFileError(f"{location}, column low is {fields['low']}, above the high of {fields['high']}")
    if not _VOLUME.fullmatch(fields["volume"]):
        raise QuoteFileError(f"{location}, column volume is {fields['volume']!r}; it must be a whole number")
    day = _day(fields["date"], f"{location}, column date")
    return Quote(fields["ticker"], day, **prices, volume=int(fields["volume"]))


def _day(text: str, location: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise QuoteFileError(f"{location} is {text!r}; it must be a date such as 2015-01-05") from None


def _cents(text: str, location: str) -> int:
    """The price in cents, rounded by the third decimal. Exact, because no float is involved."""
    match = _PRICE.fullmatch(text)
    if match is None:
        raise QuoteFileError(f"{location} is {text!r}; it must be a price such as 161.27")
    decimals = (match[2] or "").ljust(3, "0")
    return int(match[1]) * 100 + int(decimals[:2]) + (decimals[2] >= "5")

"""Stock quotes, and subscriptions to some of them, as in [THESIS 10.1.1].

The Yahoo! Finance quotes of the thesis's experiments are not public here. So quotes are generated, one for each symbol
and trading day. A symbol's price is a random walk by small factors, and its volume varies around a mean. The parameter
`file` replaces them by daily quotes from a file (see `quote_file`). The thesis does not state its subscriptions. Here
they are for a symbol, alone or with a price range or a least volume, or for a sector with a price range. Symbols of
subscriptions follow a Zipf distribution, or are uniform.

Prices are in whole cents and factors in basis points, so that no step depends on a platform's floating point.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import cycle, repeat
from pathlib import Path
from typing import ClassVar, Protocol

from experiments.errors import WorkloadError
from experiments.workloads.quote_file import Quote, read_quotes
from experiments.workloads.sampling import RankSampler, zipf
from experiments.workloads.workload import check_between
from matching.expressions.model import And, Expression, Operator, Predicate
from matching.expressions.values import Value
from topologies.random_streams import stream

SECTORS = (
    "technology",
    "health",
    "financials",
    "energy",
    "industrials",
    "consumer",
    "utilities",
    "materials",
    "real-estate",
    "communication",
    "transport",
)
EXCHANGES = ("NYSE", "NASDAQ", "TSX", "LSE")
ATTRIBUTES = ("symbol", "date", "open", "high", "low", "close", "volume", "sector", "exchange")
"""The attributes of a quote. A quote from a file has no sector and no exchange."""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MOST_SYMBOLS = len(_LETTERS) ** 4
_FIRST_DAY = date(2015, 1, 5)
_DAYS_BEFORE_REPEAT = 26_000
_WHOLE = 10_000
"""The factor 1 in basis points."""


class Coverage(StrEnum):
    """The symbols that a publisher publishes and advertises."""

    ALL = "all"
    OWN = "own"
    """Each publisher has an equal part of the symbols in the order of popularity."""


@dataclass(frozen=True, slots=True)
class StockQuoteParameters:
    """The parameters of the stock quotes."""

    symbols: int = 100
    """The number of generated symbols; a file has its own."""
    sectors: int = 10
    zipf: float = 0.0
    """Exponent of the distribution of symbols in subscriptions; 0 is uniform."""
    kinds: tuple[float, ...] = (0.25, 0.35, 0.2, 0.2)
    """Shares of subscriptions for a symbol, a symbol in a price range, a symbol with a least volume, and a sector in a
    price range. Quotes from a file have no sector: the last kind has the price range alone."""
    range_share: float = 0.2
    """The largest distance of a price range's middle from the symbol's price, and its largest half width, both as a
    share of the price."""
    volatility_bp: int = 50
    """Largest change of a price in a day, in basis points."""
    coverage: Coverage = Coverage.ALL
    file: str = ""
    """A file of daily quotes that replace generated ones."""

    def __post_init__(self) -> None:
        check_between("stock-quotes", "symbols", self.symbols, 1, _MOST_SYMBOLS)
        check_between("stock-quotes", "sectors", self.sectors, 1, len(SECTORS))
        check_between("stock-quotes", "zipf", self.zipf, 0, 20)
        check_between("stock-quotes", "range_share", self.range_share, 0, 0.4)
        check_between("stock-quotes", "volatility_bp", self.volatility_bp, 0, 1_000)
        if len(self.kinds) != 4 or not all(0 <= share <= 1e6 for share in self.kinds) or sum(self.kinds) < 1e-3:
            raise WorkloadError(
                f"stock-quotes: kinds is {self.kinds}; it must be four shares: of symbols, symbols in a price range, "
                "symbols with a least volume, and sectors in a price range"
            )


@dataclass(frozen=True, slots=True)
class Listing:
    """A traded symbol. Subscriptions are drawn around its price, in cents, and its volume."""

    symbol: str
    price: int
    volume: int
    sector: str | None = None
    exchange: str | None = None


class Market(Protocol):
    """A source of quotes."""

    listings: Sequence[Listing]
    """Sorted by popularity, the most popular first."""

    def next_quote(self, listing: int) -> Quote: ...


class GeneratedMarket:
    """Generates quotes. Every symbol has its own random stream, so its quotes do not depend on those of others."""

    def __init__(self, parameters: StockQuoteParameters, seed: int) -> None:
        self._seed = seed
        self._volatility_bp = parameters.volatility_bp
        self.listings: Sequence[Listing] = [
            self._make_listing(number, parameters) for number in range(parameters.symbols)
        ]
        self._walks: dict[int, Iterator[Quote]] = {}

    def next_quote(self, listing: int) -> Quote:
        if listing not in self._walks:
            self._walks[listing] = self._walk(self.listings[listing])
        return next(self._walks[listing])

    def _make_listing(self, number: int, parameters: StockQuoteParameters) -> Listing:
        symbol = _symbol(number, parameters.symbols)
        rng = stream(self._seed, f"stock-quotes/listing {symbol}")
        return Listing(
            symbol,
            # Equal numbers of symbols between 5 and 10, between 10 and 20, and so on up to 640.
            price=rng.randrange(500, 1_000) << rng.randrange(7),
            volume=rng.randrange(1_000, 100_000) * 100,
            sector=SECTORS[number % parameters.sectors],
            exchange=EXCHANGES[number // parameters.sectors % len(EXCHANGES)],
        )

    def _walk(self, listing: Listing) -> Iterator[Quote]:
        rng = stream(self._seed, f"stock-quotes/quotes of {listing.symbol}")
        close = listing.price
        largest = self._volatility_bp
        overnight = largest // 3
        for number in cycle(range(_DAYS_BEFORE_REPEAT)):
            opened = _change_price(close, rng.randint(-overnight, overnight))
            close = _change_price(opened, rng.randint(-largest, largest))
            yield Quote(
                listing.symbol,
                _FIRST_DAY + timedelta(weeks=number // 5, days=number % 5),
                open=opened,
                high=_change_price(max(opened, close), rng.randint(0, largest)),
                low=_change_price(min(opened, close), -rng.randint(0, largest)),
                close=close,
                volume=listing.volume * rng.randrange(50, 151) // 100,
            )


class RecordedMarket:
    """Quotes from a file, for each symbol by date. They repeat after the last. The file's first symbol is the most
    popular."""

    def __init__(self, path: Path) -> None:
        by_symbol: dict[str, list[Quote]] = {}
        for quote in read_quotes(path):
            by_symbol.setdefault(quote.symbol, []).append(quote)
        for quotes in by_symbol.values():
            quotes.sort(key=lambda quote: quote.day)
        self.listings: Sequence[Listing] = [
            Listing(symbol, quotes[0].close, sum(quote.volume for quote in quotes) // len(quotes))
            for symbol, quotes in by_symbol.items()
        ]
        self._quotes = [cycle(quotes) for quotes in by_symbol.values()]

    def next_quote(self, listing: int) -> Quote:
        return next(self._quotes[listing])


class StockQuotes:
    """The workload of stock quotes: generated, or read from a file."""

    notice: ClassVar[str] = (
        "stock-quotes are generated, unless a file of quotes is given: the Yahoo! Finance quotes of the papers are not "
        "public here"
    )

    def __init__(self, parameters: StockQuoteParameters, *, subscriptions: int, publications: int, seed: int) -> None:
        self._parameters = parameters
        self._subscriptions = subscriptions
        self._publications = publications
        self._seed = seed

    def subscriptions(self) -> Iterator[Expression]:
        rng = stream(self._seed, "stock-quotes/subscriptions")
        popularity = zipf(len(self._listings), self._parameters.zipf)
        kinds = RankSampler([round(share * 1_000_000) for share in self._parameters.kinds])
        for _ in range(self._subscriptions):
            listing = self._listings[popularity.draw(rng)]
            yield self._subscription(rng, kinds.draw(rng), listing)

    def publications(self) -> Iterator[dict[str, Value]]:
        """Quotes of one publisher of all symbols."""
        return self.published_by(repeat(0, self._publications), publishers=1)

    def published_by(self, numbers: Iterable[int], publishers: int) -> Iterator[dict[str, Value]]:
        """A quote for each number, of publisher `number` of `publishers`: the next day of one of its symbols."""
        rng = stream(self._seed, "stock-quotes/publications")
        market = self._new_market()
        for number in numbers:
            listing = rng.choice(self._symbols_of(number, publishers))
            yield _to_attributes(market.next_quote(listing), market.listings[listing])

    def advertisement(self, number: int, publishers: int) -> Expression:
        """An expression that all quotes of the publisher satisfy, and no quotes of other symbols."""
        if self._parameters.coverage is Coverage.ALL:
            return Predicate("symbol", Operator.EXISTS)
        covered = [self._listings[listing] for listing in self._symbols_of(number, publishers)]
        parts = {
            "symbol": [listing.symbol for listing in covered],
            "sector": [listing.sector for listing in covered if listing.sector is not None],
            "exchange": [listing.exchange for listing in covered if listing.exchange is not None],
        }
        return And.of(
            [Predicate(name, Operator.IN, tuple(dict.fromkeys(values))) for name, values in parts.items() if values]
        )

    @cached_property
    def _listings(self) -> Sequence[Listing]:
        return self._new_market().listings

    def _new_market(self) -> Market:
        if self._parameters.file:
            return RecordedMarket(Path(self._parameters.file))
        return GeneratedMarket(self._parameters, self._seed)

    def _symbols_of(self, number: int, publishers: int) -> range:
        """The positions of the publisher's listings. Never empty: with few symbols, publishers share them."""
        count = len(self._listings)
        if self._parameters.coverage is Coverage.ALL:
            return range(count)
        first = number * count // publishers
        return range(first, max(first + 1, (number + 1) * count // publishers))

    def _subscription(self, rng: random.Random, kind: int, listing: Listing) -> Expression:
        by_symbol = Predicate("symbol", Operator.EQ, (listing.symbol,))
        if kind == 0:
            return by_symbol
        if kind == 1:
            return And([by_symbol, self._price_range(rng, listing)])
        if kind == 2:
            least = listing.volume * rng.randrange(50, 151) // 100
            return And([by_symbol, Predicate("volume", Operator.GE, (least,))])
        price_range = self._price_range(rng, listing)
        if listing.sector is None:
            return price_range
        return And([Predicate("sector", Operator.EQ, (listing.sector,)), price_range])

    def _price_range(self, rng: random.Random, listing: Listing) -> Predicate:
        """A random price range. Half of all ranges contain the price around which they are drawn."""
        largest = round(self._parameters.range_share * _WHOLE)
        middle = _change_price(listing.price, rng.randint(-largest, largest))
        half_width = listing.price * rng.randint(0, largest) // _WHOLE
        return Predicate("close", Operator.BETWEEN, (_money(middle - half_width), _money(middle + half_width)))


def _to_attributes(quote: Quote, listing: Listing) -> dict[str, Value]:
    attributes: dict[str, Value] = {
        "symbol": quote.symbol,
        "date": quote.day.isoformat(),
        "open": _money(quote.open),
        "high": _money(quote.high),
        "low": _money(quote.low),
        "close": _money(quote.close),
        "volume": quote.volume,
    }
    if listing.sector is not None:
        attributes["sector"] = listing.sector
    if listing.exchange is not None:
        attributes["exchange"] = listing.exchange
    return attributes


def _symbol(number: int, count: int) -> str:
    """The symbol of this number: AAA, AAB, … It has as many letters as `count` symbols need."""
    length = 3
    while len(_LETTERS) ** length < count:
        length += 1
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(reversed(letters))


def _change_price(cents: int, basis_points: int) -> int:
    """The price after a change, rounded to the nearest cent, at least one cent."""
    return max(1, cents + (cents * basis_points + _WHOLE // 2) // _WHOLE)


def _money(cents: int) -> float:
    """The price as a float. Every platform rounds a division by 100 correctly: 12345 cents are the float 123.45."""
    return cents / 100

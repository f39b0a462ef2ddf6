"""Stock quotes, and subscriptions that express an interest in some of them, as in [THESIS 10.1.1].

The Yahoo! Finance quotes behind the thesis's experiments are not public here. So quotes are generated, one for a
symbol and trading day: each symbol's price walks at random by small factors, its volume varies around its mean. Who
has daily quotes in a file publishes these instead (parameter `file`, see `quote_file`). What the thesis's subscriptions
look like is not stated; these ask for a symbol, alone or with a price range or a least volume, or for a sector with a
price range. Which symbols they ask for follows a Zipf distribution, or is uniform.

Prices walk in whole cents and factors in basis points: no step depends on a platform's floating point.
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
"""All that a quote can have; one from a file has no sector and no exchange."""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MOST_SYMBOLS = len(_LETTERS) ** 4
_FIRST_DAY = date(2015, 1, 5)
_DAYS_BEFORE_REPEAT = 26_000
_WHOLE = 10_000
"""In basis points."""


class Coverage(StrEnum):
    """What a publisher quotes, and so advertises."""

    ALL = "all"
    OWN = "own"
    """The symbols in order of popularity are shared out in equal parts, one for each publisher."""


@dataclass(frozen=True, slots=True)
class StockQuoteParameters:
    symbols: int = 100
    """How many are generated; a file brings its own."""
    sectors: int = 10
    zipf: float = 0.0
    """Exponent of the distribution of symbols in subscriptions; 0 is uniform."""
    kinds: tuple[float, ...] = (0.25, 0.35, 0.2, 0.2)
    """Shares of subscriptions for a symbol, a symbol in a price range, a symbol with a least volume, and a sector in a
    price range. Quotes from a file have no sector: there the last kind asks for the price range alone."""
    range_share: float = 0.2
    """Most that a price range's middle lies off the symbol's price, and most of its half width, as a share of it."""
    volatility_bp: int = 50
    """Largest change of a price in a day, in basis points."""
    coverage: Coverage = Coverage.ALL
    file: str = ""
    """Daily quotes to publish instead of generated ones."""

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
    """A symbol that is traded. Subscriptions are drawn around its price, in cents, and its volume."""

    symbol: str
    price: int
    volume: int
    sector: str | None = None
    exchange: str | None = None


class Market(Protocol):
    listings: Sequence[Listing]
    """The most popular first."""

    def next_quote(self, listing: int) -> Quote: ...


class GeneratedMarket:
    """Every symbol has its own stream, so its quotes do not depend on when others are quoted."""

    def __init__(self, parameters: StockQuoteParameters, seed: int) -> None:
        self._seed = seed
        self._volatility_bp = parameters.volatility_bp
        self.listings: Sequence[Listing] = [self._listed(number, parameters) for number in range(parameters.symbols)]
        self._walks: dict[int, Iterator[Quote]] = {}

    def next_quote(self, listing: int) -> Quote:
        if listing not in self._walks:
            self._walks[listing] = self._walk(self.listings[listing])
        return next(self._walks[listing])

    def _listed(self, number: int, parameters: StockQuoteParameters) -> Listing:
        symbol = _symbol(number, parameters.symbols)
        rng = stream(self._seed, f"stock-quotes/listing {symbol}")
        return Listing(
            symbol,
            # As many symbols between 5 and 10 as between 10 and 20, and so on up to 640.
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
            opened = _moved(close, rng.randint(-overnight, overnight))
            close = _moved(opened, rng.randint(-largest, largest))
            yield Quote(
                listing.symbol,
                _FIRST_DAY + timedelta(weeks=number // 5, days=number % 5),
                open=opened,
                high=_moved(max(opened, close), rng.randint(0, largest)),
                low=_moved(min(opened, close), -rng.randint(0, largest)),
                close=close,
                volume=listing.volume * rng.randrange(50, 151) // 100,
            )


class RecordedMarket:
    """Quotes from a file, each symbol's by date; after the last the first comes again. Popular is who comes first."""

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
        """A quote for each number, by that publisher of so many: a random one of its symbols on its next day."""
        rng = stream(self._seed, "stock-quotes/publications")
        market = self._new_market()
        for number in numbers:
            listing = rng.choice(self._covered(number, publishers))
            yield _attributes(market.next_quote(listing), market.listings[listing])

    def advertisement(self, number: int, publishers: int) -> Expression:
        """What all quotes of that publisher satisfy, and of other symbols none."""
        if self._parameters.coverage is Coverage.ALL:
            return Predicate("symbol", Operator.EXISTS)
        covered = [self._listings[listing] for listing in self._covered(number, publishers)]
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

    def _covered(self, number: int, publishers: int) -> range:
        """Never empty: where publishers outnumber the symbols, several quote the same one."""
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
        """Half of all ranges hold the price around which they are drawn."""
        largest = round(self._parameters.range_share * _WHOLE)
        middle = _moved(listing.price, rng.randint(-largest, largest))
        half_width = listing.price * rng.randint(0, largest) // _WHOLE
        return Predicate("close", Operator.BETWEEN, (_money(middle - half_width), _money(middle + half_width)))


def _attributes(quote: Quote, listing: Listing) -> dict[str, Value]:
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
    """Letters enough for all: AAA, AAB, …"""
    length = 3
    while len(_LETTERS) ** length < count:
        length += 1
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(reversed(letters))


def _moved(cents: int, basis_points: int) -> int:
    """The price after a change, rounded to the nearest cent; never nothing."""
    return max(1, cents + (cents * basis_points + _WHOLE // 2) // _WHOLE)


def _money(cents: int) -> float:
    """A division by 100 is rounded correctly everywhere: 12345 cents are the float that 123.45 denotes."""
    return cents / 100

"""Proves that stock quotes are plausible, that subscriptions have the given distribution, and that files are read."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import date
from itertools import islice, pairwise
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import QuoteFileError, WorkloadError
from experiments.workloads.quote_file import Quote, read_quotes
from experiments.workloads.registry import parameters_from_text
from experiments.workloads.stock_quotes import (
    ATTRIBUTES,
    EXCHANGES,
    SECTORS,
    Coverage,
    GeneratedMarket,
    StockQuoteParameters,
    StockQuotes,
)
from matching.expressions.intersection import intersects
from matching.expressions.model import Expression, Operator, Predicate

HEAD = "date,ticker,open,high,low,close,volume\n"


def quotes(parameters: StockQuoteParameters, subscriptions: int = 0, publications: int = 0) -> StockQuotes:
    return StockQuotes(parameters, subscriptions=subscriptions, publications=publications, seed=1)


def subscribed_symbols(expressions: list[Expression]) -> Counter[str]:
    return Counter(
        str(predicate.values[0])
        for expression in expressions
        for predicate in expression.predicates()
        if predicate.attribute == "symbol"
    )


def test_a_quote_has_all_attributes_and_they_fit_together() -> None:
    for quote in quotes(StockQuoteParameters(), publications=500).publications():
        assert tuple(quote) == ATTRIBUTES
        opened, high, low, close = (quote[name] for name in ("open", "high", "low", "close"))
        assert isinstance(opened, float) and isinstance(high, float)  # noqa: PT018
        assert isinstance(low, float) and isinstance(close, float)  # noqa: PT018
        assert 0 < low <= min(opened, close) <= max(opened, close) <= high
        assert round(close * 100) / 100 == close, "whole cents"
        assert isinstance(quote["volume"], int)
        assert quote["volume"] > 0
        assert quote["sector"] in SECTORS[:10]
        assert quote["exchange"] in EXCHANGES
        assert date.fromisoformat(str(quote["date"])).weekday() < 5


def test_symbols_are_quoted_equally_often_each_day_by_day() -> None:
    published = list(quotes(StockQuoteParameters(symbols=10), publications=5_000).publications())
    counts = Counter(quote["symbol"] for quote in published)
    assert len(counts) == 10
    assert max(counts.values()) < 1.25 * min(counts.values())
    days = [str(quote["date"]) for quote in published if quote["symbol"] == "AAA"]
    assert days == sorted(set(days))


def test_a_price_walks_by_small_factors_and_is_not_drawn_to_anything() -> None:
    market = GeneratedMarket(StockQuoteParameters(symbols=200), seed=1)
    changes = []
    for number, listing in enumerate(market.listings):
        closes = [market.next_quote(number).close for _ in range(250)]
        assert all(abs(later - earlier) <= 0.008 * earlier + 2 for earlier, later in pairwise(closes))
        changes.append(closes[-1] / listing.price - 1)
    assert abs(mean(changes)) < 0.02, "up as often as down"
    spread = mean(change**2 for change in changes) ** 0.5
    assert 0.03 < spread < 0.08, "√250 days of some 0.3% each"


def test_prices_are_spread_over_orders_of_magnitude() -> None:
    prices = [listing.price for listing in GeneratedMarket(StockQuoteParameters(symbols=500), seed=1).listings]
    assert min(prices) < 1_000 < 30_000 < max(prices) < 64_000
    assert mean(price < 5_000 for price in prices) == pytest.approx(0.46, abs=0.1)


def test_a_symbols_quotes_do_not_depend_on_when_others_are_quoted() -> None:
    one, other = (GeneratedMarket(StockQuoteParameters(), seed=1) for _ in range(2))
    for number in range(50):
        other.next_quote(number)
    assert [one.next_quote(50) for _ in range(5)] == [other.next_quote(50) for _ in range(5)]


def test_symbols_are_unique_however_many_there_are() -> None:
    symbols = [listing.symbol for listing in GeneratedMarket(StockQuoteParameters(symbols=20_000), seed=1).listings]
    assert len(set(symbols)) == 20_000
    assert symbols == sorted(symbols)


def test_subscriptions_are_of_the_requested_kinds() -> None:
    expressions = list(quotes(StockQuoteParameters(), subscriptions=8_000).subscriptions())
    shapes = Counter(tuple(predicate.attribute for predicate in each.predicates()) for each in expressions)
    shares = {shape: count / 8_000 for shape, count in shapes.items()}
    assert shares == pytest.approx(
        {("symbol",): 0.25, ("symbol", "close"): 0.35, ("symbol", "volume"): 0.2, ("sector", "close"): 0.2}, abs=0.02
    )
    only = list(quotes(StockQuoteParameters(kinds=(0, 0, 1, 0)), subscriptions=50).subscriptions())
    assert {tuple(predicate.operator for predicate in each.predicates()) for each in only} == {
        (Operator.EQ, Operator.GE)
    }


def test_symbols_are_requested_uniformly_or_by_zipf() -> None:
    def shares(exponent: float) -> list[float]:
        workload = quotes(StockQuoteParameters(symbols=50, zipf=exponent), subscriptions=20_000)
        requested = subscribed_symbols(list(workload.subscriptions()))
        return [count / requested.total() for _, count in sorted(requested.items())]

    uniform = shares(0)
    assert len(uniform) == 50
    assert max(uniform) < 1.4 / 50
    harmonic = sum(rank**-0.5 for rank in range(1, 51))
    for rank, share in enumerate(shares(0.5), start=1):
        assert share == pytest.approx(rank**-0.5 / harmonic, rel=0.25)
    steep = shares(2)
    assert steep[0] == pytest.approx(0.615, abs=0.02)


def test_the_share_that_matches_falls_with_the_number_of_symbols() -> None:
    def matching(symbols: int, kinds: tuple[float, ...]) -> float:
        workload = quotes(StockQuoteParameters(symbols=symbols, kinds=kinds), subscriptions=1_500, publications=100)
        expressions = list(workload.subscriptions())
        return mean(mean(each.matches(quote) for each in expressions) for quote in workload.publications())

    assert matching(20, (1, 0, 0, 0)) == pytest.approx(1 / 20, rel=0.15)
    assert matching(50, (1, 0, 0, 0)) == pytest.approx(1 / 50, rel=0.15)
    assert matching(20, (0, 1, 0, 0)) == pytest.approx(1 / 40, rel=0.25), "half of the ranges hold the price"
    assert matching(20, (0, 0, 1, 0)) == pytest.approx(1 / 40, rel=0.25), "half of the volumes are enough"
    assert matching(20, (0, 0, 0, 1)) >= 1 / 50, "a sector has other symbols in the range"


def test_an_advertisement_for_everything_matches_all_quotes_and_intersects_all_subscriptions() -> None:
    workload = quotes(StockQuoteParameters(), subscriptions=200, publications=100)
    advertised = workload.advertisement(3, 7)
    assert all(advertised.matches(quote) for quote in workload.publications())
    assert all(intersects(advertised, each) for each in workload.subscriptions())


@given(st.integers(1, 40), st.integers(1, 60))
def test_publishers_with_separate_symbols_share_all_symbols(symbols: int, publishers: int) -> None:
    workload = quotes(StockQuoteParameters(symbols=symbols, coverage=Coverage.OWN))
    requested = [number % publishers for number in range(3 * publishers)]
    published = list(workload.published_by(requested, publishers))
    for number, quote in zip(requested, published, strict=True):
        assert workload.advertisement(number, publishers).matches(quote)
    covered: set[object] = set()
    for number in range(publishers):
        advertised = workload.advertisement(number, publishers)
        own = [each for each in advertised.predicates() if each.attribute == "symbol"]
        covered.update(own[0].values)
        if publishers <= symbols:
            others = {quote["symbol"] for other, quote in zip(requested, published, strict=True) if other != number}
            assert not others.intersection(own[0].values)
    assert len(covered) == symbols


def test_a_publisher_of_popular_symbols_matches_more_subscriptions() -> None:
    parameters = StockQuoteParameters(zipf=1.0, coverage=Coverage.OWN, kinds=(1, 0, 0, 0))
    workload = quotes(parameters, subscriptions=500)
    expressions = list(workload.subscriptions())
    met = [sum(intersects(workload.advertisement(number, 20), each) for each in expressions) for number in range(20)]
    assert sum(met) == 500, "each subscription is for one publisher"
    assert met[0] > 5 * met[19]


def test_stock_quotes_in_place_of_data_that_is_not_public_are_marked() -> None:
    assert "not public" in StockQuotes.notice
    assert "not public" in (sys.modules[StockQuotes.__module__].__doc__ or "")


def test_the_first_of_a_billion_is_generated_without_the_others() -> None:
    workload = quotes(StockQuoteParameters(), subscriptions=10**9, publications=10**9)
    assert len(list(islice(workload.subscriptions(), 2))) == len(list(islice(workload.publications(), 2))) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"symbols": "0"}, "symbols is 0; it must lie between 1 and 456976"),
        ({"sectors": "12"}, "sectors is 12; it must lie between 1 and 11"),
        ({"zipf": "-1"}, "zipf is -1.0"),
        ({"range_share": "0.5"}, "range_share is 0.5"),
        ({"volatility_bp": "2000"}, "volatility_bp is 2000"),
        ({"kinds": "1,0,0"}, "it must be four shares"),
        ({"kinds": "0,0,0,0"}, "it must be four shares"),
        ({"kinds": "1,-1,1,1"}, "it must be four shares"),
        ({"kinds": "nan,1,1,1"}, "it must be four shares"),
        ({"coverage": "mine"}, "coverage is 'mine'; known: all, own"),
    ],
)
def test_parameters_that_cannot_be_generated_are_refused_by_name(settings: dict[str, str], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        parameters_from_text("stock-quotes", settings)


def written(folder: Path, text: str) -> Path:
    path = folder / "quotes.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_quotes_is_read_exactly(tmp_path: Path) -> None:
    text = (
        "\ufeffSymbol, Date ,open,high,low,close,adjusted,volume\n"
        "IBM,2015-01-05,161.27,161.275,159,159.5,1.5,4880389\n\n"
        '"A, B",2015-01-06,0.004,0.3,0.004,0.29999,x,0\n'
    )
    assert read_quotes(written(tmp_path, text)) == [
        Quote("IBM", date(2015, 1, 5), 16127, 16128, 15900, 15950, 4880389),
        Quote("A, B", date(2015, 1, 6), 0, 30, 0, 30, 0),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: column date is missing; the first line must name date,ticker,open,high,low,close,volume"),
        (HEAD, "has no quotes"),
        (HEAD.replace("low,", ""), "line 1: column low is missing"),
        (HEAD.replace("low", "high"), "line 1: column high is there twice"),
        (HEAD + "2015-01-05,IBM,1,2,1,1\n", "line 2 has 6 columns, and the first line names 7"),
        (HEAD + "2015-01-05,IBM,1,2,1,1,5\n05/01/2015,IBM,1,2,1,1,5\n", "line 3, column date is '05/01/2015'"),
        (HEAD + "2015-02-30,IBM,1,2,1,1,5\n", "line 2, column date is '2015-02-30'"),
        (HEAD + "2015-01-05,IBM,1,2,1,null,5\n", "line 2, column close is 'null'; it must be a price such as 161.27"),
        (HEAD + "2015-01-05,IBM,-1,2,1,1,5\n", "line 2, column open is '-1'"),
        (HEAD + "2015-01-05,IBM,1,2,1,1,5.5\n", "line 2, column volume is '5.5'; it must be a whole number"),
        (HEAD + "2015-01-05, ,1,2,1,1,5\n", "line 2, column ticker is empty"),
        (HEAD + "2015-01-05,IBM,1,2,3,1,5\n", "line 2, column low is 3, above the high of 2"),
        (HEAD + '2015-01-05,"IBM,1,2,1,1,5\n', "line 2: unexpected end of data"),
    ],
)
def test_a_wrong_line_is_refused_with_file_line_and_column(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(QuoteFileError) as refusal:
        read_quotes(path)
    assert message in str(refusal.value)
    assert str(path) in str(refusal.value)
    assert refusal.value.exit_code == 3


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QuoteFileError, match=r"cannot read quote file .*none\.csv: No such file"):
        read_quotes(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"date\xff\n")
    with pytest.raises(QuoteFileError, match=r"binary\.csv is not UTF-8 text"):
        read_quotes(tmp_path / "binary.csv")


def test_quotes_of_a_file_are_published_by_date_and_subscribed_to_by_symbol_and_price(tmp_path: Path) -> None:
    rows = [f"2015-01-{day:02d},{ticker},9,11,8,10,1000" for day in (7, 5, 6) for ticker in ("IBM", "SAP")]
    path = written(tmp_path, HEAD + "\n".join(rows))
    workload = quotes(StockQuoteParameters(file=str(path), zipf=3), subscriptions=400, publications=40)
    published = list(workload.publications())
    days = [str(quote["date"]) for quote in published if quote["symbol"] == "IBM"]
    assert days[:4] == ["2015-01-05", "2015-01-06", "2015-01-07", "2015-01-05"]
    assert set(published[0]) == set(ATTRIBUTES) - {"sector", "exchange"}
    expressions = list(workload.subscriptions())
    assert {p.attribute for each in expressions for p in each.predicates()} == {"symbol", "close", "volume"}
    assert any(isinstance(each, Predicate) and each.attribute == "close" for each in expressions)
    requested = subscribed_symbols(expressions)
    assert requested["IBM"] > 5 * requested["SAP"], "the file's first symbol is the most popular"
    assert any(each.matches(quote) for each in expressions for quote in published)

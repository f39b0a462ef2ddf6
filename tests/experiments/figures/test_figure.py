"""Proves how verdicts on claims are found, and that a failed run gives a row with its error."""

from __future__ import annotations

from typing import Literal

import pytest

from experiments.figures.figure import (
    Claim,
    Figure,
    Panel,
    Point,
    Row,
    Rows,
    Shape,
    Verdict,
    is_rising,
    number_text,
    overall,
    rows_of,
    verdicts,
)
from experiments.sweeps.sweep import RunOutcome, RunSpec

SPECS = [RunSpec("count-lists", {"seed": seed}) for seed in (1, 2)]


def figure(*claims: Claim, shapes: tuple[Shape, ...] = ()) -> Figure:
    return Figure(
        name="fig-0",
        title="title",
        reference="reference",
        claim="claim",
        setting="setting",
        points=lambda _: [Point("D-DBR", seed, spec) for seed, spec in enumerate(SPECS, start=1)],
        rows=lambda point, outcome: [Row("mean", point.series, point.x, outcome.numbers["mean"])],
        panels=(Panel("mean", "title", "x", "y"),),
        claims=claims,
        shapes=shapes,
        minutes={"quick": 1, "paper": 1},
    )


def judged(paper: float, ours: float | None, relation: Literal["about", "at least", "at most", "more than"]) -> Verdict:
    claim = Claim("what", paper, lambda _: ours, unit=" ms", relation=relation)
    return verdicts(figure(claim), Rows([]), "paper")[0]


@pytest.mark.parametrize(
    ("paper", "ours", "relation", "agrees"),
    [
        (100, 115, "about", True),
        (100, 116, "about", False),
        (100, 85, "about", True),
        (0, 0, "about", True),
        (0, 0.1, "about", False),
        (7, 7, "at least", True),
        (7, 6.9, "at least", False),
        (5, 5, "at most", True),
        (5, 5.1, "at most", False),
        (95, 95, "more than", False),
        (95, 95.1, "more than", True),
        (95, None, "more than", None),
    ],
)
def test_a_number_is_judged_by_one_rule(
    paper: float,
    ours: float | None,
    relation: Literal["about", "at least", "at most", "more than"],
    agrees: bool | None,
) -> None:
    assert judged(paper, ours, relation).agrees is agrees


def test_a_verdict_shows_both_numbers_with_their_unit() -> None:
    verdict = judged(1087, 1180.6, "at most")
    assert (verdict.paper, verdict.ours) == ("at most 1,087 ms", "1,181 ms")


def test_at_quick_scale_numbers_are_not_compared_but_shapes_are() -> None:
    both = figure(Claim("number", 1, lambda _: 1.0), shapes=(Shape("shape", lambda _: True),))
    assert [verdict.agrees for verdict in verdicts(both, Rows([]), "quick")] == [None, True]


@pytest.mark.parametrize(
    ("agreeing", "word"),
    [
        ([True, True], "agrees"),
        ([True, False], "agrees in part"),
        ([False, None], "differs"),
        ([None], "not comparable"),
        ([True, None], "agrees in shape"),
    ],
)
def test_a_figure_agrees_when_all_that_can_be_compared_does(agreeing: list[bool | None], word: str) -> None:
    assert overall([Verdict("what", "1", "1", agrees, "") for agrees in agreeing]) == word


def test_a_failed_run_is_a_row_with_its_error() -> None:
    without_claims = figure()
    outcomes = {
        SPECS[0].folder_name: RunOutcome({"mean": 2.5}),
        SPECS[1].folder_name: RunOutcome(error="SimulationError: missed 3"),
    }
    rows = rows_of(without_claims, list(without_claims.points("quick")), outcomes)
    assert rows.all == (Row("mean", "D-DBR", 1, 2.5), Row("mean", "D-DBR", 2, None, "SimulationError: missed 3"))
    assert rows.values("mean", "D-DBR") == [2.5]
    assert rows.errors == (rows.all[1],)


@pytest.mark.parametrize(
    ("value", "text"),
    [(38_000, "38,000"), (0.2519, "0.252"), (2.186, "2.19"), (8.0, "8"), (491.23, "491.2"), (5219.4, "5,219")],
)
def test_numbers_are_written_with_the_significant_digits(value: float, text: str) -> None:
    assert number_text(value) == text


def test_a_line_rises_if_it_increases_except_for_noise() -> None:
    assert is_rising([1, 2, 1.99, 3])
    assert not is_rising([1, 3, 2, 4])
    assert not is_rising([2, 2])
    assert not is_rising([1])

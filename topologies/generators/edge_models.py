"""GT-ITM's flat models: each pair of brokers on a square grid gets a link with a given probability.

`scale` is the side of the square, L = √2 · scale its diagonal, d the distance of the pair and n the number of brokers:

    pure-random   alpha
    waxman-1      alpha · exp(-r / (beta · L)), r drawn uniformly from [0, L] for each pair
    waxman-2      alpha · exp(-d / (beta · L))
    exponential   alpha · exp(-d / (L - d))
    doar-leslie   alpha · (gamma / n) · exp(-d / (beta · L))
    locality      alpha where d is at most gamma · L, beta elsewhere

Brokers have distinct integer positions. Points and links are drawn again until the graph is connected.
Cost: O(n²) for each draw.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from topologies.build import Pair, Position, check_count
from topologies.errors import ParameterError, nearest
from topologies.generators.random_links import links_for_degree
from topologies.graph import is_connected

TRIES = 100
UNLINKED_MAX = 7.0
SCALE = 100


@dataclass(frozen=True, slots=True)
class EdgeModel:
    """One of the models with its parameters. `alpha` is None if a mean degree sets it."""

    name: str
    alpha: float | None = None
    beta: float | None = None
    gamma: float | None = None

    def __post_init__(self) -> None:
        if self.name not in EDGE_MODELS:
            raise ParameterError(f"unknown edge model {self.name!r}; {nearest(self.name, EDGE_MODELS)}")
        rule = EDGE_MODELS[self.name]
        if self.alpha is not None and not 0 < self.alpha <= 1:
            raise ParameterError(f"alpha must be above 0 and at most 1, not {self.alpha:g}")
        for parameter, default in (("beta", rule.beta), ("gamma", rule.gamma)):
            value = getattr(self, parameter)
            if value is None:
                object.__setattr__(self, parameter, default)
            elif default is None:
                raise ParameterError(f"{self.name} has no parameter {parameter!r}")
            elif not 0 < value < math.inf:
                raise ParameterError(f"{parameter} must be above 0, not {value:g}")
            elif rule.bounded and value > 1:
                raise ParameterError(f"{parameter} of {self.name} must be at most 1, not {value:g}")


@dataclass(frozen=True, slots=True)
class Drawing:
    """Points on the grid, and the links that connect them."""

    positions: list[Position]
    links: list[Pair]


@dataclass(frozen=True, slots=True)
class _Rule:
    """A model's formula, and the defaults of its parameters other than alpha.

    `bounded`: the parameters are at most 1. `drawn`: the probability depends on a random number, not on distance.
    """

    probability: Callable[[_Setting, float], float]
    beta: float | None = None
    gamma: float | None = None
    bounded: bool = False
    drawn: bool = False


@dataclass(frozen=True, slots=True)
class _Setting:
    """The values that a formula needs in addition to the distance."""

    count: int
    diagonal: float
    alpha: float
    beta: float
    gamma: float
    rng: random.Random


def _pure_random(setting: _Setting, _d: float) -> float:
    return setting.alpha


def _waxman_1(setting: _Setting, _d: float) -> float:
    return setting.alpha * math.exp(-setting.rng.random() / setting.beta)


def _waxman_2(setting: _Setting, d: float) -> float:
    return setting.alpha * math.exp(-d / (setting.beta * setting.diagonal))


def _exponential(setting: _Setting, d: float) -> float:
    return setting.alpha * math.exp(-d / (setting.diagonal - d))


def _doar_leslie(setting: _Setting, d: float) -> float:
    return setting.alpha * (setting.gamma / setting.count) * math.exp(-d / (setting.beta * setting.diagonal))


def _locality(setting: _Setting, d: float) -> float:
    return setting.alpha if d <= setting.gamma * setting.diagonal else setting.beta


EDGE_MODELS: dict[str, _Rule] = {
    "pure-random": _Rule(_pure_random),
    "waxman-1": _Rule(_waxman_1, beta=0.2, drawn=True),
    "waxman-2": _Rule(_waxman_2, beta=0.2),
    "exponential": _Rule(_exponential),
    "doar-leslie": _Rule(_doar_leslie, beta=0.2, gamma=40.0),
    "locality": _Rule(_locality, beta=0.02, gamma=0.2, bounded=True),
}
"""GT-ITM's edge models by name, each a formula for the probability of a link."""


def draw_connected(
    model: EdgeModel, count: int, rng: random.Random, *, scale: int = SCALE, degree: float | None = None
) -> Drawing:
    """Draws points and links until they are connected, at most TRIES times.

    If more than UNLINKED_MAX brokers are expected to have no link, the search ends: one in a thousand such draws would
    be connected. With `degree`, alpha is set for each draw so that the expected mean degree equals it. Locality's beta
    is then relative to alpha. The resulting degree varies around it, as the model is random.
    """
    _check(model, count, scale, degree)
    if count == 1:
        return Drawing(grid_points(1, scale, rng), [])
    pairs = [(a, b) for b in range(count) for a in range(b)]
    draws = 0
    unlinked = 0.0
    while draws < TRIES and unlinked <= UNLINKED_MAX:
        draws += 1
        positions = grid_points(count, scale, rng)
        probabilities = _probabilities(model, positions, scale, rng)
        if degree is not None:
            probabilities = _scaled(model, probabilities, links_for_degree(count, degree), degree)
        links = [pair for pair, probability in zip(pairs, probabilities, strict=True) if rng.random() < probability]
        if is_connected(count, links):
            return Drawing(positions, links)
        unlinked = _expected_unlinked(count, pairs, probabilities)
    mean_degree = 2 * sum(probabilities) / count
    raise ParameterError(
        f"no connected overlay in {draws} {'draws' if draws > 1 else 'draw'} of {_in_words(model, degree)}, "
        f"brokers = {count}, scale = {scale}: with a mean degree of {mean_degree:.2g}, about {unlinked:.3g} brokers "
        "have no link at all; "
        + ("raise degree" if degree is not None else "raise alpha" + (" or beta" if model.beta else ""))
        + ", or take the model 'random', which repairs what is cut off"
    )


def _check(model: EdgeModel, count: int, scale: int, degree: float | None) -> None:
    check_count("brokers", count)
    check_count("scale", scale)
    if scale * scale < count:
        raise ParameterError(
            f"scale {scale} has {scale * scale} grid points, too few for brokers = {count}; "
            f"use a scale of at least {math.isqrt(count - 1) + 1}"
        )
    if degree is not None:
        if model.alpha is not None:
            raise ParameterError("give alpha or degree, not both: a degree sets alpha")
        links_for_degree(count, degree)
    elif model.alpha is None:
        raise ParameterError(f"{model.name} needs alpha or degree, for example degree = {min(6, count - 1)}")


def _expected_unlinked(count: int, pairs: list[Pair], probabilities: list[float]) -> float:
    """Returns the expected number x of brokers without a link. About e^-x of all draws are connected."""
    without_link = [1.0] * count
    for (a, b), probability in zip(pairs, probabilities, strict=True):
        without_link[a] *= 1 - probability
        without_link[b] *= 1 - probability
    return sum(without_link)


def grid_points(count: int, scale: int, rng: random.Random) -> list[Position]:
    """Returns distinct integer points of the square with this side."""
    return [(float(point % scale), float(point // scale)) for point in rng.sample(range(scale * scale), count)]


def _probabilities(model: EdgeModel, positions: list[Position], scale: int, rng: random.Random) -> list[float]:
    """Returns each pair's probability, rounded so that the last bit of an exponential has no effect.

    Grid points have few different distances. A formula that depends only on distance is evaluated once for each.
    """
    alpha = 1.0 if model.alpha is None else model.alpha
    setting = _Setting(len(positions), math.sqrt(2) * scale, alpha, model.beta or 1.0, model.gamma or 1.0, rng)
    rule = EDGE_MODELS[model.name]
    known: dict[float, float] = {}
    probabilities: list[float] = []
    for number, (x, y) in enumerate(positions):
        for other_x, other_y in positions[:number]:
            square = (x - other_x) * (x - other_x) + (y - other_y) * (y - other_y)
            probability = known.get(square)
            if probability is None:
                probability = min(1.0, round(rule.probability(setting, math.sqrt(square)), 9))
                if not rule.drawn:
                    known[square] = probability
            probabilities.append(probability)
    return probabilities


def _scaled(model: EdgeModel, probabilities: list[float], links: int, degree: float) -> list[float]:
    alpha = round(links / math.fsum(probabilities), 9)
    if alpha > 1:
        wider = " or raise beta" if model.beta else ""
        raise ParameterError(
            f"degree {degree:g} is out of reach for {_in_words(model, None)}: it would take alpha = {alpha:.3g}, "
            f"above 1; ask for a smaller degree{wider}"
        )
    return [alpha * probability for probability in probabilities]


def _in_words(model: EdgeModel, degree: float | None) -> str:
    values = {"degree": degree, "alpha": model.alpha, "beta": model.beta, "gamma": model.gamma}
    return ", ".join([model.name, *(f"{name} = {value:g}" for name, value in values.items() if value is not None)])

"""The models of overlays by name, with their parameters, for command lines and scenarios."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from topologies.build import LATENCY_MS, MS_PER_UNIT
from topologies.errors import ParameterError, nearest
from topologies.generators import flat
from topologies.generators.edge_models import EDGE_MODELS, SCALE, EdgeModel
from topologies.generators.hierarchy import hierarchy
from topologies.generators.transit_stub import STUB_ALPHA, TRANSIT_ALPHA, TransitStubShape, transit_stub
from topologies.overlay import Overlay
from topologies.parameters import Parameter, Values


@dataclass(frozen=True, slots=True)
class Model:
    """A generator: its summary, its parameters, and a function that builds an overlay from values and a seed."""

    summary: str
    parameters: tuple[Parameter, ...]
    build: Callable[[Values, int], Overlay]


def generate(model: str, parameters: Mapping[str, object], *, seed: int = 1) -> Overlay:
    """Returns the model's overlay for these parameters. The same seed gives the same overlay."""
    found = find_model(model)
    return found.build(Values(model, found.parameters, parameters), seed)


def find_model(name: str) -> Model:
    """Returns the model with this name."""
    if name not in MODELS:
        raise ParameterError(f"unknown model {name!r}; {nearest(name, MODELS)}")
    return MODELS[name]


_BROKERS = Parameter("brokers", "whole", "number of brokers", needed=True)
_LATENCY = Parameter("latency_ms", "number", "latency of every link", LATENCY_MS)
_SCALE = Parameter("scale", "whole", "side of the square grid that brokers stand on", SCALE)
_PER_UNIT = Parameter("ms_per_unit", "number", "latency for each unit of a link's length", MS_PER_UNIT)
_ALPHA = Parameter("alpha", "number", "probability of a link, above 0 and at most 1; give alpha or degree")
_FLAT_DEGREE = Parameter("degree", "number", "expected mean degree, reached by scaling alpha")
_BETA_HELP = {
    "waxman-1": "how slowly the probability falls with the drawn r",
    "waxman-2": "how slowly the probability falls with distance",
    "doar-leslie": "how slowly the probability falls with distance",
    "locality": "probability of a link between distant brokers (relative to alpha when degree is given)",
}
_GAMMA_HELP = {
    "doar-leslie": "factor that is divided by the number of brokers",
    "locality": "reach of near brokers, as a share of the square's diagonal",
}


def _gtitm(name: str, summary: str) -> Model:
    rule = EDGE_MODELS[name]
    own = []
    if rule.beta is not None:
        own.append(Parameter("beta", "number", _BETA_HELP[name], rule.beta))
    if rule.gamma is not None:
        own.append(Parameter("gamma", "number", _GAMMA_HELP[name], rule.gamma))

    def build(values: Values, seed: int) -> Overlay:
        parameters = {parameter.name: values.number(parameter.name) for parameter in own}
        return flat.gtitm_flat(
            values.whole("brokers"),
            EdgeModel(name, values.number_or_none("alpha"), parameters.get("beta"), parameters.get("gamma")),
            seed=seed,
            degree=values.number_or_none("degree"),
            scale=values.whole("scale"),
            ms_per_unit=values.number("ms_per_unit"),
        )

    return Model(f"GT-ITM: {summary}", (_BROKERS, _FLAT_DEGREE, _ALPHA, *own, _SCALE, _PER_UNIT), build)


def _line(values: Values, _seed: int) -> Overlay:
    return flat.line(values.whole("brokers"), latency_ms=values.number("latency_ms"))


def _ring(values: Values, _seed: int) -> Overlay:
    return flat.ring(values.whole("brokers"), latency_ms=values.number("latency_ms"))


def _star(values: Values, _seed: int) -> Overlay:
    return flat.star(values.whole("brokers"), latency_ms=values.number("latency_ms"))


def _tree(values: Values, _seed: int) -> Overlay:
    branching = values.whole("branching")
    return flat.tree(values.whole("brokers"), branching=branching, latency_ms=values.number("latency_ms"))


def _random(values: Values, seed: int) -> Overlay:
    latency_ms = values.number("latency_ms")
    return flat.random_degree(values.whole("brokers"), degree=values.number("degree"), seed=seed, latency_ms=latency_ms)


def _random_regular(values: Values, seed: int) -> Overlay:
    latency_ms = values.number("latency_ms")
    return flat.random_regular(values.whole("brokers"), degree=values.whole("degree"), seed=seed, latency_ms=latency_ms)


def _hierarchy(values: Values, seed: int) -> Overlay:
    levels = values.wholes("levels")
    _check_brokers(values, math.prod(levels), f"levels = {'x'.join(map(str, levels))}")
    models: list[EdgeModel] = []
    alphas = values.numbers("alpha")
    degree = values.number_or_none("degree")
    if degree is not None and alphas:
        raise ParameterError("give alpha or degree, not both")
    if degree is None:
        if len(alphas) not in (1, len(levels)):
            raise ParameterError(
                f"a hierarchy needs degree, or alpha: one for all levels or {len(levels)}, one for each"
            )
        models = [
            EdgeModel(values.text("edges"), alpha, values.number_or_none("beta"), values.number_or_none("gamma"))
            for alpha in (alphas * len(levels))[: len(levels)]
        ]
    return hierarchy(
        levels,
        seed=seed,
        models=models,
        degree=degree,
        upper_degree=values.number("upper_degree"),
        joins=values.whole("joins"),
        ms_per_unit=values.number("ms_per_unit"),
    )


def _transit_stub(values: Values, seed: int) -> Overlay:
    shape = TransitStubShape(**{name: values.whole(name) for name in _SHAPE_NAMES})
    sizes = ", ".join(f"{name} = {getattr(shape, name)}" for name in _SHAPE_NAMES[:4])
    _check_brokers(values, shape.brokers, sizes)
    degree = values.number_or_none("degree")
    edges: dict[str, EdgeModel | None] = {"transit": None, "stub": None}
    for kind, default in (("transit", TRANSIT_ALPHA), ("stub", STUB_ALPHA)):
        alpha = values.number_or_none(f"{kind}_alpha")
        if degree is None:
            edges[kind] = EdgeModel("pure-random", default if alpha is None else alpha)
        elif alpha is not None:
            raise ParameterError(f"give {kind}_alpha or degree, not both")
    return transit_stub(
        shape,
        seed=seed,
        transit_edges=edges["transit"],
        stub_edges=edges["stub"],
        degree=degree,
        ms_per_unit=values.number("ms_per_unit"),
    )


def _check_brokers(values: Values, brokers: int, sizes: str) -> None:
    wanted = values.whole_or_none("brokers")
    if wanted not in (None, brokers):
        raise ParameterError(f"brokers = {wanted}, but {sizes} make {brokers}; leave brokers out or change the sizes")


_SHAPE = (
    Parameter("transit_domains", "whole", "transit domains", 1),
    Parameter("transit_nodes", "whole", "nodes of each transit domain", 10),
    Parameter("stubs", "whole", "stub domains at each transit node", 1),
    Parameter("stub_nodes", "whole", "nodes of each stub domain", 9),
    Parameter("extra_transit_stub", "whole", "extra links between transit and stub nodes", 0),
    Parameter("extra_stub_stub", "whole", "extra links between stub domains", 0),
)
_SHAPE_NAMES = tuple(parameter.name for parameter in _SHAPE)

MODELS: dict[str, Model] = {
    "line": Model("brokers in a row", (_BROKERS, _LATENCY), _line),
    "ring": Model("brokers in a circle", (_BROKERS, _LATENCY), _ring),
    "star": Model("all around one broker", (_BROKERS, _LATENCY), _star),
    "tree": Model(
        "a tree filled level by level",
        (_BROKERS, Parameter("branching", "whole", "children of a broker", 2), _LATENCY),
        _tree,
    ),
    "random": Model(
        "a random overlay with an exact mean degree",
        (_BROKERS, Parameter("degree", "number", "mean degree", 3.0), _LATENCY),
        _random,
    ),
    "random-regular": Model(
        "a random overlay where every broker has the same degree",
        (_BROKERS, Parameter("degree", "whole", "degree of every broker", 4), _LATENCY),
        _random_regular,
    ),
    "pure-random": _gtitm("pure-random", "every pair with the same probability"),
    "waxman-1": _gtitm("waxman-1", "probability falls with a random number, not with distance"),
    "waxman-2": _gtitm("waxman-2", "probability falls with distance"),
    "exponential": _gtitm("exponential", "probability falls with distance, to zero at the diagonal"),
    "doar-leslie": _gtitm("doar-leslie", "as waxman-2, with a degree that does not grow with the brokers"),
    "locality": _gtitm("locality", "one probability for near pairs, another for distant ones"),
    "hierarchy": Model(
        "GT-ITM: N levels, each node replaced by a graph",
        (
            Parameter("levels", "wholes", "nodes of a graph on each level, top first, such as 10x100", (10, 10)),
            Parameter("brokers", "whole", "checked against the product of the levels"),
            Parameter("degree", "number", "exact mean degree of the whole; give degree or alpha"),
            Parameter("upper_degree", "number", "with degree: mean degree of graphs above the lowest level", 3.0),
            Parameter("joins", "whole", "links that a link becomes when its ends are replaced", 1),
            Parameter("edges", "text", "with alpha: model of the graphs on all levels", "pure-random"),
            Parameter("alpha", "numbers", "alpha of the edge model, one for all levels or one for each"),
            Parameter("beta", "number", "beta of the edge model"),
            Parameter("gamma", "number", "gamma of the edge model"),
            _PER_UNIT,
        ),
        _hierarchy,
    ),
    "transit-stub": Model(
        "GT-ITM: transit domains, with stub domains around them",
        (
            *_SHAPE,
            Parameter("brokers", "whole", "checked against what the sizes above make"),
            Parameter("degree", "number", "exact mean degree of the whole; give degree or the alphas"),
            Parameter("transit_alpha", "number", f"probability of a link in a transit domain ({TRANSIT_ALPHA})"),
            Parameter("stub_alpha", "number", f"probability of a link in a stub domain ({STUB_ALPHA})"),
            _PER_UNIT,
        ),
        _transit_stub,
    ),
}
"""The generators, by name."""

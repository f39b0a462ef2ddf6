"""The models of overlays by name, with their parameters, for command lines and scenarios."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Meta
from msgspec import inspect as types

from topologies.build import LATENCY_MS, MS_PER_UNIT
from topologies.errors import ParameterError, nearest
from topologies.files.typed_tables import (
    INT_MAX,
    Count,
    Finite,
    Table,
    TableReader,
    about,
    description_of,
    expecting,
    fields_of,
    type_options,
)
from topologies.generators import flat
from topologies.generators.edge_models import EDGE_MODELS, SCALE, EdgeModel
from topologies.generators.hierarchy import hierarchy
from topologies.generators.transit_stub import STUB_ALPHA, TRANSIT_ALPHA, TransitStubShape, transit_stub
from topologies.overlay import Overlay

Kind = Literal["whole", "number", "text", "wholes", "numbers"]
Integer: TypeAlias = Annotated[int, Meta(ge=-INT_MAX, le=INT_MAX)]


class ModelParameters(Protocol):
    """The parameters of a model: a `Table`. A parameter whose default is None may be left out."""

    def build(self, seed: int) -> Overlay:
        """Returns the overlay. The same seed gives the same overlay."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a model, as commands show it. A needed one has no default."""

    name: str
    kind: Kind
    help: str
    default: int | float | str | tuple[float, ...] | None
    needed: bool


@dataclass(frozen=True, slots=True)
class Model:
    """A generator: its summary and the type of its parameters."""

    summary: str
    parameters_type: type[ModelParameters]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(_parameter(field) for field in fields_of(self.parameters_type))


def generate(model: str, parameters: Mapping[str, object], *, seed: int = 1) -> Overlay:
    """Returns the model's overlay for these parameters, which are values or texts such as `10x100`."""
    given = {name: value for name, value in parameters.items() if value is not None}
    reader = TableReader(f"model {model!r}", ParameterError)
    return reader.read_texts(find_model(model).parameters_type, given).build(seed)


def find_model(name: str) -> Model:
    """Returns the model with this name."""
    if name not in MODELS:
        raise ParameterError(f"unknown model {name!r}; {nearest(name, MODELS)}")
    return MODELS[name]


def _parameter(field: types.Field) -> Parameter:
    default = None if field.required else field.default
    return Parameter(field.name, _kind(field.type), description_of(field), default, field.required)


def _kind(info: types.Type) -> Kind:
    match type_options(info)[0]:
        case types.IntType():
            return "whole"
        case types.FloatType():
            return "number"
        case types.VarTupleType(item_type=item):
            return "wholes" if _kind(item) == "whole" else "numbers"
    return "text"


Brokers: TypeAlias = Annotated[Count, about("number of brokers")]
Latency: TypeAlias = Annotated[Finite, about("latency of every link")]
Scale: TypeAlias = Annotated[Integer, about("side of the square grid that brokers stand on")]
PerUnit: TypeAlias = Annotated[Finite, about("latency for each unit of a link's length")]

_BETA_HELP = {
    "waxman-1": "how slowly the probability falls with the drawn r",
    "waxman-2": "how slowly the probability falls with distance",
    "doar-leslie": "how slowly the probability falls with distance",
    "locality": "probability of a link between distant brokers (relative to alpha when degree is given)",
}
_ALPHA_HELP = "probability of a link in a {} domain ({})"
_GAMMA_HELP = {
    "doar-leslie": "factor that is divided by the number of brokers",
    "locality": "reach of near brokers, as a share of the square's diagonal",
}


def _gtitm(name: str, summary: str) -> Model:
    """A GT-ITM model of flat overlays. It has beta and gamma if its edge model has them."""
    rule = EDGE_MODELS[name]
    own: list[tuple[str, Any, Any]] = []
    if rule.beta is not None:
        own.append(("beta", Annotated[Finite, about(_BETA_HELP[name])], rule.beta))
    if rule.gamma is not None:
        own.append(("gamma", Annotated[Finite, about(_GAMMA_HELP[name])], rule.gamma))

    def build(self: Any, seed: int) -> Overlay:
        edges = EdgeModel(name, self.alpha, **{parameter: getattr(self, parameter) for parameter, _, _ in own})
        return flat.gtitm_flat(
            self.brokers, edges, seed=seed, degree=self.degree, scale=self.scale, ms_per_unit=self.ms_per_unit
        )

    alpha_help = "probability of a link, above 0 and at most 1; give alpha or degree"
    degree_help = "expected mean degree, reached by scaling alpha"
    parameters_type: Any = msgspec.defstruct(
        name,
        [
            ("brokers", Brokers),
            ("degree", Annotated[Finite | None, about(degree_help)], None),
            ("alpha", Annotated[Finite | None, about(alpha_help)], None),
            *own,
            ("scale", Scale, SCALE),
            ("ms_per_unit", PerUnit, MS_PER_UNIT),
        ],
        bases=(Table,),
        namespace={"build": build},
        frozen=True,
        kw_only=True,
    )
    return Model(f"GT-ITM: {summary}", parameters_type)


class FixedShape(Table, frozen=True, kw_only=True):
    brokers: Brokers
    latency_ms: Latency = LATENCY_MS


class Line(FixedShape, frozen=True, kw_only=True):
    def build(self, seed: int) -> Overlay:
        return flat.line(self.brokers, latency_ms=self.latency_ms)


class Ring(FixedShape, frozen=True, kw_only=True):
    def build(self, seed: int) -> Overlay:
        return flat.ring(self.brokers, latency_ms=self.latency_ms)


class Star(FixedShape, frozen=True, kw_only=True):
    def build(self, seed: int) -> Overlay:
        return flat.star(self.brokers, latency_ms=self.latency_ms)


class Tree(Table, frozen=True, kw_only=True):
    brokers: Brokers
    branching: Annotated[Integer, about("children of a broker")] = 2
    latency_ms: Latency = LATENCY_MS

    def build(self, seed: int) -> Overlay:
        return flat.tree(self.brokers, branching=self.branching, latency_ms=self.latency_ms)


class Random(Table, frozen=True, kw_only=True):
    brokers: Brokers
    degree: Annotated[Finite, about("mean degree")] = 3.0
    latency_ms: Latency = LATENCY_MS

    def build(self, seed: int) -> Overlay:
        return flat.random_degree(self.brokers, degree=self.degree, seed=seed, latency_ms=self.latency_ms)


class RandomRegular(Table, frozen=True, kw_only=True):
    brokers: Brokers
    degree: Annotated[Integer, about("degree of every broker")] = 4
    latency_ms: Latency = LATENCY_MS

    def build(self, seed: int) -> Overlay:
        return flat.random_regular(self.brokers, degree=self.degree, seed=seed, latency_ms=self.latency_ms)


class Hierarchy(Table, frozen=True, kw_only=True):
    levels: Annotated[
        tuple[Integer, ...],
        about("nodes of a graph on each level, top first, such as 10x100"),
        Meta(min_length=1),
        expecting("whole numbers, such as 10x100"),
    ] = (10, 10)
    brokers: Annotated[Integer | None, about("checked against the product of the levels")] = None
    degree: Annotated[Finite | None, about("exact mean degree of the whole; give degree or alpha")] = None
    upper_degree: Annotated[Finite, about("with degree: mean degree of graphs above the lowest level")] = 3.0
    joins: Annotated[Integer, about("links that a link becomes when its ends are replaced")] = 1
    edges: Annotated[str, about("with alpha: model of the graphs on all levels")] = "pure-random"
    alpha: Annotated[
        tuple[Finite, ...] | None, about("alpha of the edge model, one for all levels or one for each")
    ] = None
    beta: Annotated[Finite | None, about("beta of the edge model")] = None
    gamma: Annotated[Finite | None, about("gamma of the edge model")] = None
    ms_per_unit: PerUnit = MS_PER_UNIT

    def build(self, seed: int) -> Overlay:
        levels, alphas = self.levels, self.alpha or ()
        _check_brokers(self.brokers, math.prod(levels), f"levels = {'x'.join(map(str, levels))}")
        if self.degree is not None and alphas:
            raise ParameterError("give alpha or degree, not both")
        if self.degree is None and len(alphas) not in (1, len(levels)):
            raise ParameterError(
                f"a hierarchy needs degree, or alpha: one for all levels or {len(levels)}, one for each"
            )
        return hierarchy(
            levels,
            seed=seed,
            models=[
                EdgeModel(self.edges, alpha, self.beta, self.gamma) for alpha in (alphas * len(levels))[: len(levels)]
            ],
            degree=self.degree,
            upper_degree=self.upper_degree,
            joins=self.joins,
            ms_per_unit=self.ms_per_unit,
        )


class TransitStub(Table, frozen=True, kw_only=True):
    transit_domains: Annotated[Integer, about("transit domains")] = 1
    transit_nodes: Annotated[Integer, about("nodes of each transit domain")] = 10
    stubs: Annotated[Integer, about("stub domains at each transit node")] = 1
    stub_nodes: Annotated[Integer, about("nodes of each stub domain")] = 9
    extra_transit_stub: Annotated[Integer, about("extra links between transit and stub nodes")] = 0
    extra_stub_stub: Annotated[Integer, about("extra links between stub domains")] = 0
    brokers: Annotated[Integer | None, about("checked against what the sizes above make")] = None
    degree: Annotated[Finite | None, about("exact mean degree of the whole; give degree or the alphas")] = None
    transit_alpha: Annotated[Finite | None, about(_ALPHA_HELP.format("transit", TRANSIT_ALPHA))] = None
    stub_alpha: Annotated[Finite | None, about(_ALPHA_HELP.format("stub", STUB_ALPHA))] = None
    ms_per_unit: PerUnit = MS_PER_UNIT

    def build(self, seed: int) -> Overlay:
        shape = TransitStubShape(**{name: getattr(self, name) for name in _SHAPE_NAMES})
        sizes = ", ".join(f"{name} = {getattr(shape, name)}" for name in _SHAPE_NAMES[:4])
        _check_brokers(self.brokers, shape.brokers, sizes)
        return transit_stub(
            shape,
            seed=seed,
            transit_edges=self._edges("transit", self.transit_alpha, TRANSIT_ALPHA),
            stub_edges=self._edges("stub", self.stub_alpha, STUB_ALPHA),
            degree=self.degree,
            ms_per_unit=self.ms_per_unit,
        )

    def _edges(self, kind: str, alpha: float | None, default: float) -> EdgeModel | None:
        if self.degree is None:
            return EdgeModel("pure-random", default if alpha is None else alpha)
        if alpha is not None:
            raise ParameterError(f"give {kind}_alpha or degree, not both")
        return None


_SHAPE_NAMES = tuple(field.name for field in fields_of(TransitStub))[:6]


def _check_brokers(wanted: int | None, brokers: int, sizes: str) -> None:
    if wanted not in (None, brokers):
        raise ParameterError(f"brokers = {wanted}, but {sizes} make {brokers}; leave brokers out or change the sizes")


MODELS: dict[str, Model] = {
    "line": Model("brokers in a row", Line),
    "ring": Model("brokers in a circle", Ring),
    "star": Model("all around one broker", Star),
    "tree": Model("a tree filled level by level", Tree),
    "random": Model("a random overlay with an exact mean degree", Random),
    "random-regular": Model("a random overlay where every broker has the same degree", RandomRegular),
    "pure-random": _gtitm("pure-random", "every pair with the same probability"),
    "waxman-1": _gtitm("waxman-1", "probability falls with a random number, not with distance"),
    "waxman-2": _gtitm("waxman-2", "probability falls with distance"),
    "exponential": _gtitm("exponential", "probability falls with distance, to zero at the diagonal"),
    "doar-leslie": _gtitm("doar-leslie", "as waxman-2, with a degree that does not grow with the brokers"),
    "locality": _gtitm("locality", "one probability for near pairs, another for distant ones"),
    "hierarchy": Model("GT-ITM: N levels, each node replaced by a graph", Hierarchy),
    "transit-stub": Model("GT-ITM: transit domains, with stub domains around them", TransitStub),
}
"""The generators, by name."""

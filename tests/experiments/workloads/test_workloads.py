"""Proves that seeds determine workloads, that parameters apply, and that they have the statistics of the papers."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.errors import WorkloadError
from experiments.workloads.abe_gen import AbeGen, AbeGenParameters
from experiments.workloads.ads import Ads, AdsParameters
from experiments.workloads.be_gen import BeGen, BeGenParameters
from experiments.workloads.derivation import OTHER_OPERATORS, Domain, OperatorClass, implied_predicate
from experiments.workloads.query_log import QueryLog, QueryLogParameters
from experiments.workloads.registry import Parameters, create, info, names, parameters_from_text
from matching.expressions.model import And, Expression, Not, Operator, Or, Predicate, Xnor, Xor
from matching.expressions.values import check_publication
from matching.registry import Accepts
from topologies.random_streams import stream

ROOT = Path(__file__).resolve().parents[3]


def written_out(expression: Expression) -> str:
    if isinstance(expression, Predicate):
        return f"{expression.attribute} {expression.operator} {expression.values}"
    return f"{type(expression).__name__}({', '.join(map(written_out, expression.children))})"


def digest(name: str, seed: int) -> str:
    workload = create(info(name).parameters(), subscriptions=50, publications=5, seed=seed)
    lines = [*map(written_out, workload.subscriptions()), *map(json.dumps, workload.publications())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@pytest.mark.parametrize("name", names())
def test_the_same_seed_gives_the_same_workload_and_another_seed_another(name: str) -> None:
    assert digest(name, 1) == digest(name, 1) != digest(name, 2)


def test_workloads_do_not_depend_on_the_hash_seed() -> None:
    program = "from tests.experiments.workloads.test_workloads import *; print([digest(name, 3) for name in names()])"
    digests = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert digests[0] == digests[1] == f"{[digest(name, 3) for name in names()]}\n"


@pytest.mark.parametrize("name", names())
def test_a_generator_starts_over_at_each_call(name: str) -> None:
    workload = create(info(name).parameters(), subscriptions=5, publications=3, seed=1)
    assert list(workload.subscriptions()) == list(workload.subscriptions())
    assert list(workload.publications()) == list(workload.publications())


@pytest.mark.parametrize("name", names())
def test_counts_are_as_given_and_publications_are_valid(name: str) -> None:
    workload = create(info(name).parameters(), subscriptions=7, publications=4, seed=1)
    publications = list(workload.publications())
    assert len(list(workload.subscriptions())) == 7
    assert len(publications) == 4
    assert [check_publication(publication) for publication in publications] == publications


@pytest.mark.parametrize(
    "parameters", [BeGenParameters(), AbeGenParameters(sharing=0), QueryLogParameters(), AdsParameters()]
)
def test_the_first_of_a_billion_is_generated_without_the_others(parameters: Parameters) -> None:
    workload = create(parameters, subscriptions=10**9, publications=10**9, seed=1)
    assert len(list(islice(workload.subscriptions(), 2))) == 2
    assert len(list(islice(workload.publications(), 2))) == 2


@pytest.mark.parametrize("name", [name for name in names() if info(name).makes is Accepts.CONJUNCTIONS])
def test_a_workload_of_conjunctions_makes_conjunctions_on_distinct_attributes(name: str) -> None:
    workload = create(info(name).parameters(), subscriptions=200, publications=0, seed=1)
    for expression in workload.subscriptions():
        assert isinstance(expression, Predicate | And)
        assert expression.depth <= 2
        attributes = [predicate.attribute for predicate in expression.predicates()]
        assert len(set(attributes)) == len(attributes)


@pytest.mark.parametrize("operator", [Operator.EQ, *OTHER_OPERATORS[OperatorClass.HIGH]])
@given(
    st.integers(2, 12),
    st.floats(0, 1),
    st.integers(1, 8),
    st.integers(0, 2**32),
    st.data(),
)
def test_a_pair_implies_every_predicate_derived_from_it(
    operator: Operator, cardinality: int, range_share: float, largest_list: int, seed: int, data: st.DataObject
) -> None:
    value = data.draw(st.integers(0, cardinality - 1))
    domain = Domain(cardinality, range_share, largest_list)
    predicate = implied_predicate(stream(seed, "test"), "a1", value, operator, domain)
    assert predicate.operator is operator
    assert predicate.is_true_for(value)


@settings(max_examples=40, deadline=None)
@given(
    st.builds(
        BeGenParameters,
        dimensions=st.integers(6, 50),
        cardinality=st.integers(2, 200),
        subscription_size=st.integers(1, 6),
        event_size=st.just(6),
        matching_probability=st.sampled_from([0.05, 0.3, 1.0]),
        equality=st.floats(0, 1),
        operators=st.sampled_from(OperatorClass),
        zipf=st.floats(0, 6),
        repeats=st.integers(0, 2),
    )
)
def test_every_be_gen_subscription_matches_the_base_event_it_is_derived_from(parameters: BeGenParameters) -> None:
    workload = BeGen(parameters, subscriptions=40, publications=0, seed=5)
    for number, expression in enumerate(workload.subscriptions()):
        assert expression.size == parameters.subscription_size
        assert expression.matches(workload.base_event_of(number))


def measured_probability(parameters: BeGenParameters) -> float:
    workload = BeGen(parameters, subscriptions=2_000, publications=200, seed=1)
    subscriptions = list(workload.subscriptions())
    return mean(
        mean(expression.matches(publication) for expression in subscriptions) for publication in workload.publications()
    )


def test_be_gen_matches_about_as_often_as_wanted() -> None:
    wanted = BeGenParameters().matching_probability
    assert wanted / 2 <= measured_probability(BeGenParameters()) <= wanted * 2
    assert 0.05 <= measured_probability(BeGenParameters(matching_probability=0.1)) <= 0.2


def test_be_gen_defaults_have_the_shape_of_the_papers() -> None:
    workload = BeGen(BeGenParameters(), subscriptions=4_000, publications=20, seed=1)
    predicates = [predicate for expression in workload.subscriptions() for predicate in expression.predicates()]
    operators = Counter(predicate.operator for predicate in predicates)
    assert operators[Operator.EQ] / len(predicates) == pytest.approx(0.2, abs=0.01)
    assert set(operators) == {Operator.EQ, *OTHER_OPERATORS[OperatorClass.MEDIUM]}
    assert {predicate.attribute for predicate in predicates} == {f"a{rank}" for rank in range(100)}
    assert {len(p.values) for p in predicates if p.operator is Operator.IN} == {2, 3, 4, 5, 6}
    lengths = [int(p.values[1]) - int(p.values[0]) + 1 for p in predicates if p.operator is Operator.BETWEEN]
    assert 10 <= mean(lengths) <= 12, "12% of the domain, less what its ends cut off"
    assert {len(publication) for publication in workload.publications()} == {30}


@pytest.mark.parametrize("operators", OperatorClass)
def test_be_gen_uses_the_operators_of_the_class(operators: OperatorClass) -> None:
    workload = BeGen(BeGenParameters(operators=operators), subscriptions=400, publications=0, seed=1)
    used = {predicate.operator for expression in workload.subscriptions() for predicate in expression.predicates()}
    assert used == {Operator.EQ, *OTHER_OPERATORS[operators]}


def test_a_zipf_exponent_makes_the_first_dimensions_frequent() -> None:
    def share_of_first_ten(exponent: float) -> float:
        workload = BeGen(BeGenParameters(zipf=exponent), subscriptions=2_000, publications=0, seed=1)
        attributes = [p.attribute for expression in workload.subscriptions() for p in expression.predicates()]
        return mean(attribute in {f"a{rank}" for rank in range(10)} for attribute in attributes)

    assert share_of_first_ten(0) == pytest.approx(0.1, abs=0.03)
    assert share_of_first_ten(2) > 0.3


@pytest.mark.parametrize("parameters", [BeGenParameters(repeats=2), AbeGenParameters(repeats=2)])
def test_repeats_are_equal_expressions_but_other_objects(parameters: Parameters) -> None:
    workload = create(parameters, subscriptions=9, publications=0, seed=1)
    expressions = list(workload.subscriptions())
    assert expressions[0] == expressions[1] == expressions[2] != expressions[3]
    assert len({id(predicate) for expression in expressions for predicate in expression.predicates()}) == sum(
        expression.size for expression in expressions
    )


def abe_gen(parameters: AbeGenParameters, count: int = 1_500) -> list[Expression]:
    return list(AbeGen(parameters, subscriptions=count, publications=0, seed=1).subscriptions())


def test_abe_gen_defaults_have_the_shape_of_the_papers() -> None:
    expressions = abe_gen(AbeGenParameters())
    assert {expression.depth for expression in expressions} == {3}
    connectives = Counter(type(node) for expression in expressions for node in expression.nodes() if node.children)
    total = connectives.total()
    for kind, share in {And: 0.4, Or: 0.4, Not: 0.1, Xor: 0.05, Xnor: 0.05}.items():
        assert connectives[kind] / total == pytest.approx(share, abs=0.03)
    children = [len(expression.children) for expression in expressions if isinstance(expression, And | Or)]
    assert set(children) == {2, 3, 4, 5, 6}
    assert mean(children) == pytest.approx(4, abs=0.15)
    workload = AbeGen(AbeGenParameters(), subscriptions=0, publications=10, seed=1)
    assert {len(publication) for publication in workload.publications()} == {20}


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_abe_gen_has_exactly_the_requested_depth(depth: int) -> None:
    assert {expression.depth for expression in abe_gen(AbeGenParameters(depth=depth), 40)} == {depth}


def uses_of_each_subexpression(sharing: float) -> float:
    subexpressions = [
        child for expression in abe_gen(AbeGenParameters(sharing=sharing)) for child in expression.children
    ]
    return len(subexpressions) / len(set(subexpressions))


def test_abe_gen_shares_subexpressions_as_the_paper_reports() -> None:
    assert uses_of_each_subexpression(0.6) == pytest.approx(4.33, rel=0.1)
    assert uses_of_each_subexpression(1.0) > uses_of_each_subexpression(0.6)
    assert uses_of_each_subexpression(0) < 1.05, "only what is drawn alike by chance"


def test_query_log_has_the_published_statistics() -> None:
    workload = QueryLog(QueryLogParameters(), subscriptions=10_000, publications=10, seed=1)
    expressions = list(workload.subscriptions())
    predicates = [predicate for expression in expressions for predicate in expression.predicates()]
    assert len(predicates) / len(expressions) == pytest.approx(2.78, rel=0.03)
    assert {predicate.operator for predicate in predicates} == {Operator.EQ}
    attributes = {predicate.attribute for predicate in predicates}
    assert attributes < {f"a{rank}" for rank in range(17_577)}
    assert len(attributes) > 5_000
    assert {len(publication) for publication in workload.publications()} == {93}


def test_ads_have_the_published_statistics() -> None:
    workload = Ads(AdsParameters(), subscriptions=6_000, publications=20, seed=1)
    expressions = list(workload.subscriptions())
    sizes = [expression.size for expression in expressions]
    assert mean(sizes) == pytest.approx(8, rel=0.03)
    assert min(sizes) == 1
    assert 45 < max(sizes) <= 56
    predicates = [predicate for expression in expressions for predicate in expression.predicates()]
    attributes = {predicate.attribute for predicate in predicates}
    assert len(attributes) == 122
    assert {"channel", "region", "a17"} < attributes
    operators = Counter(predicate.operator for predicate in predicates)
    assert (operators[Operator.EQ] + operators[Operator.IN]) / len(predicates) == pytest.approx(0.9, abs=0.01)
    assert all(isinstance(value, str) for predicate in predicates for value in predicate.values)
    publications = list(workload.publications())
    assert {len(publication) for publication in publications} == {20}
    assert any(expression.matches(publications[0]) for expression in expressions)


@pytest.mark.parametrize("workload", [QueryLog, Ads])
def test_a_workload_in_place_of_data_that_is_not_public_is_marked(workload: type[QueryLog] | type[Ads]) -> None:
    assert "not public" in workload.notice
    assert "published statistics" in workload.notice
    assert "not public" in (sys.modules[workload.__module__].__doc__ or "")


def test_parameters_are_read_from_text_by_their_types() -> None:
    parameters = parameters_from_text("be-gen", {"zipf": "1", "operators": "high", "event-size": "40"})
    assert parameters == BeGenParameters(zipf=1.0, operators=OperatorClass.HIGH, event_size=40)
    assert parameters_from_text("abe-gen", {"connectives": "1,1,0,0,0"}) == AbeGenParameters(
        connectives=(1, 1, 0, 0, 0)
    )


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("be-gne", {}, "no workload is called 'be-gne' .did you mean 'be-gen'"),
        ("be-gen", {"dimension": "3"}, "be-gen has no parameter 'dimension' .did you mean 'dimensions'"),
        ("be-gen", {"dimensions": "many"}, "dimensions is 'many'; it must be a whole number"),
        ("be-gen", {"dimensions": "2.5"}, "dimensions is '2.5'; it must be a whole number"),
        ("be-gen", {"operators": "all"}, "operators is 'all'; known: high, low, medium, min"),
        ("be-gen", {"subscription_size": "31"}, "subscription_size is 31, but an event has only 30 pairs"),
        ("be-gen", {"event_size": "101"}, "event_size is 101; it must lie between 1 and 100"),
        ("be-gen", {"matching_probability": "0"}, "matching_probability is 0.0"),
        ("be-gen", {"matching_probability": "nan"}, "matching_probability is nan"),
        ("be-gen", {"cardinality": "1"}, "cardinality is 1; it must be at least 2"),
        ("abe-gen", {"connectives": "1,1"}, "five shares"),
        ("abe-gen", {"connectives": "1;1"}, "connectives is '1;1'; it must be numbers with commas between"),
        ("query-log", {"subscription_size": "7"}, "subscription_size is 7.0"),
        ("ads", {"equality": "0.95"}, "negation is 0.1; it must lie between 0 and 0.05"),
    ],
)
def test_parameters_that_cannot_be_generated_are_refused_by_name(
    name: str, settings: dict[str, str], message: str
) -> None:
    with pytest.raises(WorkloadError, match=message) as refusal:
        parameters_from_text(name, settings)
    assert refusal.value.exit_code == 2

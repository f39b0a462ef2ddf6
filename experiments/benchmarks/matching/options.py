"""Converts command-line options of `mercast match bench` to parts of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments.benchmarks.matching.plan import IndexChoice
from experiments.errors import BenchPlanError


def workload_settings(named: Mapping[str, float | None], assignments: Sequence[str]) -> dict[str, str]:
    """The workload's parameters as text, from their own options and from `--set key=value`."""
    settings = {name: _as_text(value) for name, value in named.items() if value is not None}
    for assignment in assignments:
        key, separator, value = assignment.partition("=")
        parameter = key.strip().replace("-", "_")
        if not separator or not parameter:
            raise BenchPlanError(f"--set {assignment}: write key=value, as --set cardinality=30")
        if parameter in settings:
            raise BenchPlanError(f"--set {assignment}: {parameter} is given twice")
        settings[parameter] = value.strip()
    return settings


def _as_text(value: float) -> str:
    """Writes 5.0 as 5: `--subscription-size` accepts 2.78, but some workloads need a whole number."""
    return str(int(value)) if float(value).is_integer() else str(value)


def index_choices(names: Sequence[str], assignments: Sequence[str]) -> tuple[IndexChoice, ...]:
    """The indexes to compare, each with its `--option index.key=value`."""
    options: dict[str, dict[str, object]] = {name: {} for name in names}
    for assignment in assignments:
        target, separator, value = assignment.partition("=")
        name, dot, key = target.strip().partition(".")
        if not (separator and dot and key):
            raise BenchPlanError(
                f"--option {assignment}: write index.key=value, as --option pst-hash.access_predicates=3"
            )
        if name not in options:
            raise BenchPlanError(f"--option {assignment}: {name} is not compared; add --index {name}")
        options[name][key.replace("-", "_")] = _literal(value.strip())
    return tuple(IndexChoice(name, options[name]) for name in names)


def _literal(text: str) -> int | float | bool | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text

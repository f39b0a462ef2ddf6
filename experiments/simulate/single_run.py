"""Runs one scenario from Python code: `mercast.simulate("line", "d-dbr")`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from broker.progress import ignore_progress
from experiments.scenario.load import load
from experiments.simulate.run import simulate as run_scenario
from experiments.simulate.summary import RunSummary


def simulate(
    scenario: str | Path,
    protocol: str,
    *,
    seed: int | None = None,
    settings: Mapping[str, object] | None = None,
    out: str | Path | None = None,
) -> RunSummary:
    """Runs a scenario under one protocol and returns its summary.

    `scenario` is the name of a shipped scenario or the path of a file. `settings` replaces values of the scenario, as
    `--set` of `mercast simulate` does: `{"clients.subscriptions_each": 20}`. With `out`, the run and its trace are
    written to that new folder; `mercast.read_trace` reads them.
    """
    overrides = {key: str(value) for key, value in (settings or {}).items()}
    if seed is not None:
        overrides["seed"] = str(seed)
    return run_scenario(load(scenario, overrides), protocol, ignore_progress, None if out is None else Path(out))

"""Runs one random scenario again: the command that a failing test prints."""

from __future__ import annotations

import argparse

from tests.broker.scenario import Scenario


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--protocol", required=True)
    parser.add_argument("--matcher", default="auto")
    parser.add_argument("--loss", type=float, default=0.0)
    for option in ("durable", "strict", "faults", "reorganise"):
        parser.add_argument(f"--{option}", action="store_true")
    parser.add_argument("--option", action="append", default=[], help="one of the router's own")
    chosen = parser.parse_args()
    scenario = Scenario(
        chosen.seed,
        chosen.protocol,
        chosen.matcher,
        is_durable=chosen.durable,
        is_open=not chosen.strict,
        loss=chosen.loss,
        has_faults=chosen.faults,
        reorganises=chosen.reorganise,
        options=dict.fromkeys(chosen.option, True),
    )
    scenario.run()
    owed = sum(len(scenario.required(sent)) for sent in scenario.sent)
    print(f"{len(scenario.sent)} publications, {owed} deliveries owed, {len(scenario.world.delivered)} made: all right")


if __name__ == "__main__":
    main()

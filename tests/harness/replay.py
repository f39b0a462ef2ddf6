"""Runs one random scenario, with the command that a failing test prints, or many with `--count`.

python -m tests.harness.replay 17 --protocol merc --durable --faults
python -m tests.harness.replay 0 --count 5000
"""

from __future__ import annotations

import argparse
import os
import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from experiments.torture.random_scenario import Scenario
from routing.registry import names


def any_scenario(seed: int) -> Scenario:
    """A scenario whose kind depends on the seed only."""
    chosen = random.Random(f"kind of {seed}")
    protocol = names()[seed % len(names())]
    options: dict[str, object] = {}
    if protocol == "fbr":
        options = {option: True for option in ("readvertise", "covering") if chosen.random() < 0.25}
    return Scenario(
        seed,
        protocol,
        is_durable=chosen.random() < 0.5,
        is_open=chosen.random() < 0.6,
        loss=chosen.choice((0.0, 0.0, 0.0, 0.1)),
        has_faults=chosen.random() < 0.85,
        reorganises=protocol in ("d-dbr", "merc") and chosen.random() < 0.1,
        options=options,
    )


def outcome(seed: int) -> tuple[str, Counter[str], bool]:
    """Runs a scenario. Returns the failure or no text, the counts of pairs by result, and whether it was weak."""
    scenario = any_scenario(seed)
    try:
        scenario.run()
    except AssertionError as error:
        return str(error), Counter(), False
    return "", scenario.pairs, scenario.is_weak


def run_many(first: int, count: int) -> bool:
    """Runs scenarios on all cores and prints a summary. Returns whether all passed."""
    pairs: Counter[str] = Counter()
    failed = weak = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for done, (failure, of_one, is_weak) in enumerate(pool.map(outcome, range(first, first + count)), start=1):
            pairs.update(of_one)
            weak += is_weak
            if failure:
                failed += 1
                print(f"{failure}\n", flush=True)
            if done % 500 == 0 or done == count:
                print(f"{done} scenarios, {failed} failed, {weak} weak; pairs: {dict(pairs)}", flush=True)
    return not failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("--count", type=int, help="so many scenarios of all kinds, from this seed on")
    parser.add_argument("--protocol", choices=names())
    parser.add_argument("--matcher", default="auto")
    parser.add_argument("--loss", type=float, default=0.0)
    for option in ("durable", "strict", "faults", "reorganise"):
        parser.add_argument(f"--{option}", action="store_true")
    parser.add_argument("--option", action="append", default=[], help="one of the router's own")
    chosen = parser.parse_args()
    if chosen.count is not None:
        raise SystemExit(not run_many(chosen.seed, chosen.count))
    if chosen.protocol is None:
        parser.error("--protocol or --count is needed")
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
    print(f"{len(scenario.sent)} publications; pairs: {dict(scenario.pairs)}")


if __name__ == "__main__":
    main()

"""The command line. It composes the commands that each package defines.

A package has modules `commands.py` with `COMMANDS`, a table from a command's words to its function. Only the modules of
the requested group are loaded, and a command imports what it needs when it runs. So `mercast --help` is quick, and a
broker host needs no plotting library.

An exception with an `exit_code` is an error that the user can fix. It is printed in one line, without a traceback.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from broker.exit_codes import exit_with_error


@dataclass(frozen=True, slots=True)
class Part:
    """A command, or a group of them."""

    help: str
    modules: tuple[str, ...]
    """The modules that define it."""


GROUPS = {
    "deploy": Part(
        "Files for several hosts: systemd units, a compose file, Kubernetes manifests.",
        ("broker.deployment.manifests.commands",),
    ),
    "experiment": Part(
        "The papers' figures: run them, compare, put them on one page.",
        ("experiments.figures.commands", "experiments.report.commands"),
    ),
    "match": Part(
        "Matching without brokers: read expressions, explain answers, compare indexes.",
        ("matching.commands", "experiments.benchmarks.matching.commands"),
    ),
    "store": Part("Stores of durable brokers: check for damage, export records.", ("broker.runtime.commands",)),
    "topology": Part("Overlays of brokers: generate, look at, cluster, import.", ("topologies.commands",)),
}

COMMANDS = {
    "demo": Part(
        "Simulate 100 brokers under three protocols, analyse, show the difference.", ("experiments.demo.commands",)
    ),
    "broker": Part("Run one broker of an overlay in the foreground.", ("broker.runtime.commands",)),
    "bench": Part("Put load on a running overlay and measure it.", ("broker.client.cli.commands",)),
    "certs": Part("Write certificates for an overlay's brokers and clients.", ("broker.security.commands",)),
    "down": Part("Stop the broker processes of an overlay.", ("broker.deployment.local.commands",)),
    "leave": Part("Take a broker out of a running overlay in good order.", ("broker.deployment.local.commands",)),
    "mqtt-bench": Part("Measure the MQTT gateway beside plain mosquitto.", ("broker.mqtt.commands",)),
    "pub": Part("Publish.", ("broker.client.cli.commands",)),
    "analyse": Part("Analyse traces with Spark: tables, figures, a page.", ("experiments.analysis.commands",)),
    "analyse-bench": Part("Show how the analysis scales, beside DuckDB.", ("experiments.analysis.commands",)),
    "simulate": Part("Run a scenario under one or more protocols, side by side.", ("experiments.simulate.commands",)),
    "simulate-bench": Part("Measure how fast simulations are.", ("experiments.benchmarks.simulation.commands",)),
    "calibrate": Part(
        "Measure what work costs here, for simulations.", ("experiments.benchmarks.simulation.commands",)
    ),
    "status": Part("Show the broker processes that run here.", ("broker.deployment.local.commands",)),
    "sub": Part("Subscribe, and print what comes.", ("broker.client.cli.commands",)),
    "torture": Part("Run random schedules of faults, and check every delivery.", ("experiments.torture.commands",)),
    "trace": Part("Show where one publication went, live or in a run, and why.", ("experiments.simulate.commands",)),
    "token": Part("Make a client's token, and the rule that knows it.", ("broker.security.commands",)),
    "up": Part("Start an overlay's brokers as processes on this machine.", ("broker.deployment.local.commands",)),
}


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from matching.registry import describe_backend

        print(f"mercast {version('mercast')} ({describe_backend()})")
        raise typer.Exit()


def compose(arguments: Sequence[str]) -> typer.Typer:
    """Builds the command line, with the commands of the group that the arguments name."""
    app = typer.Typer(
        name="mercast",
        help="Content-based publish/subscribe: match, route, simulate, deploy.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def _options(
        version: Annotated[
            bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
        ] = False,
    ) -> None:
        pass

    for name, group in GROUPS.items():
        commands = typer.Typer(no_args_is_help=True, help=group.help)
        app.add_typer(commands, name=name)
        if name in arguments[:1]:
            for module in group.modules:
                _add(commands, name, module)
    for name, command in COMMANDS.items():
        if name in arguments[:1]:
            (module,) = command.modules
            app.command(name)(importlib.import_module(module).COMMANDS[name])
        else:
            app.command(name, help=command.help)(_not_loaded)
    return app


def _add(commands: typer.Typer, group: str, module: str) -> None:
    for words, function in importlib.import_module(module).COMMANDS.items():
        first, _, name = words.partition(" ")
        if first == group:
            commands.command(name)(function)


def _not_loaded() -> None:
    """Represents a command in the list of commands without loading its module."""


def main() -> None:
    """Runs the command line with the arguments of the process."""
    try:
        compose(sys.argv[1:])()
    except Exception as error:
        exit_with_error(error)

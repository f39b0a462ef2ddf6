"""The command line: puts together the commands that each package defines, and nothing else.

Every package has a `commands.py` with `COMMANDS`, a table from a command's words to its function. These modules
import only the standard library and typer at the top; what a command needs it imports when it runs, so that
`mercast --help` stays quick and a broker host needs no plotting library.

An exception with an `exit_code` is the user's to fix: it is printed in one line, without a traceback.
"""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Annotated

import typer

import experiments.commands
import matching.commands
import topologies.commands

GROUPS = {
    "match": "Matching without brokers: read expressions, explain answers, compare indexes.",
    "topology": "Overlays of brokers: generate, look at, cluster, import.",
}
PACKAGES = (matching.commands, topologies.commands, experiments.commands)


def _show_version(wanted: bool) -> None:
    if wanted:
        from matching.registry import backend_in_words

        print(f"mercast {importlib.metadata.version('mercast')} ({backend_in_words()})")
        raise typer.Exit()


def _compose() -> typer.Typer:
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

    groups = {name: typer.Typer(no_args_is_help=True, help=text) for name, text in GROUPS.items()}
    for name, group in groups.items():
        app.add_typer(group, name=name)
    for package in PACKAGES:
        for words, function in package.COMMANDS.items():
            group_name, _, name = words.rpartition(" ")
            (groups[group_name] if group_name else app).command(name)(function)
    return app


def main() -> None:
    try:
        _compose()()
    except Exception as error:
        exit_code = getattr(error, "exit_code", None)
        if not isinstance(exit_code, int):
            raise
        print(f"mercast: {error}", file=sys.stderr)
        raise SystemExit(exit_code) from None


if __name__ == "__main__":
    main()

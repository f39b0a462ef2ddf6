"""Checks packages that only some commands need. If one is missing, the error has the command that installs it."""

from __future__ import annotations

import importlib

from experiments.errors import PackageMissingError

SIMULATION = ("simpy",)
TRACES = ("pyarrow",)
FIGURES = ("matplotlib",)
PAGES = ("jinja2",)


def check_packages(purpose: str, extra: str, packages: tuple[str, ...]) -> None:
    """`purpose` is a plural such as `simulations`. `extra` is the extra of the distribution that has the packages."""
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise PackageMissingError(f"{purpose} need {error.name}: pip install 'mercast[{extra}]'") from error

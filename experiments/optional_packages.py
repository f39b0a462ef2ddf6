"""Packages that only some commands need: asked for before the work, with what to type where one is missing."""

from __future__ import annotations

import importlib

from experiments.errors import PackageMissingError

SIMULATION = ("simpy",)
TRACES = ("pyarrow",)
FIGURES = ("matplotlib",)


def check_packages(purpose: str, extra: str, packages: tuple[str, ...]) -> None:
    """`purpose` in the plural, as `simulations`; `extra` is the part of the distribution that brings the packages."""
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise PackageMissingError(f"{purpose} need {error.name}: pip install 'mercast[{extra}]'") from error

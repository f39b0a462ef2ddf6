"""`mercast experiment report`: all results on one page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def experiment_report(
    results: Annotated[Path | None, typer.Option(help="A folder of results; by default those that came along.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("runs/report.html"),
    redraw: Annotated[
        bool, typer.Option("--redraw", help="First draw the figures of these results again, from their rows.")
    ] = False,
) -> None:
    """Make one page of all results: claims, figures, numbers side by side, verdicts.

    The page needs nothing beside itself: it can be mailed, printed and opened without a network.

    \b
    Examples:
      mercast experiment report
      mercast experiment report --results runs/results/quick --out runs/quick.html
      mercast experiment report --redraw
    """
    from experiments.optional_packages import FIGURES, PAGES, check_packages
    from experiments.output_paths import check_file, check_folder

    check_packages("pages", "spark", PAGES)
    from experiments.report.page import redraw_figures, write_page

    check_file(out)
    folder = results if results is not None else Path(__file__).parents[1] / "results"
    if redraw:
        check_packages("figures", "spark", FIGURES)
        check_folder(folder)
        redraw_figures(folder)
    shown = write_page(folder, out)
    typer.echo(f"{shown} experiments on {out.absolute().as_uri()}")


COMMANDS: dict[str, Callable[..., None]] = {"experiment report": experiment_report}

"""A progress bar on standard error for commands that start or measure brokers.

Nothing is drawn if standard error is not a terminal. The bar is redrawn on progress only: a thread that redraws it
would take CPU time from the measured brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Yields a function that shows progress: the name of the task, the steps done, and the total of steps."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, console=console, transient=True, auto_refresh=False, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=None)

        def show(description: str, done: int, total: int) -> None:
            bar.update(task, description=description, completed=done, total=total, refresh=True)

        yield show

"""Progress bars on standard error for long commands.

Nothing is drawn if standard error is not a terminal. A bar is redrawn on progress only: a thread that redraws it would
take CPU time from the measured work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

ShowProgress: TypeAlias = Callable[[str, int, int], None]
"""Shows progress: a description of the task, the steps done, and the total of steps."""


def ignore_progress(_description: str, _done: int, _total: int) -> None:
    """Shows nothing."""


@contextmanager
def progress_bar() -> Iterator[ShowProgress]:
    """A bar with a spinner and the number of steps. It disappears at the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with _bar(*columns, is_transient=True) as bar:
        yield _one_task(bar)


@contextmanager
def elapsed_time_bar() -> Iterator[ShowProgress]:
    """A bar with the elapsed time. It stays at the end."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    with _bar(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()) as bar:
        yield _one_task(bar)


@contextmanager
def remaining_time_bar() -> Iterator[ShowProgress]:
    """A bar with the number of steps, the elapsed and the remaining time. A new description starts a new task.

    The bar is hidden at the end, unless an exception ends the block.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with _bar(*columns) as bar:
        task = bar.add_task("", total=None)
        current = ""

        def show(description: str, done: int, total: int) -> None:
            nonlocal current
            if description != current:
                current = description
                bar.reset(task, description=description, total=total)
            bar.update(task, completed=done, refresh=True)

        yield show
        bar.update(task, visible=False, refresh=True)


def _bar(*columns: ProgressColumn, is_transient: bool = False) -> Progress:
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    return Progress(
        *columns, console=console, transient=is_transient, auto_refresh=False, disable=not console.is_terminal
    )


def _one_task(bar: Progress) -> ShowProgress:
    task = bar.add_task("", total=None)

    def show(description: str, done: int, total: int) -> None:
        bar.update(task, description=description, completed=done, total=total, refresh=True)

    return show

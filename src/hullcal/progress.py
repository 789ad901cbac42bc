"""Progress of long work: a bar on stderr, or the caller's own function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from hullcal._validation import refusal

Report = Callable[[int, int], None]


@contextmanager
def reporting(progress: bool | Report, what: str = "resamples") -> Iterator[Report | None]:
    """A function to be told (done, total), or None where nobody wants to know."""
    if callable(progress):
        yield progress
    elif progress not in (None, True, False):
        rule, came = "must be True, False or a function of (done, total)", f"{progress!r:.80}"
        raise refusal("progress", rule, came, "Pass for example `progress=True`.")
    elif not progress:
        yield None
    else:
        with bar() as shown:
            yield None if shown is None else partial(shown, what)


@contextmanager
def bar() -> Iterator[Callable[[str, float, float], None] | None]:
    """A bar to be told (what, done, total), or None where stderr could not show one."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

    console = Console(stderr=True)
    # A notebook is no terminal to rich, which draws a widget there. A terminal that knows no control
    # characters would show nothing.
    if console.is_dumb_terminal or not (console.is_terminal or console.is_jupyter):
        # Into a file or a pipe a bar would only write blank lines, and before rich 14.3 so does
        # one that is disabled.
        yield None
        return
    columns = ("{task.description}", BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task("")

        def report(what: str, done: float, total: float) -> None:
            # What has just begun is drawn at once: a short test may end before the next redraw.
            begins = shown.tasks[task].description != what
            shown.update(task, description=what, completed=done, total=total, refresh=begins)

        yield report

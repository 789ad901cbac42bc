"""Progress of long work: a bar on stderr, or the caller's own function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        columns = (what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        console = Console(stderr=True)
        # A notebook is no terminal to rich, which draws a widget there.
        if not (console.is_terminal or console.is_jupyter):
            # Into a file or a pipe a bar would only write blank lines, and before rich 14.3 so does
            # one that is disabled.
            yield None
            return
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(what)

            def report(done: int, total: int) -> None:
                bar.update(task, completed=done, total=total)

            yield report

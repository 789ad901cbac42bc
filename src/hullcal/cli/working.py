"""What is seen while the program works: a bar with the time left, and a word about compilation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import click

from hullcal.cli.ending import check_signals

Report = Callable[[str, int, int], None]

_NOTICE = "hullcal: compiling for this machine; that happens once, and takes some ten seconds"


@contextmanager
def working(*, quiet: bool) -> Iterator[Report]:
    """A function to be told (what, done, total); everything goes to stderr."""
    if quiet:
        yield lambda what, done, total: check_signals()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

    from hullcal._compiled.jit import when_compiling

    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with ExitStack() as stack:
        stack.enter_context(when_compiling(lambda: click.echo(_NOTICE, err=True)))
        if not console.is_terminal:
            # Into a file or a pipe a bar would only write blank lines, and before rich 14.3 so does
            # one that is disabled.
            yield lambda what, done, total: check_signals()
            return
        bar = stack.enter_context(Progress(*columns, console=console, transient=True))
        task = bar.add_task("")

        def report(what: str, done: int, total: int) -> None:
            check_signals()
            bar.update(task, description=what, completed=done, total=total)

        yield report

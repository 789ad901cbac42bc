"""What is seen while the program works: a bar with the time left, and a word about compilation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from hullcal.cli.ending import check_signals, say

Report = Callable[[str, int, int], None]

#: Seconds between two words where there is no bar; shorter work says nothing.
_SILENCE = 10.0

_NOTICE = "compiling for this machine; that happens once, and takes some ten seconds"


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
        stack.enter_context(when_compiling(lambda: say(_NOTICE)))
        if not console.is_terminal:
            # Into a file or a pipe a bar would only write blank lines, and before rich 14.3 so does
            # one that is disabled.
            yield _spoken()
            return
        bar = stack.enter_context(Progress(*columns, console=console, transient=True))
        task = bar.add_task("")

        def report(what: str, done: int, total: int) -> None:
            check_signals()
            bar.update(task, description=what, completed=done, total=total)

        yield report


def _spoken() -> Report:
    """A line now and then, for logs: how much is done, and of what."""
    last = time.monotonic()

    def report(what: str, done: int, total: int) -> None:
        nonlocal last
        check_signals()
        if time.monotonic() - last >= _SILENCE:
            last = time.monotonic()
            say(f"{what}: {done:,} of {total:,} ({done / total:.0%})")

    return report

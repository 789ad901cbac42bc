"""How the program works and ends: a bar, exit codes, one message, nothing left half-written."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TextIO

import click

from hullcal._validation import EngineError, HullcalWarning, InvalidInputError
from hullcal.progress import bar

DONE, REJECTED, BAD_INPUT, INTERNAL, STOPPED, INTERRUPTED = 0, 1, 2, 3, 4, 130


class _Stopped(BaseException):
    """SIGTERM, as an exception, so that every open file is closed or removed on the way out."""


#: Signals that came. An exception raised while a library calls back into Python may be swallowed, as
#: happens during compilation; work that goes on then asks here.
_received: list[type[BaseException]] = []
#: The folder with the journal of a command that can be continued.
_folders: list[Path] = []
#: Ctrl-C, and what asks to stop; a lost terminal, where there is such a signal, is like that.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, *filter(None, [getattr(signal, "SIGHUP", None)]))
#: What systems say of a disk, a quota or a limit that is full.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_signals() -> None:
    """Raise what a signal asked for, if it was lost on the way."""
    if _received:
        raise _received[0]


def resumable(folder: Path) -> None:
    """Name the folder that, if there is a journal in it in the end, makes the command resumable."""
    _folders.append(folder)


def nobody_reads(stream: TextIO) -> None:
    """Send what is still to be printed there nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def tell(words: str) -> None:
    """Print on stderr; that nobody listens there ends no work."""
    try:
        click.echo(words, err=True)
    except OSError:  # closed, or on a full disk
        nobody_reads(sys.stderr)


def say(message: str) -> None:
    """Tell something as the program itself."""
    tell(f"hullcal: {message}")


@contextmanager
def ending() -> Iterator[None]:
    """Turn whatever happens into an exit code and one message."""
    before = {each: signal.signal(each, _receive) for each in _SIGNALS}
    hook = sys.unraisablehook
    # A signal that a library's callback swallowed is in `_received`, and is no news to be printed.
    sys.unraisablehook = lambda what: (
        None if issubclass(what.exc_type, _Stopped | KeyboardInterrupt) else hook(what)
    )
    _received.clear()
    _folders.clear()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            warnings.simplefilter("always", HullcalWarning)
            yield
            if sys.stdout is not None:  # as it is where whoever called has closed it
                sys.stdout.flush()
            if _received:
                # Swallowed by a library, under a command that has no progress to ask during.
                sys.exit(_by_signal(_received[0], "that was noticed only when all was done"))
    except SystemExit as end:
        # Click says 1, which is "rejected" here, of a reader that has left.
        sys.exit(_unread() if end.code == REJECTED else end.code)
    except (Exception, KeyboardInterrupt, _Stopped) as error:
        sys.exit(_told(error))
    finally:
        sys.unraisablehook = hook
        for each, handler in before.items():
            signal.signal(each, handler)


def _told(error: BaseException) -> int:
    """Say what happened; its exit code."""
    if _received:
        # A signal in the midst of a library's work may come out as that library's own error.
        return _by_signal(_received[0], _left_behind())
    match error:
        case click.Abort() | KeyboardInterrupt():
            return _by_signal(KeyboardInterrupt, _left_behind())
        case click.ClickException():
            try:
                error.show()
            except OSError:  # what stays in the buffer would fail again when the interpreter ends
                nobody_reads(sys.stderr)
            return BAD_INPUT
        case InvalidInputError():
            say(str(error))
            return BAD_INPUT
        case BrokenPipeError():
            return _unread()
        case OSError():
            where = f": {error.filename}" if error.filename else _where_it_was()
            # A disk that fails is one to go on with where there is a journal; else it was the input's.
            stopped = error.errno in _FULL or (error.errno == errno.EIO and _has_journal())
            left = f"; {_left_behind()}" if stopped else ""
            say(f"{error.strerror or error}{where}{left}")
            return STOPPED if stopped else BAD_INPUT
        case BrokenExecutor() | EngineError():
            say(f"{str(error).rstrip('.')}; {_left_behind()}")
            return STOPPED
        case MemoryError():
            kept = f"; {_left_behind()}" if _has_journal() else ""
            say(f"not enough memory for this input; use fewer rows, members or processes{kept}")
            return STOPPED if kept else BAD_INPUT
    if os.environ.get("HULLCAL_DEBUG"):
        traceback.print_exception(error)
    say(
        f"internal error, {type(error).__name__}: {error}. This should not happen; please "
        "report it with the output under HULLCAL_DEBUG=1."
        + (f" Meanwhile, {_left_behind()}." if _has_journal() else "")
    )
    return INTERNAL


def _by_signal(kind: type[BaseException], left: str) -> int:
    interrupted = kind is KeyboardInterrupt
    say(f"{'interrupted' if interrupted else 'stopped by a signal'}; {left}")
    return INTERRUPTED if interrupted else STOPPED


def _unread() -> int:
    """Whoever read the output has had enough, as `head` does; that is no failure."""
    nobody_reads(sys.stdout)
    return DONE


def _where_it_was() -> str:
    """Libraries that ask for the current folder when they are loaded do not say what is missing."""
    try:
        os.getcwd()
    except OSError:
        return ": the current folder, which was removed; change to another"
    return ""


def _has_journal() -> bool:
    return any(folder.is_dir() and any(folder.rglob("journal.jsonl")) for folder in _folders)


def _left_behind() -> str:
    if not _has_journal():
        return "nothing was written"
    return f"finished blocks are in {_folders[0]}; continue with --resume"


def _receive(number: int, frame: FrameType | None) -> None:
    _received.append(KeyboardInterrupt if number == signal.SIGINT else _Stopped)
    raise _received[-1]


def _show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    if issubclass(category, HullcalWarning):
        say(f"note: {message}")


Report = Callable[[str, float, float], None]

#: Seconds between two words where there is no bar; shorter work says nothing.
_SILENCE = 10.0
#: The share of the work from which on the time that the rest takes can be told.
_SHARE = 0.02


@contextmanager
def working(*, quiet: bool) -> Iterator[Report]:
    """A function to be told (what, done, total); everything goes to stderr."""
    if quiet:
        yield lambda what, done, total: check_signals()
        return
    from hullcal._compiled.jit import when_compiling

    notice = "compiling for this machine; that happens once, and takes some ten seconds"
    with when_compiling(lambda: say(notice)), bar() as shown:
        tell_of = shown or _spoken()

        def report(what: str, done: float, total: float) -> None:
            check_signals()
            tell_of(what, done, total)

        yield report


def lasting(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("hours", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {max(seconds, 1.0):.0f} s"


def _spoken() -> Report:
    """A line now and then, for logs: what is computed, and how long the rest may take."""
    last = time.monotonic()
    first: tuple[float, float] | None = None

    def report(what: str, done: float, total: float) -> None:
        nonlocal last, first
        now = time.monotonic()
        if done <= 0:
            return
        # What came before the first result, such as compilation, says nothing of the rest.
        begin, before = first = first or (now, done)
        if now - last >= _SILENCE:
            last = now
            left = ""
            if now - begin >= _SILENCE and done >= _SHARE * total and done > before:
                rest = (now - begin) * (total - done) / (done - before)
                left = f", {lasting(rest)} left"
            say(f"{what}: {done / total:.0%} done{left}")

    return report

"""How is long work cut into pieces, and given to processes that may die?"""

from __future__ import annotations

import importlib
import itertools
import multiprocessing
import pickle
import signal
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager
from typing import Any, TypeVar

from hullcal._validation import InvalidInputError

__all__ = ["WorkerDied", "check_pickles", "cut", "in_any_order"]

#: Seconds a piece should take: long beside its way to a worker, short beside what a crash may cost.
_SECONDS = 1.0
_MOST = 100

Piece = TypeVar("Piece")
Found = TypeVar("Found")


class WorkerDied(BrokenExecutor):
    """A worker was killed, ran out of memory or was lost; what is in the journal is sound."""


def cut(n_datasets: int, seconds: float) -> list[tuple[int, int]]:
    """First data sets, and those after the last, of pieces of about a second.

    >>> cut(5, seconds=0.4)
    [(0, 2), (2, 4), (4, 5)]
    """
    size = min(_MOST, max(1, round(_SECONDS / seconds)))
    return [(first, min(first + size, n_datasets)) for first in range(0, n_datasets, size)]


def in_any_order(
    work: Callable[[Piece], Found],
    pieces: Sequence[Piece],
    *,
    n_jobs: int | None,
    backend: Any = None,
    prepare: Callable[[], None],
) -> Generator[Found, None, None]:
    """What `work` makes of every piece, in whatever order they are finished.

    Parameters
    ----------
    work : callable
    pieces : sequence
    n_jobs : int or None
        Processes; None leaves it to joblib's settings.
    backend : str or joblib backend, optional
        None leaves it to joblib's settings as well.
    prepare : callable
        Called before other processes are given something to do.

    Raises
    ------
    WorkerDied
        If a worker is lost, in the words of whatever backend.
    """
    import joblib

    how = {} if n_jobs is None else {"n_jobs": n_jobs}
    with _chosen(backend):
        parallel = joblib.Parallel(batch_size=1, **how)
        if parallel.n_jobs == 1:
            tasks = [joblib.delayed(work)(piece) for piece in pieces]
        else:
            tasks = [joblib.delayed(_in_worker)(work, piece) for piece in pieces]
            prepare()
        results: Any
        try:
            # Not in their own order: a slow piece must not keep others from the journal.
            results = joblib.Parallel(batch_size=1, return_as="generator_unordered", **how)(tasks)
        except ValueError:
            # Backends made from multiprocessing, as ray's is, give all results of a call at once.
            results = _in_rounds(parallel, tasks)
    try:
        while True:
            try:
                result = next(results)
            except StopIteration:
                return
            except Exception as error:
                if not _is_loss(error):
                    raise
                raise WorkerDied(
                    f"a worker was lost ({type(error).__name__}: {_first_line(error)})"
                ) from error
            yield result
    finally:
        with warnings.catch_warnings():
            # Whoever stops early knows that results are lost.
            warnings.simplefilter("ignore")
            results.close()


@contextmanager
def _chosen(backend: Any) -> Iterator[None]:
    """Let joblib use a backend, or the one of the user's own `joblib.parallel_config`."""
    import joblib

    if backend is None:
        yield
        return
    try:
        if backend == "ray":
            # joblib finds dask by itself; ray has to introduce itself.
            importlib.import_module("ray.util.joblib").register_ray()
        config = joblib.parallel_config(backend=backend)
    except (ValueError, ImportError, TypeError, AttributeError) as error:
        raise InvalidInputError(
            f"`backend` must be one that joblib knows and can start; got {backend!r} ({error}). "
            "Leave it out for processes on this machine."
        ) from error
    with config:
        yield


def _in_worker(work: Callable[[Piece], Found], piece: Piece) -> Found:
    """The work, where the process may be a worker's: the Ctrl-C of a terminal is for its parent."""
    worker = multiprocessing.current_process().name != "MainProcess"
    if worker and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return work(piece)


def _in_rounds(parallel: Any, tasks: Iterable[Any]) -> Iterator[Any]:
    waiting = iter(tasks)
    with parallel:
        while some := list(itertools.islice(waiting, 4 * max(1, parallel.n_jobs))):
            yield from parallel(some)


def check_pickles(**parts: Any) -> None:
    """Refuse what no process could be sent, before any is started; parts by their parameter."""
    from joblib.externals.loky.backend import reduction

    for parameter, part in parts.items():
        try:
            reduction.dumps(part)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise InvalidInputError(
                f"`{parameter}` {part.name} must be one that other processes can be sent; got {error}. "
                "Define it at the top of a module, or pass `n_jobs=1`."
            ) from error


def _is_loss(error: Exception) -> bool:
    """Whether an exception speaks of a lost worker, and not of the work."""
    lost = (BrokenExecutor, CancelledError, ConnectionError, EOFError, TimeoutError)
    cluster = type(error).__module__.partition(".")[0] in ("distributed", "ray")
    return isinstance(error, lost) or cluster


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0][:200]

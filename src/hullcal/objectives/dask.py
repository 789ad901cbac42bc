"""The workers of a Dask cluster hold the rows and add up; the client searches.

No chunking and no number of workers changes a bit of a result: the client adds sums over the same ranges
of rows in the same order as one machine does.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import hullcal
from hullcal._validation import (
    EngineError,
    InvalidInputError,
    check_classes,
    check_labels,
    check_probs,
    check_set_and_labels,
    label_array,
    order_that_fits,
    refusal,
)
from hullcal.distinct import Distinct, ranks, traits
from hullcal.io.stores import Store, open_store
from hullcal.measures import Measure
from hullcal.notes import Note, merged
from hullcal.objectives.base import Floats, Objective
from hullcal.objectives.chunked import Chunked, Job, Passes, Rows, range_size
from hullcal.objectives.opening import LabelledSet, comes_from
from hullcal.sets import ClassifierSet
from hullcal.threads import blocks
from hullcal.words import printable

#: First and last row, the last not included.
Bounds = tuple[int, int]
Answer = TypeVar("Answer")

#: Seconds to reach a scheduler, and to wait for the first of its workers.
_CONNECTING, _WORKERS = 10, 60
#: Seconds between looks at the cluster while an answer is waited for, and looks without a worker.
_LOOK, _LOOKS = 10.0, 6
#: Bytes of a chunk, and of answers that the client takes at a time.
_CHUNK, _TAKEN = 2**27, 2**26
#: A job of more bytes travels once, and not with the task of every chunk.
_SMALL = 2**16
_AGAIN = "The same call with the same seed gives the result that this one would have given."


# -- which cluster --------------------------------------------------------------------------------


@contextmanager
def connected(client: Any = None) -> Iterator[Any]:
    """The client given, the current one, or one of processes that end with the context."""
    distributed = _distributed()
    with ExitStack() as started:
        if client is None:
            with suppress(ValueError):
                client = distributed.get_client()
        if client is None:
            client = started.enter_context(local_cluster())
        if client.asynchronous:
            rule = "must be a client that waits for its results"
            repair = "Pass a `distributed.Client` with `asynchronous=False`."
            raise refusal("engine", rule, "an asynchronous client", repair)
        _check_workers(client)
        yield client


def _distributed() -> Any:
    try:
        import dask.array  # noqa: F401
        import distributed
    except ImportError as error:
        rule = 'must be "local" without the packages dask and distributed'
        repair = "Install them with `pip install dask distributed`."
        raise refusal("engine", rule, f'"dask" ({error})', repair) from error
    return distributed


@contextmanager
def at_address(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address."""
    distributed = _distributed()

    async def answers() -> None:
        # A client would wait for ever for the first words of whoever accepts and stays silent.
        how = distributed.Security().get_connection_args("client")
        knock = distributed.comm.connect(address, timeout=_CONNECTING, **how)
        (await asyncio.wait_for(knock, _CONNECTING)).abort()

    try:
        asyncio.run(answers())
        client = distributed.Client(address, timeout=_CONNECTING, set_as_default=False)
    except Exception as error:  # whatever is there may say anything
        rule = "must be the address of a running scheduler"
        reason = printable(str(error)[:200]) or f"no answer within {_CONNECTING} seconds"
        came = f"{address!r}, where there is none ({type(error).__name__}: {reason})"
        repair = "Start one with `dask scheduler`, and pass the address that it prints."
        raise refusal("scheduler", rule, came, repair) from error
    with client:
        yield client


@contextmanager
def local_cluster(n_workers: int | None = None) -> Iterator[Any]:
    """Processes on this machine, one thread each, one for each core unless their number is given.

    Whoever can connect can run code as this user, so that takes a key that is made for this cluster.
    """
    distributed = _distributed()  # refused first where it is not installed
    import dask

    try:
        security = distributed.Security.temporary()
    except ImportError as error:
        rule = "must be a client where the package cryptography is missing"
        repair = "Install it with `pip install cryptography`; processes of ours talk by TLS only."
        raise refusal("engine", rule, f"a cluster to start here ({error})", repair) from error
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pages: dict[str, list[str]] = {
        f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")
    }
    try:
        with dask.config.set(pages):
            cluster = distributed.LocalCluster(
                n_workers=n_workers or cores or 1,
                threads_per_worker=1,
                processes=True,
                security=security,
                # None would still listen for readers of pages, on a port that others may have or want.
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                silence_logs=logging.CRITICAL,
                preload=__name__,
            )
    except (OSError, RuntimeError, TimeoutError) as error:
        raise EngineError(
            f"no worker processes could be started ({type(error).__name__}: {str(error)[:200]}). "
            'A script that starts some must do its work below `if __name__ == "__main__":`.'
        ) from error
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the client, which ends its workers; a terminal sends it to all of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _check_workers(client: Any) -> None:
    """Refuse a cluster without workers, or with workers that would not understand us."""
    try:
        client.wait_for_workers(1, timeout=_WORKERS)
    except TimeoutError as error:
        raise EngineError(
            f"the scheduler at {client.scheduler.address} has had no worker for {_WORKERS} seconds. "
            "Start some with `dask worker`; the same call will then do."
        ) from error

    def version() -> str | None:
        # A local function travels whole: a machine without hullcal could not find it by its name.
        try:
            from hullcal import __version__
        except ImportError:
            return None
        return __version__

    found = client.run(version)
    found["the scheduler"] = client.run_on_scheduler(version)
    for place, there in found.items():
        if there != hullcal.__version__:
            came = f"{'no hullcal' if there is None else f'hullcal {there}'} at {place}"
            rule = "must be a cluster that has the same hullcal"
            repair = f"Install `hullcal=={hullcal.__version__}` on every machine of the cluster."
            raise refusal("engine", rule, came, repair)


# -- what users pass ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Input:
    """Predictions of known shape, and labels, as far as they can be checked without reading them."""

    #: (n_samples, n_members, n_classes)
    shape: tuple[int, int, int]
    #: An array, a dask array, or a store that workers read for themselves.
    probs: Any
    #: Checked positions, a dask array, or None if the store has them.
    labels: Any
    #: How workers are to understand both; None if they are checked.
    reading: dict[str, Any] | None
    members: tuple[str, ...] | None = None
    #: The set, if it is in the client's memory.
    classifiers: ClassifierSet | None = None

    @classmethod
    def of(cls, probs: Any, labels: Any, classes: Any, flags: dict[str, bool]) -> _Input:
        several = isinstance(probs, list | tuple) and len(probs) > 0
        if several and all(comes_from("dask", member) for member in probs):
            import dask.array

            for member in probs:
                _check_known(member, "probs")
            if len({member.shape for member in probs}) > 1:
                came = ", ".join(str(member.shape) for member in probs[:3])
                rule, repair = "must be members of one shape", "Pass predictions of the same rows."
                raise refusal("probs", rule, f"shapes {came}", repair)
            probs = dask.array.stack(probs, axis=1)
        if isinstance(probs, str | os.PathLike):
            probs = open_store(probs)
        if comes_from("dask", probs):
            _check_known(probs, "probs")
        elif not isinstance(probs, Store):
            here, truth = ClassifierSet.with_labels(probs, labels, classes=classes, **flags)
            return cls(here.probs.shape, here.probs, truth, None, here.members, here)
        members = probs.members if isinstance(probs, Store) else None
        stored = isinstance(probs, Store) and probs.labelled and labels is None
        if isinstance(probs, Store) and classes is None:
            classes = probs.classes
        _check_shape(probs.shape, probs.dtype, flags)
        n_samples, *middle, n_classes = probs.shape
        shape = n_samples, *(middle or [1]), n_classes
        reading = {"classes": check_classes(classes, n_classes), **flags}
        if not stored:
            lazy = comes_from("dask", labels)
            if lazy:
                _check_known(labels, "labels")
            else:
                labels = label_array(labels)
            _check_length(probs.shape, labels.shape)
            if not lazy:
                sizes = {"n_samples": n_samples, "n_classes": n_classes}
                labels = check_labels(labels, **sizes, classes=classes)
                reading["classes"] = None
        return cls(shape, probs, labels, reading, members)

    def chunks(self, client: Any) -> tuple[list[Any], list[Bounds]]:
        """Checked chunks of whole ranges, on their way to the workers, and their rows."""
        import dask

        n_samples, n_members, n_classes = self.shape
        size = range_size(n_samples)
        if comes_from("dask", self.probs):
            wanted = int(max(self.probs.chunks[0]))
        else:
            # Of a moderate size, and enough of them for all threads.
            n_threads = sum(client.nthreads().values())
            row = n_members * n_classes * self.probs.dtype.itemsize
            wanted = min(_CHUNK // row, -(-n_samples // (2 * n_threads)))
        step = size * max(1, round(wanted / size))
        bounds = blocks(0, n_samples, step)
        probs, labels = (_parts(each, client, bounds) for each in (self.probs, self.labels))
        checked = partial(_checked, n_samples=n_samples, reading=self.reading)
        # As arguments of their tasks arrays are kept by the scheduler; scattered, they die with a worker.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            # One by one: a call for all would send all arrays to the scheduler at once.
            parts = zip(probs, labels, bounds, strict=True)
            return [client.submit(checked, *part, pure=False) for part in parts], bounds


def _parts(array: Any, client: Any, bounds: Sequence[Bounds]) -> list[Any]:
    """What stands for the rows of each chunk: a future, an array, or the store that has them."""
    if comes_from("dask", array):
        rows = tuple(last - first for first, last in bounds)
        # Where it is cut so already, nothing moves.
        whole = array.rechunk((rows, *((length,) for length in array.shape[1:])))
        return list(client.compute(list(whole.to_delayed().ravel())))
    if array is None or isinstance(array, Store):
        return [array] * len(bounds)
    return [array[first:last] for first, last in bounds]


def _check_known(array: Any, name: str) -> None:
    import dask.array

    if not isinstance(array, dask.array.Array):
        came = f"a {type(array).__module__} {type(array).__name__}"
        repair = "A table of dask's has `to_dask_array(lengths=True)`."
        raise refusal(name, "must be an array", came, repair)
    if any(np.isnan(length) for length in array.shape):
        came, repair = f"shape {array.shape}", "Call its `compute_chunk_sizes()` first."
        raise refusal(name, "must be an array of known shape", came, repair)


def _check_shape(shape: tuple[int, ...], dtype: np.dtype[Any], flags: dict[str, bool]) -> None:
    """Have the usual checks refuse what no look at the values could mend."""
    useless = len(shape) not in (2, 3) or 0 in shape or shape[-1] == 1
    if useless or dtype.kind not in "fiub":
        check_probs(np.broadcast_to(np.zeros((), dtype=dtype), shape))
    if any(flag is not False for flag in flags.values()):
        share = 1 / shape[-1]
        value = share if flags.get("normalize") is True else np.log(share)
        check_probs(np.full((1, shape[-1]), value), **flags)


def _check_length(probs: tuple[int, ...], labels: tuple[int, ...]) -> None:
    if labels[:1] == probs[:1]:
        return
    rule = "and `labels` must have the same number of samples, on the first axis"
    came = f"`probs` of shape {probs} and `labels` of shape {labels}"
    order = order_that_fits(probs, labels[0], ()) if labels else ""
    same = "Pass predictions and labels of the same rows."
    raise refusal("probs", rule, came, f"The order that fits is `{order}`." if order else same)


# -- what workers do ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Checked predictions and labels of consecutive whole ranges."""

    rows: Rows
    notes: tuple[Note, ...]

    def __sizeof__(self) -> int:
        # How a worker knows when to move chunks from memory to disk.
        return int(self.rows.probs.nbytes + self.rows.labels.nbytes)


def _checked(
    probs: Any, labels: Any, bounds: Bounds, n_samples: int, reading: dict[str, Any] | None
) -> Chunk:
    """A chunk that was looked at; a worker reads that of a store for itself."""
    first, last = bounds
    if reading is None:
        return Chunk(Rows(probs, labels, first), ())
    if isinstance(probs, Store):
        probs, stored = probs.read(first, last)
        labels = stored if labels is None else labels
    try:
        predictions, truth = check_set_and_labels(probs, labels, **reading)
    except InvalidInputError as error:
        if last - first == n_samples:
            raise
        place = f"in the rows from {first} to {last - 1}, counted from {first}: "
        raise InvalidInputError(place + str(error)) from None
    return Chunk(Rows(np.asarray(predictions.probs), truth, first), predictions.notes)


def _summary(chunk: Chunk) -> tuple[tuple[Note, ...], list[int]]:
    """What only all chunks together can tell: notes, and which members differ."""
    return chunk.notes, ranks(chunk.rows.probs)


def _traits(chunk: Chunk, positions: NDArray[np.int64]) -> Floats:
    """The chunk's share of the sums that number the distinct members."""
    return traits(chunk.rows.probs, positions)


def _sums(chunk: Chunk, job: Job, size: int) -> Floats:
    """The job's sums over each range of the chunk, (n_ranges, *job.shape)."""
    rows, sums = chunk.rows, []
    for begin in range(0, len(rows.labels), size):
        here = slice(begin, begin + size)
        sums.append(job.over(Rows(rows.probs[here], rows.labels[here], rows.first + begin)))
    return np.stack(sums)


def _itself(value: Any) -> Any:
    """What came. As a task's result it can be made again, which data that were scattered cannot."""
    return value


# -- what the client asks -------------------------------------------------------------------------


class DaskSet(LabelledSet, Passes):
    """Predictions and labels on workers, checked there, which pass over their chunks."""

    fits_memory = False

    def __init__(self, given: _Input, client: Any) -> None:
        self.n_samples, self.n_members, self.n_classes = given.shape
        self.members, self.classifiers = given.members, given.classifiers
        self.client = client
        self._range_size = range_size(self.n_samples)
        self.n_returned = -(-self.n_samples // self._range_size)
        self._futures, self._bounds = given.chunks(client)

    def describe(self, given: _Input) -> None:
        """Find out what only all chunks together can tell."""
        if given.classifiers is not None:
            self.labels, self.notes = given.labels, given.classifiers.notes
            self.distinct = given.classifiers.distinct
        else:
            notes, parts = zip(*self.ask(_summary), strict=True)
            found = Distinct.ranked(parts)
            shares = self.ask(_traits, positions=found.positions)
            self.distinct = found.numbered(np.sum(list(shares), axis=0))
            self.notes = merged(notes, self.n_samples * self.n_members)
        self.positions = self.distinct.positions

    def check(self, measure: Measure, *, in_memory: bool) -> None:
        if in_memory:
            raise InvalidInputError(
                'engine "dask" has no predictions in memory, which the null or the minimizer needs for '
                f'measure `{measure.name}`. Use null="recentered" or "maximized" and '
                'minimizer="steepest", or engine="local" on data that fit into memory.'
            )
        if not measure.streams():
            raise InvalidInputError(
                f'engine "dask" adds up over rows, which measure `{measure.name}` does not. Use '
                '"ece_conf", "ece_cwise", their smooth forms or "skce_ul" with a bandwidth that is a '
                'number, or engine="local" on data that fit into memory.'
            )

    def passes(self, n_jobs: int) -> DaskSet:
        return self

    def objective(self, measure: Measure, *, in_memory: bool, n_jobs: int) -> Objective:
        return Chunked.of(measure, self.distinct.copies, self)

    def ask(
        self, question: Callable[..., Any], at_a_time: int = 1, **options: Any
    ) -> Iterator[Any]:
        """Answers of all chunks; the first error by rows is raised, not the first by time."""
        asked: list[Any] = []
        try:
            with self._explained():
                asked = self.client.map(question, self._futures, pure=False, **options)
                while asked:
                    for i, future in enumerate(asked[:at_a_time]):
                        error = self._patiently(partial(future.exception, timeout=_LOOK))
                        if isinstance(error, InvalidInputError):
                            raise error
                        if error is not None:
                            raise self._told(error, asked[i:]) from error
                    yield from self._patiently(partial(self._gathered, asked[:at_a_time]))
                    # Answers that were taken need not be kept by the workers.
                    del asked[:at_a_time]
        finally:
            self._give_up(asked)

    def total(self, job: Job) -> Floats:
        """The job's sums, added by the client range by range, as one machine would."""
        size, (first, last) = self._range_size, self._bounds[0]
        expected = -(-(last - first) // size) * 8 * int(np.prod(job.shape))
        with self._explained():
            large = len(pickle.dumps(job, protocol=5)) > _SMALL
            sent = self.client.submit(_itself, job, pure=False) if large else job
        total = np.zeros(job.shape)
        for ranges in self.ask(_sums, max(1, _TAKEN // max(1, expected)), job=sent, size=size):
            for sums in ranges:
                total += sums
        return total

    def release(self) -> None:
        """Let the workers forget the chunks, also those that they have not made yet."""
        self._give_up(self._futures)

    def _gathered(self, futures: list[Any]) -> list[Any]:
        # Those whose worker has died since are made again, if there is a worker to do that.
        gather = partial(self.client.gather, futures, asynchronous=True)
        found: list[Any] = self.client.sync(gather, callback_timeout=_LOOK)
        return found

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        """Ask until there is an answer, for as long as there is somebody to wait for."""
        without = 0
        while without < _LOOKS:
            try:
                return ask()
            except TimeoutError:
                without = 0 if self.client.nthreads() else without + 1
        raise EngineError(
            f"the cluster has had no worker for {_LOOK * _LOOKS:.0f} seconds. {_AGAIN}"
        )

    def _told(self, error: BaseException, asked: list[Any]) -> EngineError:
        """What went wrong with the first of these chunks, as a user should hear it."""
        from distributed import KilledWorker

        bounds = self._bounds[-len(asked) :]
        if not isinstance(error, KilledWorker):
            reason = " ".join(str(error).split())[:300]
            return EngineError(
                f"{_named(bounds[:1])} could not be worked on: {type(error).__name__}: {reason}. If "
                f"that can be mended, do so. {_AGAIN}"
            )
        # What else a worker had at hand is suspected with what killed it, and told apart by none.
        errors = [self._patiently(partial(each.exception, timeout=_LOOK)) for each in asked]
        killed = [isinstance(each, KilledWorker) for each in errors]
        return EngineError(
            f"{error.allowed_failures + 1} workers died one after the other over "
            f"{_named(list(compress(bounds, killed)))}, probably for want of memory. Give workers more "
            f"of it, or a dask array smaller chunks. {_AGAIN}"
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what a lost scheduler leads to into one error."""
        from distributed import CancelledError as Cancelled

        try:
            yield
        except (InvalidInputError, EngineError):
            raise
        except Exception as error:
            # A closed client raises whatever its state leads to.
            lost = isinstance(error, CancelledError | Cancelled | OSError | TimeoutError)
            if not lost and self.client.status == "running":
                raise
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise EngineError(
                f"the connection to the scheduler of the cluster was lost ({reason}). {_AGAIN}"
            ) from error

    def _give_up(self, futures: list[Any]) -> None:
        # There may be nobody left to tell, and that has been said already.
        with suppress(Exception):
            if futures and self.client.status == "running":
                self.client.cancel(futures, force=False)
        futures.clear()


def _named(bounds: Sequence[Bounds]) -> str:
    shown = " or ".join(f"rows {first} to {last - 1}" for first, last in bounds[:4])
    return shown + (f" or {len(bounds) - 4} more chunks" if len(bounds) > 4 else "")


@contextmanager
def on_workers(
    probs: Any, labels: Any, *, client: Any, classes: Any = None, **flags: bool
) -> Iterator[DaskSet]:
    """Check the data on the workers and keep them there for as long as the context lasts."""
    given = _Input.of(probs, labels, classes, flags)
    with connected(client) as own:
        data = DaskSet(given, own)
        try:
            data.describe(given)
            yield data
        finally:
            data.release()

"""Chunks that workers hold, questions to all of them, and what to say if no answer comes."""

from __future__ import annotations

import pickle
from asyncio import run_coroutine_threadsafe
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future as Waiting
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import InvalidInputError
from hullcal.engines._dask_chunks import Summary, itself, summary, sums_over, traits_of
from hullcal.engines._dask_origins import Bounds
from hullcal.engines.engine import EngineError
from hullcal.engines.jobs import Job
from hullcal.engines.streamed import Passes

Floats = NDArray[np.float64]
Answer = TypeVar("Answer")

#: Bytes of answers that the client takes at a time.
_TAKEN = 2**26
#: A job of more bytes travels once, and not with the task of every chunk.
_SMALL = 2**16
#: Seconds between looks at the cluster while an answer is waited for, and looks without a worker.
_LOOK, _LOOKS = 10.0, 6
_AGAIN = "The same call with the same seed gives the result that this one would have given."


class Chunks:
    """Futures of chunks, in the order of rows."""

    def __init__(self, client: Any, futures: Sequence[Any], bounds: Sequence[Bounds]) -> None:
        self._client, self._futures, self._bounds = client, list(futures), list(bounds)

    def __len__(self) -> int:
        return len(self._bounds)

    def summaries(self) -> Iterator[Summary]:
        """What each chunk has to say; the first error by rows is raised, not the first by time."""
        return self._ask(summary, 1)

    def traits(self, positions: NDArray[np.int64]) -> Iterator[Floats]:
        """Each chunk's share of the sums that number the distinct members."""
        return self._ask(traits_of, 1, positions=positions)

    def sums(self, job: Job, size: int) -> Iterator[Floats]:
        """A job's sums over each range, chunk by chunk."""
        longest = max(last - first for first, last in self._bounds)
        expected = -(-longest // size) * 8 * int(np.prod(job.shape))
        with self._explained():
            large = len(pickle.dumps(job, protocol=5)) > _SMALL
            sent = self._client.submit(itself, job, pure=False) if large else job
        return self._ask(sums_over, max(1, _TAKEN // max(1, expected)), job=sent, size=size)

    def release(self) -> None:
        """Let the workers forget the chunks, also those that they have not made yet."""
        self._give_up(self._futures)
        self._futures = []

    def _ask(self, question: Callable[..., Any], at_a_time: int, **arguments: Any) -> Iterator[Any]:
        return self._ask_of(self._futures, question, at_a_time, **arguments)

    def _ask_of(
        self, futures: list[Any], question: Callable[..., Any], at_a_time: int, **arguments: Any
    ) -> Iterator[Any]:
        """Ask the last chunks of all."""
        with self._explained():
            asked = self._client.map(question, futures, pure=False, **arguments)
        try:
            while asked:
                with self._explained():
                    answers = self._answers(asked, at_a_time)
                # Answers that were taken need not be kept by the workers.
                del asked[:at_a_time]
                yield from answers
        finally:
            self._give_up(asked)

    def _answers(self, futures: list[Any], at_a_time: int) -> list[Any]:
        """The next answers; these futures are the last ones of all chunks."""
        bounds = self._bounds[-len(futures) :]
        for future, rows in zip(futures[:at_a_time], bounds, strict=False):
            error = self._error(future)
            if error is not None:
                raise self._told(error, rows, futures)
        return self._gathered(futures[:at_a_time])

    def _told(self, error: BaseException, rows: Bounds, futures: list[Any]) -> Exception:
        """What went wrong with a chunk, as a user should hear it."""
        from distributed import KilledWorker

        if isinstance(error, InvalidInputError):
            return error
        if not isinstance(error, KilledWorker):
            reason = " ".join(str(error).split())[:300]
            told = EngineError(
                f"{_named([rows])} could not be worked on: {type(error).__name__}: {reason}. If "
                f"that can be mended, do so. {_AGAIN}"
            )
        else:
            # What else a worker had at hand is suspected with what killed it, and told apart by none.
            bounds = zip(futures, self._bounds[-len(futures) :], strict=True)
            suspects = [
                rows for each, rows in bounds if isinstance(self._error(each), KilledWorker)
            ]
            told = EngineError(
                f"{error.allowed_failures + 1} workers died one after the other over "
                f"{_named(suspects)}, probably for want of memory. Give workers more of it, or a "
                f"dask array smaller chunks. {_AGAIN}"
            )
        told.__cause__ = error
        return told

    def _error(self, future: Any) -> BaseException | None:
        """What became of a task, once it has ended."""

        def error() -> BaseException | None:
            found: BaseException | None = future.exception(timeout=_LOOK)
            return found

        return self._patiently(error)

    def _gathered(self, futures: list[Any]) -> list[Any]:
        """Answers that are there; those whose worker has died since are waited for once more."""
        coming = self._client.gather(futures, asynchronous=True)
        waiting: Waiting[list[Any]] = run_coroutine_threadsafe(
            coming, self._client.loop.asyncio_loop
        )

        def answers() -> list[Any]:
            if not wait([waiting], timeout=_LOOK).done:
                raise TimeoutError
            try:
                return waiting.result()
            except TimeoutError as error:
                raise self._lost(error) from error

        try:
            return self._patiently(answers)
        finally:
            waiting.cancel()

    def _patiently(self, ask: Callable[[], Answer]) -> Answer:
        """Ask until there is an answer, for as long as there is somebody to wait for."""
        without = 0
        while without < _LOOKS:
            try:
                return ask()
            except TimeoutError:
                without = 0 if self._client.nthreads() else without + 1
        raise EngineError(
            f"the cluster has had no worker for {_LOOK * _LOOKS:.0f} seconds. {_AGAIN}"
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what a lost scheduler leads to into one error."""
        from concurrent.futures import CancelledError as Cancelled

        from distributed import CancelledError

        try:
            yield
        except (InvalidInputError, EngineError):
            raise
        except (CancelledError, Cancelled, OSError, TimeoutError) as error:
            raise self._lost(error) from error
        except Exception as error:
            # A closed client raises whatever its state leads to.
            if self._client.status == "running":
                raise
            raise self._lost(error) from error

    def _lost(self, error: BaseException) -> EngineError:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        return EngineError(
            f"the connection to the scheduler of the cluster was lost ({reason}). {_AGAIN}"
        )

    def _give_up(self, futures: list[Any]) -> None:
        # There may be nobody left to tell, and that has been said already.
        with suppress(Exception):
            if futures and self._client.status == "running":
                self._client.cancel(futures, force=False)
        futures.clear()


def _named(bounds: Sequence[Bounds]) -> str:
    shown = " or ".join(f"rows {first} to {last - 1}" for first, last in bounds[:4])
    return shown + (f" or {len(bounds) - 4} more chunks" if len(bounds) > 4 else "")


class DaskPasses(Passes):
    """Workers pass over their chunks; the client adds, range by range, as one machine would."""

    def __init__(
        self, chunks: Chunks, positions: NDArray[np.int64], shape: tuple[int, int, int], size: int
    ) -> None:
        self.n_samples, _, self.n_classes = shape
        self.positions = positions
        self._chunks, self._size = chunks, size
        self.n_returned = -(-self.n_samples // size)

    def total(self, job: Job) -> Floats:
        total = np.zeros(job.shape)
        for ranges in self._chunks.sums(job, self._size):
            for sums in ranges:
                total += sums
        return total

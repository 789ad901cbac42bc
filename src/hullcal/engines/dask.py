"""The engine of many machines: workers of a Dask cluster hold the rows, the client searches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hullcal._validation import InvalidInputError, check_integer, refusal
from hullcal.engines._dask_cluster import connected
from hullcal.engines._dask_members import distinct_members
from hullcal.engines._dask_origins import Origin, origin_of
from hullcal.engines._dask_passes import Chunks, DaskPasses
from hullcal.engines._dask_words import merged
from hullcal.engines.engine import Data, Engine, EngineError, Problem
from hullcal.engines.jobs import range_size
from hullcal.engines.streamed import Streamed
from hullcal.measures import Measure

__all__ = ["Dask", "EngineError"]


@dataclass(frozen=True)
class Dask(Engine):
    """The workers of a Dask cluster; p-values are those of one machine.

    No chunking and no number of workers changes a bit of a result, and one machine finds the same bits
    in large data. Measures have to add up over rows: the ECEs and `skce_ul` do, `hl_cwise` and the
    other SKCE estimators do not.

    With this engine `probs` can be a dask array, chunked in any way, or the path of a Zarr store or
    of a folder of `.npy`, `.npz` or Parquet shards, which workers read for themselves; with
    ``labels=None`` the labels are those stored beside the predictions. Other arrays are sent to the
    workers. Neither argument: the current client if there is one, and otherwise a process for each
    core of this machine, which a script must start below ``if __name__ == "__main__":``.

    Parameters
    ----------
    scheduler : str, optional
        Address of a running scheduler, as ``tcp://10.0.0.1:8786``.
    n_workers : int, optional
        Start that many processes on this machine, and stop them at the end.
    """

    name: ClassVar[str] = "dask"
    scheduler: str | None = None
    n_workers: int | None = None

    def __post_init__(self) -> None:
        if self.scheduler is not None and self.n_workers is not None:
            rule = "and `n_workers` exclude each other"
            came = f"{self.scheduler!r} and {self.n_workers!r}"
            repair = "Use the workers at an address, or start some here."
            raise refusal("scheduler", rule, came, repair)
        if self.scheduler is not None and not isinstance(self.scheduler, str):
            repair = "Pass one such as `tcp://10.0.0.1:8786`."
            raise refusal("scheduler", "must be an address", repr(self.scheduler), repair)
        if self.n_workers is not None:
            object.__setattr__(self, "n_workers", check_integer(self.n_workers, "n_workers", 1))

    @contextmanager
    def open(
        self, probs: Any, labels: Any, *, classes: Any, from_logits: bool, from_log: bool
    ) -> Iterator[Data]:
        origin = origin_of(
            probs, labels, classes=classes, from_logits=from_logits, from_log=from_log
        )
        with connected(self.scheduler, self.n_workers) as client:
            size = range_size(origin.shape[0])
            chunks = _sent(origin, client, size)
            try:
                yield DaskData(origin, chunks, size)
            finally:
                chunks.release()


def _sent(origin: Origin, client: Any, size: int) -> Chunks:
    """Chunks of whole ranges, on their way to the workers."""
    n_samples = origin.shape[0]
    wanted = origin.rows_at_a_time(sum(client.nthreads().values()))
    step = size * max(1, round(wanted / size))
    bounds = [(first, min(first + step, n_samples)) for first in range(0, n_samples, step)]
    return Chunks(client, origin.chunks(client, bounds), bounds)


class DaskData(Data):
    """Predictions and labels on workers, checked there."""

    fits_memory = False

    def __init__(self, origin: Origin, chunks: Chunks, size: int) -> None:
        self.n_samples, self.n_members, self.n_classes = self._shape = origin.shape
        self.members, self.notes = origin.members, origin.notes
        self.classifiers, self.labels = origin.here
        self._chunks, self._size = chunks, size
        if origin.distinct is not None:
            self._distinct = origin.distinct
            return
        summaries = list(chunks.summaries())
        found = distinct_members(one.order for one in summaries)
        self._distinct = found.numbered(np.sum(list(chunks.traits(found.positions)), axis=0))
        self.notes += merged([one.notes for one in summaries], self.n_samples * self.n_members)

    def check(self, measure: Measure, *, in_memory: bool, draws_rows: bool) -> None:
        if in_memory:
            raise InvalidInputError(
                'engine "dask" has no predictions in memory, which the null or the minimizer needs for '
                f'measure `{measure.name}`. Use null="recentered", "refit" or "maximized" and '
                'minimizer="steepest", or engine="local" on data that fit into memory.'
            )
        if not measure.streams():
            raise InvalidInputError(
                f'engine "dask" adds up over rows, which measure `{measure.name}` does not. Use '
                '"ece_conf", "ece_cwise", their smooth forms or "skce_ul" with a bandwidth that is a '
                'number, or engine="local" on data that fit into memory.'
            )

    def problem(self, measure: Measure, *, in_memory: bool, n_jobs: int) -> Problem:
        passes = DaskPasses(self._chunks, self._distinct.positions, self._shape, self._size)
        return Problem(Streamed.of(measure, passes), self._distinct)

"""A cluster of real processes, data for it, and stores that misbehave on its workers."""

import logging
import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from distributed import Client, LocalCluster

from hullcal.io.stores import Store
from hullcal.objectives import chunked, dask, memory, opening

#: As few rows as stay together when pairs of rows are drawn.
RANGE = 2048


@contextmanager
def processes(n_workers):
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def use_small_ranges(monkeypatch):
    """Several ranges of few rows, and passes over them also where data are small."""
    for module in (dask, chunked):
        monkeypatch.setattr(module, "range_size", lambda n_samples: RANGE)
    monkeypatch.setattr(opening, "_MANY_ROWS", 0)
    monkeypatch.setattr(opening, "_LARGE", 0)
    # Convergence takes many passes, and two kinds of sums would do with few as well.
    for module in (memory, chunked):
        monkeypatch.setattr(module, "EM_ITERATIONS", 9)


def at_pass(monkeypatch, number, act):
    """Do something just before a pass over the rows; the list tells how many passes began."""
    total, begun = dask.DaskSet.total, []

    def counted(self, job):
        begun.append(job)
        if len(begun) == number:
            act()
        return total(self, job)

    monkeypatch.setattr(dask.DaskSet, "total", counted)
    return begun


def predictions(n_samples=7000, n_members=4, n_classes=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(n_classes), size=(n_samples, n_members)).astype(dtype)
    labels = (probs[:, 0].cumsum(axis=1) < rng.random((n_samples, 1))).sum(axis=1)
    return probs, np.minimum(labels, n_classes - 1)


@dataclass(frozen=True, kw_only=True)
class Given(Store):
    """Arrays that pretend to be files."""

    probs: Any
    truth: Any

    @classmethod
    def of(cls, probs, labels, **more):
        size = {"shape": probs.shape, "dtype": probs.dtype, "labelled": True}
        return cls(probs=probs, truth=labels, **size, **more)

    def read(self, first, last):
        return self.probs[first:last], self.truth[first:last]


@dataclass(frozen=True, kw_only=True)
class Deadly(Given):
    """A store whose reader dies when it comes to a certain row."""

    row: int

    def read(self, first, last):
        if first <= self.row < last:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(first, last)


@dataclass(frozen=True, kw_only=True)
class Failing(Given):
    """A store that cannot be read."""

    def read(self, first, last):
        raise RuntimeError("the tape broke")


# -- stores ---------------------------------------------------------------------------------------

CUTS = (0, 1, 2500, 2500, 6000)


def shards(probs, labels):
    """Uneven parts, one of them empty, with the numbers that keep them in order."""
    ends = [*CUTS[1:], len(probs)]
    for number, (first, last) in enumerate(zip(CUTS, ends, strict=True)):
        yield f"{number:03}", probs[first:last], labels[first:last]


def write_npy(folder, probs, labels):
    for number, some, their in shards(probs, labels):
        np.save(folder / f"probs-{number}.npy", some)
        np.save(folder / f"labels-{number}.npy", their)
    return folder


def write_npz(folder, probs, labels):
    save = (np.savez, np.savez_compressed)
    for number, some, their in shards(probs, labels):
        save[int(number) % 2](folder / f"{number}.npz", probs=some, labels=their)
    return folder


def write_parquet(folder, probs, labels):
    for number, some, their in shards(probs, labels):
        columns = {
            f"m{m}:{k}": some[:, m, k] for k in range(probs.shape[2]) for m in range(probs.shape[1])
        }
        table = pa.table({"label": their, **columns})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=700)
    return folder


def write_zarr(folder, probs, labels):
    root = zarr.open_group(folder / "set.zarr", mode="w")
    root.create_array("probs", data=probs, chunks=(999, 2, probs.shape[2]))
    root.create_array("labels", data=labels, chunks=(500,))
    return folder / "set.zarr"


def write_zipped_zarr(folder, probs, labels):
    path = folder / "zipped.zarr"
    with zarr.storage.ZipStore(path, mode="w") as store:
        root = zarr.open_group(store, mode="w")
        root.create_array("probs", data=probs, chunks=(3000, 1, 1))
        root.create_array("labels", data=labels, chunks=(500,))
    return path


WRITERS = {
    "npy": write_npy,
    "npz": write_npz,
    "parquet": write_parquet,
    "zarr": write_zarr,
    "zipped zarr": write_zipped_zarr,
}

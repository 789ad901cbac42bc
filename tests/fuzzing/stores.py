"""Stores of the engine "dask": small sound ones to be damaged, and a worker that has no cluster."""

import functools
import io
import itertools
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr

from fuzzing import specimens
from hullcal.io.stores import open_store
from hullcal.objectives import dask
from io_files import CLASSES, LABELS, MEMBERS, NAMED, PROBS, npy_bytes, wide_columns

#: First and last rows of shards; one of them is empty.
CUTS = ((0, 3), (3, 3), (3, 7))
#: Rows of a chunk, and chunks after which a store has shown enough of itself.
ROWS, CHUNKS = 1000, 20


@functools.cache
def sound():
    """Stores by name; a file is its bytes, a folder a dictionary of them."""
    kept = ("plain.npy", "plain.npz", "three.zarr", "two.zarr", "zipped.zarr")
    return {
        "npy": {
            f"{what}-{a}-{b}.npy": npy_bytes(values[a:b])
            for a, b in CUTS
            for what, values in (("probs", PROBS), ("labels", LABELS))
        },
        "npz": {f"{a}-{b}.npz": _archive(a, b) for a, b in CUTS},
        "parquet": {f"{a}-{b}.parquet": _table(a, b) for a, b in CUTS},
        "named.zarr": _named(),
        **{name: specimens.predictions()[name] for name in kept},
    }


def _archive(first, last):
    buffer = io.BytesIO()
    save = np.savez if first else np.savez_compressed
    names = {"classes": np.array(CLASSES), "members": np.array(MEMBERS)}
    save(buffer, probs=np.asfortranarray(PROBS[first:last]), labels=NAMED[first:last], **names)
    return buffer.getvalue()


def _table(first, last):
    buffer = io.BytesIO()
    table = pa.table(wide_columns()).slice(first, last - first)
    pq.write_table(table, buffer, row_group_size=2)
    return buffer.getvalue()


def _named():
    """A Zarr store with names; in version 2 of the format, whose text is no experiment."""
    with tempfile.TemporaryDirectory() as folder:
        root = zarr.open_group(folder, mode="w", zarr_format=2)
        root.create_array("probs", data=PROBS, chunks=(3, 1, 2))
        for name, values in {"labels": NAMED, "classes": CLASSES, "members": MEMBERS}.items():
            root.create_array(name, data=np.array(values))
        return specimens.contents(Path(folder))


def used(path):
    """Open a store as the client does, and read and check all of it as workers do."""
    store = open_store(path)
    # A store without labels gets as many as it needs, unless that is beyond reason.
    given = None if store.labelled else np.zeros(store.shape[0] % 10_000, dtype=np.int64)
    source = dask._Input.of(store, given, None, {"from_logits": False, "from_log": False})
    n_samples = source.shape[0]
    for first in itertools.islice(range(0, n_samples, ROWS), CHUNKS):
        last = min(first + ROWS, n_samples)
        rows = (first, last)
        labels = None if source.labels is None else source.labels[first:last]
        with warnings.catch_warnings():
            # Notes of a library go to the worker's log.
            warnings.simplefilter("ignore", UserWarning)
            try:
                chunk = dask._checked(source.probs, labels, rows, n_samples, source.reading)
            except MemoryError:
                return "refused for memory"  # the client tells it as an EngineError
        assert chunk.rows.probs.shape == (last - first, *source.shape[1:])
        assert chunk.rows.labels.shape == (last - first,)
        assert np.isfinite(chunk.rows.probs).all()
        assert chunk.rows.labels.min() >= 0
        assert chunk.rows.labels.max() < source.shape[2]
        dask._summary(chunk)
    return "read"

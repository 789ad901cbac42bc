"""Predictions in a Zarr store: a folder or a zip with the arrays probs and labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hullcal._validation import refusal
from hullcal.engines._stores_base import Array, Store, readable, text
from hullcal.engines._stores_sizes import bytes_of, check_memory, check_names, check_possible
from hullcal.files.source import Source
from hullcal.files.zarr_arrays import check_codecs, open_arrays


@dataclass(frozen=True, kw_only=True)
class ZarrStore(Store):
    """A path, and the name of the predictions if the store is a group."""

    path: Path
    probs: str | None

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        wanted = (self.probs, "labels") if self.labelled else (self.probs,)
        with readable(self.path), open_arrays(Source(self.path, "probs"), wanted) as arrays:
            probs = _rows(self.path, arrays[self.probs], first, last)
            if not self.labelled:
                return probs, None
            return probs, text(_rows(self.path, arrays["labels"], first, last))


def open_zarr(path: Path) -> ZarrStore:
    """Read the metadata of a store."""
    with readable(path), open_arrays(Source(path, "probs")) as arrays:
        key = None if None in arrays else _key(path, arrays)
        array = arrays[key]
        check_codecs(Source(path, "probs"), array)
        check_possible(path, array.shape, array.dtype)
        labels = arrays.get("labels") if key != "labels" else None
        if labels is not None and labels.shape[:1] != array.shape[:1]:
            came = f"{labels.shape} for predictions of shape {array.shape}"
            repair = "Write labels and predictions of the same rows."
            raise refusal("labels", "must be as many as the predictions", came, repair)
        known = {}
        for name in ("classes", "members"):
            if name in arrays:
                values = arrays[name]
                check_names(path, name, values.shape)
                known[name] = tuple(text(_rows(path, values, 0, *values.shape)).tolist())
        if "members" in known:
            known["members"] = tuple(str(name) for name in known["members"])
        return ZarrStore(
            shape=tuple(array.shape),
            dtype=array.dtype,
            labelled=labels is not None,
            path=path,
            probs=key,
            **known,
        )


def _rows(path: Path, array: Any, first: int, last: int) -> Array:
    """Some rows; a chunk is decoded whole, however little of it they need."""
    check_codecs(Source(path, "probs"), array)
    rows = (last - first, *array.shape[1:])
    check_memory(path, bytes_of(rows, array.dtype) + bytes_of(array.chunks, array.dtype))
    return np.asarray(array[first:last])


def _key(path: Path, arrays: Iterable[str | None]) -> str:
    names = [name for name in arrays if name is not None]
    others = [name for name in names if name not in ("labels", "classes", "members")]
    if "probs" in names or len(others) == 1:
        return "probs" if "probs" in names else others[0]
    came = f"the arrays {', '.join(names)[:200] or 'none at all'} in {str(path)!r}"
    raise refusal("probs", "must be a store with an array 'probs'", came, "Call it `probs`.")

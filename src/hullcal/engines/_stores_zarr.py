"""Predictions in a Zarr store: a folder or a zip with the arrays probs and labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hullcal._validation.errors import refusal
from hullcal.engines._stores_base import Array, Store, needed, python_objects, readable, text
from hullcal.files.zarr_codecs import KNOWN, names_of


@dataclass(frozen=True, kw_only=True)
class ZarrStore(Store):
    """A path, and the name of the predictions if the store is a group."""

    path: Path
    probs: str | None

    def read(self, first: int, last: int) -> tuple[Array, Array | None]:
        with readable(self.path), _root(self.path) as root:
            probs = np.asarray(_array(self.path, root, self.probs)[first:last])
            if not self.labelled:
                return probs, None
            return probs, text(np.asarray(_array(self.path, root, "labels")[first:last]))


def open_zarr(path: Path) -> ZarrStore:
    """Read the metadata of a store."""
    with readable(path), _root(path) as root:
        names = list(root.array_keys()) if hasattr(root, "array_keys") else []
        key = _key(path, names) if names or hasattr(root, "array_keys") else None
        array = _array(path, root, key)
        labelled = key != "labels" and "labels" in names
        if labelled and _array(path, root, "labels").shape[:1] != array.shape[:1]:
            came = f"{root['labels'].shape} for predictions of shape {array.shape}"
            repair = "Write labels and predictions of the same rows."
            raise refusal("labels", "must be as many as the predictions", came, repair)
        known = {}
        for name in ("classes", "members"):
            if name in names:
                known[name] = tuple(text(np.asarray(_array(path, root, name)[...])).tolist())
        if "members" in known:
            known["members"] = tuple(str(name) for name in known["members"])
        return ZarrStore(
            shape=tuple(array.shape),
            dtype=array.dtype,
            labelled=labelled,
            path=path,
            probs=key,
            **known,
        )


@contextmanager
def _root(path: Path) -> Iterator[Any]:
    zarr, storage = needed("zarr", "zarr"), needed("zarr.storage", "zarr")
    if path.is_dir():
        store = storage.LocalStore(path, read_only=True)
    else:
        store = storage.ZipStore(path, mode="r")
    with closing(store):
        yield zarr.open(store=store, mode="r")


def _key(path: Path, names: list[str]) -> str:
    others = [name for name in names if name not in ("labels", "classes", "members")]
    if "probs" in names or len(others) == 1:
        return "probs" if "probs" in names else others[0]
    came = f"the arrays {', '.join(names)[:200] or 'none at all'} in {str(path)!r}"
    raise refusal("probs", "must be a store with an array 'probs'", came, "Call it `probs`.")


def _array(path: Path, root: Any, key: str | None) -> Any:
    array = root if key is None else root[key]
    metadata = array.metadata.to_dict()
    for name in names_of([metadata.get(k) for k in ("codecs", "filters", "compressor")]):
        if name == "pickle":
            raise python_objects(path)
        if name not in KNOWN:
            repair = "Write it again with one of zarr's own codecs, such as zstd."
            raise refusal("probs", "must use known codecs", f"the codec {name!r}", repair)
    return array

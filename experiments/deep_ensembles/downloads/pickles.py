"""Pickles that may hold numpy arrays in containers, and nothing that acts."""

from __future__ import annotations

import os
import pickle
from typing import Any

import numpy as np
from numpy._core import multiarray, numeric

__all__ = ["restricted_pickle"]

_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}
# Old and new numpy call the home of these by different names.
for _home in ("numpy.core", "numpy._core"):
    _ADMITTED[f"{_home}.multiarray", "_reconstruct"] = multiarray._reconstruct
    _ADMITTED[f"{_home}.multiarray", "scalar"] = multiarray.scalar
    _ADMITTED[f"{_home}.numeric", "_frombuffer"] = numeric._frombuffer  # protocol 5


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ADMITTED:
            raise pickle.UnpicklingError(
                f"only numpy arrays in plain containers are read from pickles; this one asks for "
                f"{module}.{name}. Do not open it in another way unless you trust where it is from."
            )
        return _ADMITTED[module, name]


def restricted_pickle(path: str | os.PathLike[str]) -> Any:
    """Read a pickle of numpy arrays, numbers, text and plain containers; refuse all else.

    Raises
    ------
    pickle.UnpicklingError
        Naming what the file asked for; nothing of it has been imported or called.
    """
    with open(path, "rb") as file:
        return _ArraysOnly(file).load()

"""Can what a file declares be true, and be read here? Asked before any of it is."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

from hullcal._validation import refusal
from hullcal.files.memory import check_fits
from hullcal.files.source import Source

Shape = tuple[int, ...]


def bytes_of(shape: Shape, dtype: np.dtype[Any]) -> int:
    """Memory of an array, in integers that cannot overflow."""
    return math.prod(int(length) for length in shape) * dtype.itemsize


def check_possible(path: Path, shape: Shape, dtype: np.dtype[Any]) -> None:
    """Refuse the shape of an array that cannot be: without axes, below zero or beyond addresses."""
    smallest = math.prod(max(1, int(length)) for length in shape) * max(1, dtype.itemsize)
    if shape and min(shape) >= 0 and smallest <= sys.maxsize:
        return
    rule = "must have shape (n_samples, n_members, n_classes)"
    repair = "If it was written so, the file is damaged. Write it again."
    raise refusal("probs", rule, f"shape {shape} in {str(path)!r}", repair)


def check_names(path: Path, name: str, shape: Shape) -> None:
    """Refuse names that are no list."""
    if len(shape) != 1:
        came = f"{name!r} of shape {shape} in {str(path)!r}"
        raise refusal("probs", f"must hold {name!r} with one axis", came, "Save a list of names.")


def check_memory(path: Path, needed: int) -> None:
    """Refuse to read more bytes than this machine has left."""
    check_fits(Source(path, "probs"), needed)

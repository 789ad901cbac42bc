"""Which order of axes would have fitted, when the order that came does not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["axis_summing_to_one", "reordering"]


def axis_summing_to_one(array: NDArray[Any], tolerance: float) -> int | None:
    """Give the axis along which all values sum to one, the last such axis if there are several."""
    for axis in reversed(range(array.ndim)):
        with np.errstate(all="ignore"):
            sums = np.add.reduce(array, axis=axis, dtype=np.float64)
            if bool(np.all(np.abs(sums - 1) <= tolerance)):
                return axis
    return None


def reordering(ndim: int, n_axis: int | None, k_axis: int | None) -> str:
    """Write the expression that brings samples to the front and classes to the back.

    Parameters
    ----------
    ndim : int
        2 or 3 axes.
    n_axis, k_axis : int or None
        Where samples and classes are now; None where that is not known, and the order of the
        remaining axes is then kept.

    Returns
    -------
    str
        For example ``np.moveaxis(probs, 0, 1)``; empty if the order is right already.
    """
    rest = [axis for axis in range(ndim) if axis not in (n_axis, k_axis)]
    front = [n_axis] if n_axis is not None else [rest.pop(0)]
    back = [k_axis] if k_axis is not None else [rest.pop()]
    order = (*front, *rest, *back)
    if order == tuple(range(ndim)):
        return ""
    moves = [(i, j) for i in range(ndim) for j in range(ndim) if i != j]
    for source, target in moves:
        moved = [axis for axis in range(ndim) if axis != source]
        moved.insert(target, source)
        if tuple(moved) == order:
            return f"np.moveaxis(probs, {source}, {target})"
    return f"np.transpose(probs, {order})"

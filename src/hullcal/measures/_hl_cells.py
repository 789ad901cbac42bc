"""The cells of a sketch of probabilities: a fixed scale on which few of them fall together.

Three quarters of the cells share [0, 1/2) by the eighth root of p, the others [1/2, 1] by the fourth
root of 1 - p. Exactly 0 and exactly 1 have cells of their own, the first and the last.
"""

from __future__ import annotations

import math

import numpy as np

from hullcal._compiled.jit import compiled, compiled_inline
from hullcal.measures._base import Floats

#: What a cell keeps: the weight of its rows, the sum of their probabilities, the weight of its events.
KEPT = 3
#: By how much cells may reach into each other, relatively: more than roots are ever rounded.
_ROUNDING = 1e-13


def cell_edges(n_cells: int, parts: int = 1) -> Floats:
    """Between which probabilities each part of each cell lies, (n_cells, parts, 2)."""
    n_high = n_cells // 4
    n_low = n_cells - n_high
    low, high = _scales(n_cells)
    inner = np.arange(1, n_cells - 1)
    inside = np.arange(parts + 1) / parts
    is_low = (inner < n_low)[:, np.newaxis]
    # Steps from 0 upwards, and from 1 downwards.
    up = np.minimum((inner[:, np.newaxis] - 1 + inside) / low, 0.5**0.125) ** 8
    down = np.minimum((n_cells - 1 - inner[:, np.newaxis] - inside) / high, 0.5**0.25) ** 4
    bounds = np.where(is_low, up, 1.0 - down)
    edges = np.zeros((n_cells, parts, 2))
    edges[-1] = 1.0
    edges[1:-1, :, 0] = bounds[:, :-1] * (1.0 - _ROUNDING)
    edges[1:-1, :, 1] = bounds[:, 1:] * (1.0 + _ROUNDING)
    return edges


@compiled
def _scales(n_cells):  # type: ignore[no-untyped-def]
    """What roots of p < 1/2 and of 1 - p are multiplied by."""
    n_high = n_cells // 4
    # Half a cell less than there is room for, so that no rounding can lead beyond.
    return (n_cells - n_high - 1.5) / 0.5**0.125, (n_high - 1.5) / 0.5**0.25


@compiled_inline
def _steps(p, low, high):  # type: ignore[no-untyped-def]
    """How many cells lie between p and 0, or 1 if that is nearer."""
    is_low = p < 0.5
    # Mixed predictions may leave [0, 1] by rounding.
    root = math.sqrt(math.sqrt(max(p if is_low else 1.0 - p, 0.0)))
    return math.sqrt(root) * low if is_low else root * high


@compiled
def cells_of(probabilities, n_cells, cells):  # type: ignore[no-untyped-def]
    """The cell of each probability; it never decreases where the probability grows."""
    last = n_cells - 1
    low, high = _scales(n_cells)
    for n in range(probabilities.shape[0]):
        p = probabilities[n]
        cell = np.int32(_steps(p, low, high)) + np.int32(p > 0.0 and p < 1.0)
        cells[n] = np.uint32(cell if p < 0.5 else last - cell)


@compiled
def part_of(p, n_cells, parts):  # type: ignore[no-untyped-def]
    """Which part of its cell a probability lies in; it never decreases within the cell."""
    low, high = _scales(n_cells)
    steps = _steps(p, low, high)
    part = int((steps - math.floor(steps)) * parts)
    return part if p < 0.5 else parts - 1 - part

"""Between which numbers the Hosmer–Lemeshow statistic lies, given only the cells of a sketch."""

from __future__ import annotations

import numpy as np

from hullcal._compiled.jit import compiled
from hullcal.binning import part_size
from hullcal.measures._base import Floats


def enclosure(cells: Floats, edges: Floats, n_bins: int, n_samples: int) -> tuple[float, float]:
    """The smallest and the largest statistic that agrees with the cells (n_classes, n_cells, 3).

    `edges` (n_classes, n_cells, 2) are the probabilities between which cells lie.
    """
    ends = [_of_class(*one, n_bins, n_samples) for one in zip(cells, edges, strict=True)]
    return sum(least for least, _ in ends), sum(most for _, most in ends)


@compiled
def _of_class(cells, edges, n_bins, n_samples):  # type: ignore[no-untyped-def]
    """The smallest and the largest sum over the bins of a class.

    See `_HosmerLemeshowSketch` for the inequalities. Bins are bounded one by one.
    """
    lowest, highest = 0.0, 0.0
    # Bounds on the events and on the sum of probabilities of the bin that is being filled.
    few, many, least, most = 0.0, 0.0, 0.0, 0.0
    j, filled = 0, 0.0
    size = float(part_size(0, n_samples, n_bins))
    for cell in range(cells.shape[0]):
        w, s, y = cells[cell]
        if w == 0.0:
            continue
        # The sum was rounded, so its mean may leave the edges by a trifle.
        low, high = min(edges[cell, 0], s / w), max(edges[cell, 1], s / w)
        is_tie = edges[cell, 0] == edges[cell, 1]
        rest = w
        while rest > 0.0:
            t = min(rest, size - filled)
            is_lowest = rest == w
            filled += t
            rest -= t
            if t == w:
                few, many, least, most = few + y, many + y, least + s, most + s
            elif is_tie:
                # Ties are shared in proportion.
                few, many = few + t * y / w, many + t * y / w
                least, most = least + t * s / w, most + t * s / w
            else:
                few += max(0.0, t - (w - y))
                many += min(t, y)
                mean = t * s / w
                least += mean if rest == 0.0 else max(t * low, s - (w - t) * high)
                most += mean if is_lowest else min(t * high, s - (w - t) * low)
            if filled == size:
                lowest += _smallest(few / size, many / size, least / size, most / size)
                highest += _largest(few / size, many / size, least / size, most / size)
                few, many, least, most = 0.0, 0.0, 0.0, 0.0
                j += 1
                filled = 0.0
                size = float(part_size(j, n_samples, n_bins))
    return lowest, highest


@compiled
def _term(o, p):  # type: ignore[no-untyped-def]
    """What a bin adds."""
    if p > 0.0:
        return (o - p) ** 2 / p
    return np.inf if o > 0.0 else 0.0


@compiled
def _smallest(few, many, least, most):  # type: ignore[no-untyped-def]
    if few > most:
        return _term(few, most)
    return _term(many, least) if many < least else 0.0


@compiled
def _largest(few, many, least, most):  # type: ignore[no-untyped-def]
    smallest_p = max(_term(few, least), _term(many, least))
    return max(smallest_p, max(_term(few, most), _term(many, most)))

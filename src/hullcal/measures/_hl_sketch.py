"""Hosmer–Lemeshow from sums that add up over rows: the order of rows is kept up to small cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_value
from hullcal._compiled.mixing import fill
from hullcal._validation import check_integer
from hullcal.binning import part_size
from hullcal.measures._base import Floats, Measure
from hullcal.measures._hl_cells import KEPT, cells_of
from hullcal.measures._hl_refined import _Refined
from hullcal.measures._hl_residuals import squared_distance, to_residuals

#: Cells of a class, and of a bin if there are many bins.
N_CELLS, _PER_BIN = 1024, 64
# Unsigned, since a cell is never counted from the end.
_KEPT, _1, _2 = np.uint64(KEPT), np.uint64(1), np.uint64(2)


@dataclass(frozen=True, kw_only=True)
class _HosmerLemeshowSketch(Measure):
    r"""Hosmer–Lemeshow statistic of predictions whose order inside small cells is forgotten.

    The probabilities of each class go to `n_cells` cells in the order of a fixed scale (`_hl_cells`),
    and a cell keeps the number of its rows, the sum of their probabilities and the number of events, all
    of which add up over rows. Bins of equal frequency are cut from the cells in order; a cell that
    straddles a cut is shared in proportion, as the definition shares ties. Data and replicates are
    measured alike, so a test by this statistic is a test in its own right, however coarse the cells.

    **How far it is from the exact statistic.** A cell wholly inside a bin adds the same to it in both,
    so only the pieces of straddled cells differ. Let a cell have weight w, sum of probabilities s and
    events y, and let its probabilities lie in [l, u]. A piece of weight t has, whatever the order of
    the rows,

    .. math:: \max(0, t - (w - y)) \le \text{events} \le \min(t, y), \qquad
              \max(t l, s - (w - t) u) \le \text{sum of } p \le \min(t u, s - (w - t) l),

    since what it lacks is in the rest of the cell. The lowest rows of a cell have a mean of at most
    s/w, and the highest at least that. So o and p of a bin lie in a box that the cells give. Its term
    :math:`(o - p)^2 / p` is jointly convex, hence largest at a corner of the box; it is 0 where o = p is
    in the box, and else smallest at the corner where o and p are nearest to each other. Summed over bins
    and classes this encloses the exact statistic, up to the rounding of sums.

    At weights of interest a second pass cuts the straddled cells into many parts (`refined`), which makes
    the enclosure as much narrower; its `error_bound` is how far the value found is from the farther end.
    It is infinite where a bin may, for all that is known, have events and a p of 0. Ties other than 0
    and 1 are not known to be ties, so what is said of a classifier with few distinct predictions is true
    but more than its error.

    The residual vector has K·B entries, in the first places of the state.
    """

    name: ClassVar[str] = "hl_cwise"
    notion: ClassVar[str] = "classwise"
    easily_searched: ClassVar[bool] = True
    approximate: ClassVar[bool] = True
    n_bins: int = 10
    n_cells: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", check_integer(self.n_bins, "n_bins", 1))
        # With fewer the residual vector would not fit in the place of the cells.
        fewest = max(8, self.n_bins)
        object.__setattr__(self, "n_cells", check_integer(self.n_cells, "n_cells", fewest))

    @classmethod
    def of_bins(cls, n_bins: int) -> _HosmerLemeshowSketch:
        """As many cells as bins of this number need."""
        return cls(n_bins=n_bins, n_cells=max(N_CELLS, _PER_BIN * n_bins))

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        return np.array([self.n_bins, self.n_cells], dtype=np.float64)

    def state_size(self, n_classes: int) -> int:
        return n_classes * self.n_cells * KEPT

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        return (n_samples + 1) // 2

    def no_offset(self, n_classes: int) -> Floats:
        return np.zeros(n_classes * self.n_bins)

    def refined(self, state: Floats, n_samples: int) -> Measure:
        cells = state.reshape(-1, self.n_cells, KEPT)
        offset = self.no_offset(len(cells))
        value = float(_finish(state.copy(), offset, self.parameters(offset), n_samples))
        return _Refined.of(value, cells, self.n_bins, n_samples)


@compiled_value
def _accumulate(mixed, labels, row_weights, parameters, state, scratch):  # type: ignore[no-untyped-def]
    n_classes, n_samples = mixed.shape
    n_cells = int(parameters[1])
    cells = scratch.view(np.uint32)[:n_samples]
    for k in range(n_classes):
        own = state[KEPT * n_cells * k : KEPT * n_cells * (k + 1)]
        p = mixed[k]
        cells_of(p, n_cells, cells)
        for n in range(n_samples):
            at, weight = _KEPT * np.uint64(cells[n]), row_weights[n]
            own[at] += weight
            own[at + _1] += weight * p[n]
            own[at + _2] += weight if labels[n] == k else 0.0


@compiled
def _fill_bins(cells, n_samples, observed, expected):  # type: ignore[no-untyped-def]
    """Means of labels and of probabilities in the bins of one class, from its cells in order."""
    n_bins = observed.shape[0]
    j, filled, sum_p, sum_y = 0, 0.0, 0.0, 0.0
    size = float(part_size(0, n_samples, n_bins))
    for cell in range(0, cells.shape[0], KEPT):
        group, of_group, events = cells[cell], cells[cell + 1], cells[cell + 2]
        rest = group
        while rest > 0.0:
            share = min(rest, size - filled)
            filled += share
            sum_p += of_group if share == group else share * of_group / group
            sum_y += events if share == group else share * events / group
            rest -= share
            if filled == size:
                observed[j], expected[j] = sum_y / size, sum_p / size
                j += 1
                filled, sum_p, sum_y = 0.0, 0.0, 0.0
                size = float(part_size(j, n_samples, n_bins))


@compiled
def _finish(state, offset, parameters, n_samples):  # type: ignore[no-untyped-def]
    n_bins, per_class = int(parameters[0]), KEPT * int(parameters[1])
    n_classes = state.shape[0] // per_class
    observed, expected = np.empty(n_bins), np.empty(n_bins)
    total = 0.0
    for k in range(n_classes):
        fill(observed, 0.0)
        fill(expected, 0.0)
        _fill_bins(state[per_class * k : per_class * (k + 1)], n_samples, observed, expected)
        to_residuals(observed, expected)
        own = slice(n_bins * k, n_bins * (k + 1))
        total += squared_distance(observed, offset[own])
        # There are fewer bins than numbers in cells: only cells that were read are overwritten.
        state[own] = observed
    return total


@compiled_value
def _value(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    fill(state, 0.0)
    _accumulate(mixed, labels, row_weights, parameters, state, scratch)
    return _finish(state, offset, parameters, mixed.shape[1])


_HosmerLemeshowSketch.value = staticmethod(_value)
_HosmerLemeshowSketch.accumulate = staticmethod(_accumulate)
_HosmerLemeshowSketch.finish = staticmethod(_finish)

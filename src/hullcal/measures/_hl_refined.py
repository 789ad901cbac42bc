"""The second pass of a sketch: the cells that straddle a cut at given weights, cut into many parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled_value
from hullcal.binning import part_size
from hullcal.measures._base import Floats, Measure
from hullcal.measures._hl_bounds import enclosure
from hullcal.measures._hl_cells import KEPT, cell_edges, cells_of, part_of

#: Parts of a cell that straddles a cut.
_PARTS = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class _Refined(Measure):
    """Sums that enclose the exact statistic where a first pass found `value`."""

    name: ClassVar[str] = "hl_cwise"
    notion: ClassVar[str] = "classwise"
    value_found: float
    n_bins: int
    #: Where the parts of each class's cells begin, (n_classes, n_cells + 1).
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, value: float, cells: Floats, n_bins: int, n_samples: int) -> _Refined:
        """For the cells (n_classes, n_cells, 3) of the first pass."""
        sizes = np.array([part_size(j, n_samples, n_bins) for j in range(n_bins)])
        cuts = np.cumsum(sizes)[:-1]
        n_classes, n_cells, _ = cells.shape
        starts = np.zeros((n_classes, n_cells + 1), dtype=np.int64)
        for own, weights in zip(starts, cells[:, :, 0], strict=True):
            ends = np.cumsum(weights)
            # The cell in which each cut lies; a cut between two cells is at the end of one.
            found = np.minimum(np.searchsorted(ends, cuts), n_cells - 1)
            parts = np.ones(n_cells, dtype=np.int64)
            parts[found[ends[found] > cuts]] = _PARTS
            parts[[0, -1]] = 1  # all of their probabilities are the same
            own[1:] = np.cumsum(parts)
        return cls(value_found=value, n_bins=n_bins, starts=starts)

    @property
    def _n_cells(self) -> int:
        return int(self.starts.shape[1]) - 1

    @property
    def _n_parts(self) -> int:
        return int(self.starts[:, -1].max())

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        return np.array([self._n_cells, *self.starts.ravel()], dtype=np.float64)

    def state_size(self, n_classes: int) -> int:
        return n_classes * self._n_parts * KEPT

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        return (n_samples + 1) // 2

    def error_bound(self, state: Floats, n_samples: int) -> float:
        value = self.value_found
        ends = enclosure(self._parts(state), self._edges(), self.n_bins, n_samples)
        # Infinite equals infinite.
        return max(0.0 if end == value else abs(end - value) for end in ends)

    def _parts(self, state: Floats) -> Floats:
        return state.reshape(len(self.starts), self._n_parts, KEPT)

    def _edges(self) -> Floats:
        """Between which probabilities the parts lie, (n_classes, n_parts, 2)."""
        whole, parted = cell_edges(self._n_cells), cell_edges(self._n_cells, _PARTS)
        edges = np.zeros((len(self.starts), self._n_parts, 2))
        for own, starts in zip(edges, self.starts, strict=True):
            one = np.diff(starts) == 1
            own[starts[:-1][one]] = whole[one, 0]
            for cell in np.flatnonzero(~one):
                own[starts[cell] : starts[cell + 1]] = parted[cell]
        return edges


@compiled_value
def _accumulate(mixed, labels, row_weights, parameters, state, scratch):  # type: ignore[no-untyped-def]
    n_classes, n_samples = mixed.shape
    n_cells = int(parameters[0])
    size = state.shape[0] // n_classes
    cells = scratch.view(np.uint32)[:n_samples]
    for k in range(n_classes):
        own = state[size * k : size * (k + 1)]
        starts = parameters[1 + (n_cells + 1) * k : 1 + (n_cells + 1) * (k + 1)]
        cells_of(mixed[k], n_cells, cells)
        for n in range(n_samples):
            p, weight = mixed[k, n], row_weights[n]
            at, parts = int(starts[cells[n]]), int(starts[cells[n] + 1] - starts[cells[n]])
            if parts > 1:
                at += part_of(p, n_cells, parts)
            own[KEPT * at] += weight
            own[KEPT * at + 1] += weight * p
            own[KEPT * at + 2] += weight if labels[n] == k else 0.0


_Refined.accumulate = staticmethod(_accumulate)

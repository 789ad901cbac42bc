"""Hosmer–Lemeshow: the classwise chi-squared statistic on equal-frequency bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled
from hullcal._validation import check_integer
from hullcal.measures._base import Floats, Measure


@dataclass(frozen=True, kw_only=True)
class HosmerLemeshow(Measure):
    r"""Hosmer–Lemeshow statistic of all classes (Eqs. 3 and 4).

    .. math:: \sum_{k=1}^{K} \sum_{j=1}^{B}
              \frac{(o(\mathcal{B}_{jk}) - \mathrm{p}(\mathcal{B}_{jk}))^2}{\mathrm{p}(\mathcal{B}_{jk})}

    Each class has its own B bins of equal frequency: the rows sorted by the class's probability are
    cut into parts whose sizes differ by at most one, the larger ones first. Equal probabilities that
    straddle a cut are shared in proportion, so the order of rows never matters. A cell with
    :math:`\mathrm{p} = 0` counts 0 if nothing was observed there, else infinity. May be any
    non-negative number. Cost: a sort of the rows per class. The residual vector has K·B entries,
    :math:`(o - \mathrm{p})/\sqrt{\mathrm{p}}`.

    Examples
    --------
    >>> round(HosmerLemeshow(n_bins=1)([[0.75, 0.25], [0.75, 0.25]], [0, 1]), 12)
    0.333333333333
    """

    name: ClassVar[str] = "hl_cwise"
    notion: ClassVar[str] = "classwise"
    n_bins: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", check_integer(self.n_bins, "n_bins", 1))

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        return np.array([float(self.n_bins)])

    def state_size(self, n_classes: int) -> int:
        return n_classes * self.n_bins

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        return 1 + n_samples * (n_classes + 1)


#: Element moves per row that insertion sort may spend before a full sort takes over.
_PATIENCE = 12


@compiled
def _sort(values, order, keys):  # type: ignore[no-untyped-def]
    """Sort `values` into `keys` and keep the permutation in `order`, which seeds the next sort.

    A pairwise move hardly changes the order, and insertion sort then costs little more than a pass.
    """
    n_samples = values.shape[0]
    patience = _PATIENCE * n_samples
    for i in range(n_samples):
        row = order[i]
        key = values[int(row)]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            order[j] = order[j - 1]
            j -= 1
        keys[j] = key
        order[j] = row
        patience -= i - j
        if patience < 0:
            break
    if patience < 0:
        sorted_rows = np.argsort(values)
        for i in range(n_samples):
            order[i] = sorted_rows[i]
            keys[i] = values[sorted_rows[i]]


@compiled
def _cells(keys, order, labels, row_weights, k, cells):  # type: ignore[no-untyped-def]
    """The residuals (o - p) / sqrt(p) of one class from its sorted probabilities."""
    n_samples, n_bins = keys.shape[0], cells.shape[0]
    j, filled, sum_p, sum_y = 0, 0.0, 0.0, 0.0
    size = float(n_samples // n_bins + int(n_samples % n_bins > 0))
    start = 0
    while start < n_samples:
        # A group of equal probabilities, copies of a row included.
        key = keys[start]
        row = int(order[start])
        group = row_weights[row]
        events = group if labels[row] == k else 0.0
        start += 1
        while start < n_samples and keys[start] == key:
            row = int(order[start])
            group += row_weights[row]
            events += row_weights[row] if labels[row] == k else 0.0
            start += 1
        if filled + group < size:
            filled += group
            sum_p += group * key
            sum_y += events
            continue
        rest = group
        while rest > 0.0:
            share = min(rest, size - filled)
            filled += share
            sum_p += share * key
            sum_y += events if share == group else share * events / group
            rest -= share
            if filled == size:
                p, o = sum_p / size, sum_y / size
                if p > 0.0:
                    cells[j] = (o - p) / math.sqrt(p)
                elif o > 0.0:
                    cells[j] = np.inf
                j += 1
                filled, sum_p, sum_y = 0.0, 0.0, 0.0
                size = float(n_samples // n_bins + int(j < n_samples % n_bins))


@compiled
def _value(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    n_classes, n_samples = mixed.shape
    n_bins = int(parameters[0])
    if scratch[0] == 0.0:
        scratch[0] = 1.0
        for k in range(n_classes):
            for n in range(n_samples):
                scratch[1 + k * n_samples + n] = n
    keys = scratch[1 + n_classes * n_samples :]
    state[:] = 0.0
    for k in range(n_classes):
        order = scratch[1 + k * n_samples : 1 + (k + 1) * n_samples]
        _sort(mixed[k], order, keys)
        _cells(keys, order, labels, row_weights, k, state[k * n_bins : (k + 1) * n_bins])
    total = 0.0
    for cell in range(state.shape[0]):
        # Infinite equals infinite: a cell that is infinite in the data too is recentred to zero.
        if state[cell] != offset[cell]:
            total += (state[cell] - offset[cell]) ** 2
    return total


HosmerLemeshow.value = staticmethod(_value)

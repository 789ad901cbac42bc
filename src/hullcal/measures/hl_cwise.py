"""Hosmer–Lemeshow: the classwise chi-squared statistic on equal-frequency bins."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_value
from hullcal._compiled.mixing import again, all_once
from hullcal._validation import check_integer
from hullcal.binning import part_size
from hullcal.measures._base import Floats, Measure, Trait


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
    traits: ClassVar[frozenset[Trait]] = frozenset({"residual", "places"})
    n_bins: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", check_integer(self.n_bins, "n_bins", 1))

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        return np.array([float(self.n_bins)])

    def state_size(self, n_classes: int) -> int:
        return n_classes * self.n_bins

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        # Expected sums; a sort; sorted probabilities and their rows, whether they are there; the mark.
        sorted_size = n_classes * n_samples + (n_classes * n_samples + 1) // 2
        return n_classes * self.n_bins + 3 * n_samples + 1 + sorted_size + 2

    def of_labellings(self, n_classes: int) -> Callable[..., None] | None:
        return None if type(self).value is not HosmerLemeshow.value else _of_labellings


#: Element moves per row that insertion sort may spend before a full sort takes over.
_PATIENCE = 12


@compiled
def _insertion_sort(keys, rows):  # type: ignore[no-untyped-def]
    """Sort keys with their rows where they hardly need it; False if that would take too long."""
    patience = _PATIENCE * keys.shape[0]
    one = np.uint64(1)
    for i in range(1, keys.shape[0]):
        key = keys[i]
        if keys[i - 1] > key:
            row = rows[i]
            j = np.uint64(i)
            while j > 0 and keys[j - one] > key:
                keys[j] = keys[j - one]
                rows[j] = rows[j - one]
                j -= one
            keys[j] = key
            rows[j] = row
            patience -= i - np.int64(j)
            if patience < 0:
                return False
    return True


@compiled
def _sort(values, drawn, keys, rows, buckets, ends):  # type: ignore[no-untyped-def]
    """Sort the values of the rows in `drawn` into `keys`, and the rows with them into `rows`.

    Rows go to as many buckets as there are rows, without a comparison that a processor could
    mispredict; what disorder is left in and between buckets is small.
    """
    n_rows = keys.shape[0]
    lowest, highest = np.inf, 0.0
    for i in range(n_rows):
        keys[i] = values[drawn[i]]
    for i in range(n_rows):
        # The fourth root spreads the many probabilities near 0, and keeps the order.
        keys[i] = math.sqrt(math.sqrt(abs(keys[i])))
    for i in range(n_rows):
        lowest, highest = min(lowest, keys[i]), max(highest, keys[i])
    scale = (n_rows - 0.5) / (highest - lowest) if highest > lowest else 0.0
    for i in range(n_rows):
        buckets[i] = np.int32((keys[i] - lowest) * scale)
    one = np.uint32(1)
    ends[:] = 0
    for i in range(n_rows):
        ends[buckets[i] + one] += one
    for b in range(1, n_rows):
        ends[b] += ends[b - 1]
    for i in range(n_rows):
        place = ends[buckets[i]]
        ends[buckets[i]] = place + one
        keys[place] = values[drawn[i]]
        rows[place] = drawn[i]
    if not _insertion_sort(keys, rows):
        order = np.argsort(keys)
        keys[:] = keys[order]
        rows[:] = rows[order]


@compiled
def _fill_bins(keys, rows, labels, row_weights, k, n_samples, observed, expected):  # type: ignore[no-untyped-def]
    """Sums of labels and of probabilities in the bins of one class, from its sorted probabilities."""
    n_rows, n_bins = keys.shape[0], observed.shape[0]
    j, filled, sum_p, sum_y = 0, 0.0, 0.0, 0.0
    size = float(part_size(0, n_samples, n_bins))
    start = 0
    while start < n_rows:
        # A group of equal probabilities, copies of a row included.
        key = keys[start]
        row = rows[start]
        group = row_weights[row]
        events = group if labels[row] == k else 0.0
        start += 1
        while start < n_rows and keys[start] == key:
            row = rows[start]
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
                observed[j], expected[j] = sum_y / size, sum_p / size
                j += 1
                filled, sum_p, sum_y = 0.0, 0.0, 0.0
                size = float(part_size(j, n_samples, n_bins))


@compiled
def _finish(state, expected, offset):  # type: ignore[no-untyped-def]
    """From o to the residuals (o - p) / sqrt(p), in place; their squared distance from the offset."""
    total = 0.0
    for cell in range(state.shape[0]):
        o, p = state[cell], expected[cell]
        if p > 0.0:
            state[cell] = (o - p) / math.sqrt(p)
        elif o > 0.0:
            state[cell] = np.inf
        # Infinite equals infinite: a cell that is infinite in the data too is recentred to zero.
        if state[cell] != offset[cell]:
            total += (state[cell] - offset[cell]) ** 2
    return total


@compiled_value
def _value(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    n_classes, n_samples = mixed.shape
    n_bins = int(parameters[0])
    expected = scratch[: n_classes * n_bins]
    room = scratch[n_classes * n_bins :]
    # Unsigned, since a row is never counted from the end. Rows that a bootstrap left out are not sorted.
    whole = room[n_samples:].view(np.uint32)
    drawn = whole[:n_samples]
    n_rows = 0
    for n in range(n_samples):
        drawn[n_rows] = n
        n_rows += int(row_weights[n] > 0.0)
    drawn, keys = drawn[:n_rows], room[:n_rows]
    rows = whole[n_samples : n_samples + n_rows]
    buckets = whole[2 * n_samples : 2 * n_samples + n_rows]
    ends = whole[3 * n_samples : 3 * n_samples + n_rows + 1]
    state[:] = 0.0
    expected[:] = 0.0
    kept = room[3 * n_samples + 1 :]
    kept_keys = kept[: n_classes * n_samples].reshape(n_classes, n_samples)
    kept_rows = kept[n_classes * n_samples : -2].view(np.uint32)
    # Whether all rows were sorted is the last float but one; the last is the mark.
    if not again(scratch):
        scratch[-2] = 0.0
    once = all_once(row_weights)
    for k in range(n_classes):
        if once:
            keys = kept_keys[k]
            rows = kept_rows[k * n_samples : (k + 1) * n_samples]
        if not once or scratch[-2] == 0.0:
            _sort(mixed[k], drawn, keys, rows, buckets, ends)
        bins = slice(k * n_bins, (k + 1) * n_bins)
        _fill_bins(
            keys, rows, labels, row_weights, k, n_samples, state[bins], expected[bins]
        )  # fmt: skip
    if once:
        scratch[-2] = 1.0
    return _finish(state, expected, offset)


@compiled_value
def _of_labellings(mixed, drawn, parameters, out):  # type: ignore[no-untyped-def]
    """g of each labelling, a column of `drawn`: rows are sorted once, and labels counted by vectors."""
    n_classes, n_samples = mixed.shape
    keys = np.empty(n_samples)
    every, rows, buckets = np.empty((3, n_samples), dtype=np.uint32)
    ends = np.empty(n_samples + 1, dtype=np.uint32)
    for n in range(n_samples):
        every[n] = n
    for d in range(out.shape[0]):
        out[d] = 0.0
    for k in range(n_classes):
        _sort(mixed[k], every, keys, rows, buckets, ends)
        _add_class(keys, rows, drawn, np.uint16(k), int(parameters[0]), out)


@compiled
def _add_class(keys, rows, drawn, k, n_bins, out):  # type: ignore[no-untyped-def]
    """Add the cells of one class, from its sorted probabilities."""
    n_samples, n_labellings = drawn.shape
    counts, of_group = np.zeros((2, n_labellings), dtype=np.int32)
    shared = np.zeros(n_labellings)
    j, size, filled, sum_p, start = 0, part_size(0, n_samples, n_bins), 0, 0.0, 0
    while start < n_samples:
        key, end = keys[start], start + 1
        while end < n_samples and keys[end] == key:
            end += 1
        rest = group = end - start
        whole = filled + group <= size
        own = counts if whole else of_group
        for i in range(start, end):
            labels = drawn[rows[i]]
            for d in range(n_labellings):
                own[d] += np.int32(labels[d] == k)
        start = end
        while rest > 0:
            share = min(rest, size - filled)
            rest -= share
            filled += share
            sum_p += share * key
            if not whole:
                for d in range(n_labellings):
                    shared[d] += share * of_group[d] / group
            if filled == size:
                _add_cell(counts, shared, size, sum_p / size, out)
                j += 1
                size, filled, sum_p = part_size(j, n_samples, n_bins), 0, 0.0
        if not whole:
            for d in range(n_labellings):
                of_group[d] = 0


@compiled
def _add_cell(counts, shared, size, expected, out):  # type: ignore[no-untyped-def]
    """Add (o - p)^2 / p of a cell for each labelling, and begin the next cell."""
    if expected > 0.0:
        # A division for each labelling would take longer than to count it.
        share, weight = 1.0 / size, 1.0 / math.sqrt(expected)
        for d in range(out.shape[0]):
            residual = (share * (counts[d] + shared[d]) - expected) * weight
            out[d] += residual * residual
    else:
        for d in range(out.shape[0]):
            out[d] = np.inf if counts[d] + shared[d] > 0.0 else out[d]
    for d in range(out.shape[0]):
        counts[d], shared[d] = 0, 0.0


HosmerLemeshow.value = staticmethod(_value)

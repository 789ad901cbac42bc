"""Classwise ECE: does every class come true as often as its probability claims?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_value
from hullcal._compiled.mixing import fill
from hullcal._compiled.sums import absolute_distance
from hullcal._validation import check_integer
from hullcal.binning import bin_index, bin_indices, edges
from hullcal.measures._base import ROUNDING, Floats, Measure, as_floats


@dataclass(frozen=True, kw_only=True)
class ClasswiseECE(Measure):
    r"""Expected calibration error averaged over the classes (Eq. 5).

    .. math:: \frac{1}{K} \sum_{k=1}^{K} \sum_{j=1}^{B} \frac{|\mathcal{B}_{jk}|}{N}
              |o(\mathcal{B}_{jk}) - \mathrm{p}(\mathcal{B}_{jk})|

    Equal-width bins of each class's probability. Cost: N·K. The residual vector has K·B entries,
    the signed gaps, class by class.

    Examples
    --------
    >>> ClasswiseECE(n_bins=2)([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.25
    """

    name: ClassVar[str] = "ece_cwise"
    notion: ClassVar[str] = "classwise"
    wants_rests: ClassVar[bool] = True
    n_bins: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", check_integer(self.n_bins, "n_bins", 1))

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        return edges(self.n_bins)

    def state_size(self, n_classes: int) -> int:
        return n_classes * self.n_bins

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        return (n_classes * n_samples + 1) // 2

    def over_entries(self, n_classes: int, n_samples: int) -> Measure | None:
        if type(self).value is not ClasswiseECE.value:
            return None  # a subclass with a loop of its own
        return _OverEntries(n_bins=self.n_bins, n_all_classes=n_classes)

    def matters(self, members: Floats) -> NDArray[np.bool_]:
        # What never reaches the second bin is only ever added up.
        largest: Floats = members.max(axis=0)
        first_edge = float(edges(self.n_bins)[1])
        return largest >= first_edge * (1.0 - ROUNDING)

    def entry_parameters(
        self, rows: NDArray[np.int32], classes: NDArray[np.int32], n_samples: int
    ) -> Floats:
        codes = np.concatenate([classes * self.n_bins, rows])
        return np.concatenate([[len(rows), self.n_bins], edges(self.n_bins), as_floats(codes)])


@compiled_value
def _accumulate(mixed, labels, row_weights, edges, state, scratch):  # type: ignore[no-untyped-def]
    n_classes, n_samples = mixed.shape
    n_bins = edges.shape[0] - 1
    # Unsigned, since a cell is never counted from the end.
    cells = scratch.view(np.uint32)[: n_classes * n_samples]
    bin_indices(mixed.reshape(n_classes * n_samples), edges, cells)
    cells = cells.reshape(n_classes, n_samples)
    for k in range(1, n_classes):
        for n in range(n_samples):
            cells[k, n] += np.uint32(k * n_bins)
    # Classes are the inner loop here: neighbouring additions go to different cells, so that none
    # has to wait for the one before it.
    for n in range(n_samples):
        weight = row_weights[n]
        for k in range(n_classes):
            state[cells[k, n]] -= weight * mixed[k, n]
    for n in range(n_samples):
        state[cells[labels[n], n]] += row_weights[n]


@compiled
def _finish(state, offset, edges, n_samples):  # type: ignore[no-untyped-def]
    for cell in range(state.shape[0]):
        state[cell] /= n_samples
    n_classes = state.shape[0] // (edges.shape[0] - 1)
    return absolute_distance(state, offset) / n_classes


@compiled_value
def _value(mixed, labels, row_weights, edges, offset, state, scratch):  # type: ignore[no-untyped-def]
    fill(state, 0.0)
    _accumulate(mixed, labels, row_weights, edges, state, scratch)
    return _finish(state, offset, edges, mixed.shape[1])


ClasswiseECE.value = staticmethod(_value)
ClasswiseECE.accumulate = staticmethod(_accumulate)
ClasswiseECE.finish = staticmethod(_finish)


@dataclass(frozen=True, kw_only=True)
class _OverEntries(ClasswiseECE):
    """Classwise ECE of the probabilities that can leave the first bin, and of the sums of the others."""

    of_draws: ClassVar[Callable[..., None]]
    n_all_classes: int

    def state_size(self, n_classes: int) -> int:
        return super().state_size(self.n_all_classes)


@compiled_value
def _value_of_entries(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    n_entries, n_bins = int(parameters[0]), int(parameters[1])
    edges = parameters[2 : n_bins + 3]
    codes = parameters[n_bins + 3 :].view(np.uint32)
    probabilities = mixed[0]
    cells = scratch.view(np.uint32)[:n_entries]
    bin_indices(probabilities[:n_entries], edges, cells)
    fill(state, 0.0)
    for entry in range(n_entries):
        cells[entry] += codes[entry]
        state[cells[entry]] -= row_weights[codes[n_entries + entry]] * probabilities[entry]
    for k in range(probabilities.shape[0] - n_entries):
        state[k * n_bins] -= probabilities[n_entries + k]
    for n in range(labels.shape[0]):
        # A label without an entry is in the first bin of its class.
        entry = labels[n]
        cell = cells[entry] if entry < n_entries else np.uint32((entry - n_entries) * n_bins)
        state[cell] += row_weights[n]
    return _finish(state, offset, edges, labels.shape[0])


_OverEntries.value = staticmethod(_value_of_entries)


@compiled
def _of_draws(mixed, classes, bounds, ends, labels, edges, state):  # type: ignore[no-untyped-def]
    """Gaps of rows drawn any number of times, each time with a label of its own, into their cells."""
    n_bins, n_entries = edges.shape[0] - 1, classes.shape[0]
    for k in range(mixed.shape[0] - n_entries):
        state[k * n_bins] -= mixed[n_entries + k]
    for n in range(ends.shape[0] - 1):
        if ends[n] == ends[n + 1]:
            continue
        count = float(ends[n + 1] - ends[n])
        for entry in range(bounds[n], bounds[n + 1]):
            cell = classes[entry] * n_bins + bin_index(mixed[entry], edges)
            state[cell] -= count * mixed[entry]
        for draw in range(ends[n], ends[n + 1]):
            label, cell = labels[draw], labels[draw] * n_bins
            # A label without an entry is in the first bin of its class.
            for entry in range(bounds[n], bounds[n + 1]):
                if classes[entry] == label:
                    cell += bin_index(mixed[entry], edges)
            state[cell] += 1.0


_OverEntries.of_draws = staticmethod(_of_draws)

"""Classwise ECE: does every class come true as often as its probability claims?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_part, compiled_value
from hullcal._compiled.mixing import absolute_distance, add, again, all_once, copy, fill
from hullcal.binning import bin_index, bin_indices, edges
from hullcal.measures._base import ROUNDING, Floats, Measure, Trait, as_floats
from hullcal.measures._ece import ECE, FEW_CLASSES, is_smooth, of_cells, places_of


@dataclass(frozen=True, kw_only=True)
class ClasswiseECE(ECE):
    r"""Expected calibration error averaged over the classes (Eq. 5).

    .. math:: \frac{1}{K} \sum_{k=1}^{K} \sum_{j=1}^{B} \frac{|\mathcal{B}_{jk}|}{N}
              |o(\mathcal{B}_{jk}) - \mathrm{p}(\mathcal{B}_{jk})|

    Equal-width bins of each class's probability. Cost: N·K. The residual vector has K·B entries,
    the signed gaps, class by class.

    With ``smooth=True``, named ``"ece_cwise_smooth"``, hat functions stand for the bins: with y = 1
    where the class came true, else 0,

    .. math:: \frac1K \sum_{k=1}^{K} \sum_{j=0}^{B}
              \Bigl|\frac1N \sum_{i=1}^{N} \varphi_j(p_{ik})\,(y_{ik} - p_{ik})\Bigr|, \qquad
              \varphi_j(p) = \max(0,\, 1 - |pB - j|).

    It is continuous in p, where a row that crosses an edge takes its whole gap to another bin
    otherwise. The residual vector has K·(B + 1) entries.

    Examples
    --------
    >>> ClasswiseECE(n_bins=2)([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.25
    >>> ClasswiseECE(n_bins=2, smooth=True)([[0.5, 0.5], [0.75, 0.25]], [0, 1])
    0.25
    """

    notion: ClassVar[str] = "classwise"
    plain_name: ClassVar[str] = "ece_cwise"
    traits: ClassVar[frozenset[Trait]] = ECE.traits | {"rests"}

    def state_size(self, n_classes: int) -> int:
        return n_classes * (self.n_bins + int(self.smooth))

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        # Cells, and the shares in the next hats; what labels are added to, whether it is there; the mark.
        places = (n_classes * n_samples + 1) // 2 + self.smooth * n_classes * n_samples
        return places + self.state_size(n_classes) + 2

    def of_labellings(self, n_classes: int) -> Callable[..., None] | None:
        if type(self).value is not ClasswiseECE.value or n_classes > FEW_CLASSES:
            return None
        return _of_labellings

    def over_entries(self, n_classes: int, n_samples: int) -> Measure | None:
        if type(self).value is not ClasswiseECE.value:
            return None  # a subclass with a loop of its own
        if self.smooth:
            # Below the first hat's foot a probability enters squared, as its share of the second hat is
            # in proportion to itself; of combinations that is no sum over the members.
            return None
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


@compiled_part
def _rooms(scratch, n_places, n_shares, n_cells):  # type: ignore[no-untyped-def]
    """Cells (unsigned, since none is counted from the end), shares, sums without labels, their mark."""
    cells = (n_places + 1) // 2
    shares = cells + n_shares
    return (
        scratch[:cells].view(np.uint32)[:n_places],
        scratch[cells:shares],
        scratch[shares : shares + n_cells],
        scratch[shares + n_cells : shares + n_cells + 1],
    )


@compiled_part
def _subtract(cells, shares, probabilities, row_weights, smooth, state):  # type: ignore[no-untyped-def]
    """What every row expects of every class, from its cell, or from two hats."""
    n_classes, n_samples = probabilities.shape
    # Classes are the inner loop here: neighbouring additions go to different cells, so that none
    # has to wait for the one before it.
    if smooth:
        upper_shares = shares.reshape(n_classes, n_samples)
        for n in range(n_samples):
            weight = row_weights[n]
            for k in range(n_classes):
                expected = weight * probabilities[k, n]
                upper = expected * upper_shares[k, n]
                state[cells[k, n]] -= expected - upper
                state[cells[k, n] + np.uint32(1)] -= upper
    else:
        for n in range(n_samples):
            weight = row_weights[n]
            for k in range(n_classes):
                state[cells[k, n]] -= weight * probabilities[k, n]


@compiled_value
def _accumulate(mixed, labels, row_weights, edges, state, scratch):  # type: ignore[no-untyped-def]
    n_classes, n_samples = mixed.shape
    smooth, n_cells = is_smooth(edges), state.shape[0] // n_classes
    n_shares = mixed.size if smooth else 0
    flat, shares, without, is_there = _rooms(scratch, mixed.size, n_shares, state.shape[0])
    cells = flat.reshape(n_classes, n_samples)
    if not again(scratch):
        places_of(mixed.reshape(n_classes * n_samples), edges, flat, shares)
        for k in range(1, n_classes):
            for n in range(n_samples):
                cells[k, n] += np.uint32(k * n_cells)
        is_there[0] = 0.0
    once = all_once(row_weights)
    if not once or is_there[0] == 0.0:
        if once:
            fill(without, 0.0)
            is_there[0] = 1.0
        _subtract(cells, shares, mixed, row_weights, smooth, without if once else state)
    if once:
        add(without, state)
    if smooth:
        upper_shares = shares.reshape(n_classes, n_samples)
        for n in range(n_samples):
            own, share = cells[labels[n], n], upper_shares[labels[n], n]
            state[own] += row_weights[n] * (1.0 - share)
            state[own + np.uint32(1)] += row_weights[n] * share
    else:
        for n in range(n_samples):
            state[cells[labels[n], n]] += row_weights[n]


@compiled
def _finish(state, offset, edges, n_samples):  # type: ignore[no-untyped-def]
    for cell in range(state.shape[0]):
        state[cell] /= n_samples
    # The last edge of bins opens none; the last hat is one.
    n_cells = edges.shape[0] - int(not is_smooth(edges))
    return absolute_distance(state, offset) / (state.shape[0] // n_cells)


@compiled_value
def _value(mixed, labels, row_weights, edges, offset, state, scratch):  # type: ignore[no-untyped-def]
    fill(state, 0.0)
    _accumulate(mixed, labels, row_weights, edges, state, scratch)
    return _finish(state, offset, edges, mixed.shape[1])


@compiled_value
def _of_labellings(mixed, drawn, edges, out):  # type: ignore[no-untyped-def]
    n_classes, n_samples = mixed.shape
    smooth = is_smooth(edges)
    n_cells = edges.shape[0] - int(not smooth)
    cells = np.empty((n_classes, n_samples), dtype=np.uint32)
    shares = np.empty((n_classes if smooth else 0, n_samples))
    places_of(mixed.reshape(-1), edges, cells.reshape(-1), shares.reshape(-1))
    classes = np.empty((n_classes, n_samples), dtype=np.uint16)
    for k in range(n_classes):
        for n in range(n_samples):
            classes[k, n] = k
            cells[k, n] += np.uint32(k * n_cells)
    of_cells(mixed, classes, cells, shares, n_classes * n_cells, drawn, out)
    for d in range(out.shape[0]):
        out[d] /= n_classes


ClasswiseECE.value = staticmethod(_value)
ClasswiseECE.accumulate = staticmethod(_accumulate)
ClasswiseECE.finish = staticmethod(_finish)


@dataclass(frozen=True, kw_only=True)
class _OverEntries(ClasswiseECE):
    """Classwise ECE of the probabilities that can leave the first bin, and of the sums of the others."""

    of_draws: ClassVar[Callable[..., None]]
    n_all_classes: int

    def of_labellings(self, n_classes: int) -> Callable[..., None] | None:
        return None

    def state_size(self, n_classes: int) -> int:
        return super().state_size(self.n_all_classes)


@compiled_value
def _value_of_entries(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    n_entries, n_bins = int(parameters[0]), int(parameters[1])
    edges = parameters[2 : n_bins + 3]
    codes = parameters[n_bins + 3 :].view(np.uint32)
    probabilities = mixed[0]
    cells, _, without, is_there = _rooms(scratch, n_entries, 0, state.shape[0])
    once = all_once(row_weights)
    if not again(scratch):
        bin_indices(probabilities[:n_entries], edges, cells)
        for entry in range(n_entries):
            cells[entry] += codes[entry]
        is_there[0] = 0.0
    if is_there[0] == 0.0 or not once:
        fill(without, 0.0)
        for entry in range(n_entries):
            without[cells[entry]] -= row_weights[codes[n_entries + entry]] * probabilities[entry]
        for k in range(probabilities.shape[0] - n_entries):
            without[k * n_bins] -= probabilities[n_entries + k]
        is_there[0] = 1.0 if once else 0.0
    copy(without, state)
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

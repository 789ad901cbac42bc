"""Confidence ECE: does the top class come true as often as it claims?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_part, compiled_value
from hullcal._compiled.mixing import fill
from hullcal._compiled.sums import absolute_distance
from hullcal._validation import check_integer
from hullcal.binning import bin_index, bin_indices, edges
from hullcal.measures._base import ROUNDING, Floats, Measure, as_floats


@dataclass(frozen=True, kw_only=True)
class ConfidenceECE(Measure):
    r"""Expected calibration error of the predicted class (Eq. 6).

    .. math:: \sum_{j=1}^{B} \frac{|\mathcal{B}_j|}{N}
              |\mathrm{Acc}(\mathcal{B}_j) - \mathrm{c}(\mathcal{B}_j)|

    Equal-width bins of the largest probability; ties in the argmax go to the lowest class.
    Cost: N·K. The residual vector has B entries, the signed gaps.

    Examples
    --------
    >>> ConfidenceECE(n_bins=2)([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.25
    """

    name: ClassVar[str] = "ece_conf"
    notion: ClassVar[str] = "confidence"
    n_bins: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_bins", check_integer(self.n_bins, "n_bins", 1))

    def parameters(self, average: NDArray[np.floating]) -> Floats:
        return edges(self.n_bins)

    def state_size(self, n_classes: int) -> int:
        return self.n_bins

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        return 3 * n_samples + _STRANDS * self.n_bins

    def over_entries(self, n_classes: int, n_samples: int) -> Measure | None:
        if type(self).value is not ConfidenceECE.value:
            return None  # a subclass with a loop of its own
        return _OverEntries(n_bins=self.n_bins, n_rows=n_samples)

    def matters(self, members: Floats) -> NDArray[np.bool_]:
        # A class whose largest probability is below another's smallest is never predicted, nor is one
        # that is below another in every member.
        least: Floats = members.min(axis=0)
        largest: Floats = members.max(axis=0)
        found: NDArray[np.bool_] = largest >= least.max(axis=0) * (1.0 - ROUNDING)
        _leave_out_dominated(members, least, found)
        return found

    def entry_parameters(
        self, rows: NDArray[np.int32], classes: NDArray[np.int32], n_samples: int
    ) -> Floats:
        ends = np.searchsorted(rows, np.arange(n_samples), side="right")
        return np.concatenate([self.parameters(np.empty((0, 0))), as_floats(ends)])


@compiled_part
def _top_class(mixed, confidence, predicted):  # type: ignore[no-untyped-def]
    """Largest probability and its lowest class, four classes a pass to spare loads and stores."""
    n_classes, n_samples = mixed.shape
    for n in range(n_samples):
        confidence[n] = mixed[0, n]
        predicted[n] = 0.0
    k = 1
    while k + 3 < n_classes:
        for n in range(n_samples):
            top, arg = confidence[n], predicted[n]
            p = mixed[k, n]
            arg, top = (float(k), p) if p > top else (arg, top)
            p = mixed[k + 1, n]
            arg, top = (k + 1.0, p) if p > top else (arg, top)
            p = mixed[k + 2, n]
            arg, top = (k + 2.0, p) if p > top else (arg, top)
            p = mixed[k + 3, n]
            arg, top = (k + 3.0, p) if p > top else (arg, top)
            confidence[n], predicted[n] = top, arg
        k += 4
    while k < n_classes:
        for n in range(n_samples):
            p = mixed[k, n]
            arg, top = (float(k), p) if p > confidence[n] else (predicted[n], confidence[n])
            confidence[n], predicted[n] = top, arg
        k += 1


#: Sums kept for each bin. Neighbouring rows often share a bin, and an addition to a sum has to wait
#: for the last one.
_STRANDS = 8


@compiled_part
def _add_up(labels, row_weights, edges, confidence, gap, sums, bins, state):  # type: ignore[no-untyped-def]
    """Gaps of all rows into their bins; `gap` holds the predicted class before."""
    n_samples, n_bins = confidence.shape[0], state.shape[0]
    bin_indices(confidence, edges, bins)
    for n in range(n_samples):
        hit = 1.0 if gap[n] == labels[n] else 0.0
        gap[n] = row_weights[n] * (hit - confidence[n])
    fill(sums, 0.0)
    whole = n_samples - n_samples % _STRANDS
    for n in range(0, whole, _STRANDS):
        for s in range(_STRANDS):
            sums[np.uint32(_STRANDS) * bins[n + s] + np.uint32(s)] += gap[n + s]
    for n in range(whole, n_samples):
        sums[np.uint32(_STRANDS) * bins[n]] += gap[n]
    for j in range(n_bins):
        for s in range(_STRANDS):
            state[j] += sums[_STRANDS * j + s]


@compiled_value
def _accumulate(mixed, labels, row_weights, edges, state, scratch):  # type: ignore[no-untyped-def]
    n_samples = mixed.shape[1]
    n_bins = state.shape[0]
    confidence = scratch[:n_samples]
    gap = scratch[n_samples : 2 * n_samples]
    sums = scratch[2 * n_samples : 2 * n_samples + _STRANDS * n_bins]
    # Unsigned, since a bin is never counted from the end.
    bins = scratch[2 * n_samples + _STRANDS * n_bins :].view(np.uint32)
    _top_class(mixed, confidence, gap)
    _add_up(labels, row_weights, edges, confidence, gap, sums, bins, state)


@compiled_part
def _finish(state, offset, edges, n_samples):  # type: ignore[no-untyped-def]
    for j in range(state.shape[0]):
        state[j] /= n_samples
    return absolute_distance(state, offset)


@compiled_value
def _value(mixed, labels, row_weights, edges, offset, state, scratch):  # type: ignore[no-untyped-def]
    fill(state, 0.0)
    _accumulate(mixed, labels, row_weights, edges, state, scratch)
    return _finish(state, offset, edges, mixed.shape[1])


ConfidenceECE.value = staticmethod(_value)
ConfidenceECE.accumulate = staticmethod(_accumulate)
ConfidenceECE.finish = staticmethod(_finish)


#: Classes of a row that may dominate others: those with the largest smallest probabilities.
_STRONG = 12


@compiled
def _leave_out_dominated(members, least, found):  # type: ignore[no-untyped-def]
    """Take out of `found` the classes that some strong class of their row exceeds in every member.

    Where a member gives 0 it need not be exceeded: at weights that leave a class 0, it is not the
    largest.
    """
    n_members, n_classes, n_rows = members.shape
    strong = np.empty(_STRONG, dtype=np.int64)
    for n in range(n_rows):
        n_strong = 0
        for k in range(n_classes):
            if not found[k, n]:
                continue
            # Kept in order, the strongest first.
            place = n_strong
            while place > 0 and least[strong[place - 1], n] < least[k, n]:
                if place < _STRONG:
                    strong[place] = strong[place - 1]
                place -= 1
            if place < _STRONG:
                strong[place] = k
                n_strong = min(n_strong + 1, _STRONG)
        for k in range(n_classes):
            if not found[k, n]:
                continue
            for s in range(n_strong):
                m = 0
                while m < n_members and (
                    members[m, k, n] == 0.0
                    or members[m, k, n] < members[m, strong[s], n] * (1.0 - ROUNDING)
                ):
                    m += 1
                if m == n_members:
                    found[k, n] = False
                    break


@dataclass(frozen=True, kw_only=True)
class _OverEntries(ConfidenceECE):
    """Confidence ECE of the classes that can be predicted."""

    of_draws: ClassVar[Callable[..., None]]
    n_rows: int

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        return super().scratch_size(n_classes, self.n_rows)


@compiled_value
def _value_of_entries(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    n_samples, n_bins = row_weights.shape[0], state.shape[0]
    edges = parameters[: n_bins + 1]
    ends = parameters[n_bins + 1 :].view(np.uint32)
    confidence = scratch[:n_samples]
    predicted = scratch[n_samples : 2 * n_samples]
    sums = scratch[2 * n_samples : 2 * n_samples + _STRANDS * n_bins]
    bins = scratch[2 * n_samples + _STRANDS * n_bins :].view(np.uint32)
    probabilities = mixed[0]
    first = 0
    for n in range(n_samples):
        top, arg = probabilities[first], first
        for entry in range(first + 1, ends[n]):
            if probabilities[entry] > top:
                top, arg = probabilities[entry], entry
        confidence[n], predicted[n] = top, float(arg)
        first = ends[n]
    fill(state, 0.0)
    _add_up(labels, row_weights, edges, confidence, predicted, sums, bins, state)
    return _finish(state, offset, edges, n_samples)


_OverEntries.value = staticmethod(_value_of_entries)


@compiled
def _of_draws(mixed, classes, bounds, ends, labels, edges, state):  # type: ignore[no-untyped-def]
    """Gaps of rows drawn any number of times, each time with a label of its own, into their bins."""
    for n in range(ends.shape[0] - 1):
        if ends[n] == ends[n + 1]:
            continue
        top = bounds[n]
        for entry in range(bounds[n] + 1, bounds[n + 1]):
            if mixed[entry] > mixed[top]:
                top = entry
        hits = 0
        for draw in range(ends[n], ends[n + 1]):
            hits += int(labels[draw] == classes[top])
        count = float(ends[n + 1] - ends[n])
        state[bin_index(mixed[top], edges)] += hits - count * mixed[top]


_OverEntries.of_draws = staticmethod(_of_draws)

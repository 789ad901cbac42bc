"""Confidence ECE: does the top class come true as often as it claims?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_inline, compiled_part, compiled_value
from hullcal._compiled.mixing import fill
from hullcal._compiled.places import again
from hullcal._compiled.sums import absolute_distance
from hullcal.binning import bin_index, bin_indices
from hullcal.measures._base import ROUNDING, Floats, Measure, as_floats
from hullcal.measures._ece import ECE, add_to_hats, either, hat_of, hats_of


@dataclass(frozen=True, kw_only=True)
class ConfidenceECE(ECE):
    r"""Expected calibration error of the predicted class (Eq. 6).

    .. math:: \sum_{j=1}^{B} \frac{|\mathcal{B}_j|}{N}
              |\mathrm{Acc}(\mathcal{B}_j) - \mathrm{c}(\mathcal{B}_j)|

    Equal-width bins of the largest probability; ties in the argmax go to the lowest class.
    Cost: N·K. The residual vector has B entries, the signed gaps.

    With ``smooth=True``, named ``"ece_conf_smooth"``, hat functions stand for the bins: with c the
    largest probability of a row and h = 1 if its class came true, else 0,

    .. math:: \sum_{j=0}^{B} \Bigl|\frac1N \sum_{i=1}^{N} \varphi_j(c_i)\,(h_i - c_i)\Bigr|, \qquad
              \varphi_j(c) = \max(0,\, 1 - |cB - j|).

    It is continuous in c, where a row that crosses an edge takes its whole gap to another bin
    otherwise. The residual vector has B + 1 entries.

    Examples
    --------
    >>> ConfidenceECE(n_bins=2)([[0.75, 0.25], [0.75, 0.25]], [0, 1])
    0.25
    >>> ConfidenceECE(n_bins=2, smooth=True)([[0.5, 0.5], [0.75, 0.25]], [0, 1])
    0.25
    """

    notion: ClassVar[str] = "confidence"
    plain_name: ClassVar[str] = "ece_conf"

    def state_size(self, n_classes: int) -> int:
        return self.n_bins + int(self.smooth)

    def scratch_size(self, n_classes: int, n_samples: int) -> int:
        # Confidence, predicted class, gap, hat or bin and share in the next hat; strands; the mark.
        return 6 * n_samples + _STRANDS * (self.n_bins + 1) + 1

    def over_entries(self, n_classes: int, n_samples: int) -> Measure | None:
        if type(self).value is not ConfidenceECE.value:
            return None  # a subclass with a loop of its own
        return _OverEntries(n_bins=self.n_bins, smooth=self.smooth, n_rows=n_samples)

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


@compiled_part
def _gaps(labels, row_weights, confidence, predicted, gap):  # type: ignore[no-untyped-def]
    for n in range(confidence.shape[0]):
        hit = 1.0 if predicted[n] == labels[n] else 0.0
        gap[n] = row_weights[n] * (hit - confidence[n])


#: Sums kept for each bin. Neighbouring rows often share a bin, and an addition to a sum has to wait
#: for the last one.
_STRANDS = 8


@compiled_part
def _add_up(gap, bins, sums, state):  # type: ignore[no-untyped-def]
    """Gaps of all rows into their bins."""
    n_samples, n_bins = gap.shape[0], state.shape[0]
    for i in range(_STRANDS * n_bins):
        sums[i] = 0.0
    whole = n_samples - n_samples % _STRANDS
    for n in range(0, whole, _STRANDS):
        for s in range(_STRANDS):
            sums[np.uint32(s * n_bins) + bins[n + s]] += gap[n + s]
    for n in range(whole, n_samples):
        sums[bins[n]] += gap[n]
    for s in range(_STRANDS):
        for j in range(n_bins):
            state[j] += sums[s * n_bins + j]


@compiled_part
def _rooms(scratch, n_samples):  # type: ignore[no-untyped-def]
    """Confidence, predicted class, gap, bins (unsigned, since none is counted from the end), the rest."""
    return (
        scratch[:n_samples],
        scratch[n_samples : 2 * n_samples],
        scratch[2 * n_samples : 3 * n_samples],
        scratch[3 * n_samples : 4 * n_samples].view(np.uint32),
        scratch[4 * n_samples : -1],
    )


@compiled_value
def _accumulate(mixed, labels, row_weights, edges, state, scratch):  # type: ignore[no-untyped-def]
    confidence, predicted, gap, bins, sums = _rooms(scratch, mixed.shape[1])
    if not again(scratch):
        _top_class(mixed, confidence, predicted)
        bin_indices(confidence, edges, bins)
    _gaps(labels, row_weights, confidence, predicted, gap)
    _add_up(gap, bins, sums, state)


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


@compiled_value
def _accumulate_smooth(mixed, labels, row_weights, edges, state, scratch):  # type: ignore[no-untyped-def]
    confidence, predicted, gap, hats, rest = _rooms(scratch, mixed.shape[1])
    if not again(scratch):
        _top_class(mixed, confidence, predicted)
        hats_of(confidence, state.shape[0], hats, rest)
    _gaps(labels, row_weights, confidence, predicted, gap)
    add_to_hats(gap, hats, rest, state)


@compiled_value
def _value_smooth(mixed, labels, row_weights, edges, offset, state, scratch):  # type: ignore[no-untyped-def]
    fill(state, 0.0)
    _accumulate_smooth(mixed, labels, row_weights, edges, state, scratch)
    return _finish(state, offset, edges, mixed.shape[1])


ConfidenceECE.value = either(_value, _value_smooth)
ConfidenceECE.accumulate = either(_accumulate, _accumulate_smooth)
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


@compiled_part
def _top_entries(probabilities, ends, confidence, predicted):  # type: ignore[no-untyped-def]
    """Largest probability of each row and its first entry."""
    first = 0
    for n in range(confidence.shape[0]):
        top, arg = probabilities[first], first
        for entry in range(first + 1, ends[n]):
            if probabilities[entry] > top:
                top, arg = probabilities[entry], entry
        confidence[n], predicted[n] = top, float(arg)
        first = ends[n]


@compiled_value
def _value_of_entries(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    n_samples, n_bins = row_weights.shape[0], state.shape[0]
    edges = parameters[: n_bins + 1]
    confidence, predicted, gap, bins, sums = _rooms(scratch, n_samples)
    if not again(scratch):
        _top_entries(mixed[0], parameters[n_bins + 1 :].view(np.uint32), confidence, predicted)
        bin_indices(confidence, edges, bins)
    fill(state, 0.0)
    _gaps(labels, row_weights, confidence, predicted, gap)
    _add_up(gap, bins, sums, state)
    return _finish(state, offset, edges, n_samples)


@compiled_value
def _value_of_entries_smooth(mixed, labels, row_weights, parameters, offset, state, scratch):  # type: ignore[no-untyped-def]
    # There are as many edges as hats.
    n_samples, n_hats = row_weights.shape[0], state.shape[0]
    edges = parameters[:n_hats]
    confidence, predicted, gap, hats, rest = _rooms(scratch, n_samples)
    if not again(scratch):
        _top_entries(mixed[0], parameters[n_hats:].view(np.uint32), confidence, predicted)
        hats_of(confidence, n_hats, hats, rest)
    fill(state, 0.0)
    _gaps(labels, row_weights, confidence, predicted, gap)
    add_to_hats(gap, hats, rest, state)
    return _finish(state, offset, edges, n_samples)


_OverEntries.value = either(_value_of_entries, _value_of_entries_smooth)


@compiled
def _of_draws(mixed, classes, bounds, ends, labels, edges, state):  # type: ignore[no-untyped-def]
    """Gaps of rows drawn any number of times, each time with a label of its own, into their bins."""
    for n in range(ends.shape[0] - 1):
        if ends[n] == ends[n + 1]:
            continue
        confidence, gap = _drawn(mixed, classes, bounds, ends, labels, n)
        state[bin_index(confidence, edges)] += gap


@compiled
def _of_draws_smooth(mixed, classes, bounds, ends, labels, edges, state):  # type: ignore[no-untyped-def]
    """The same, shared out between two hats."""
    for n in range(ends.shape[0] - 1):
        if ends[n] == ends[n + 1]:
            continue
        confidence, gap = _drawn(mixed, classes, bounds, ends, labels, n)
        hat, share = hat_of(confidence, state.shape[0])
        state[hat] += gap * (1.0 - share)
        state[hat + 1] += gap * share


@compiled_inline
def _drawn(mixed, classes, bounds, ends, labels, n):  # type: ignore[no-untyped-def]
    """The largest probability of row n, and the gap of its draws together."""
    top = bounds[n]
    for entry in range(bounds[n] + 1, bounds[n + 1]):
        if mixed[entry] > mixed[top]:
            top = entry
    hits = 0
    for draw in range(ends[n], ends[n + 1]):
        hits += int(labels[draw] == classes[top])
    count = float(ends[n + 1] - ends[n])
    return mixed[top], hits - count * mixed[top]


_OverEntries.of_draws = either(_of_draws, _of_draws_smooth)

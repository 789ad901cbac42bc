"""Confidence ECE: does the top class come true as often as it claims?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled, compiled_part, compiled_value
from hullcal._compiled.mixing import absolute_distance, again, fill
from hullcal.binning import bin_index
from hullcal.measures._base import ROUNDING, Floats, Measure, as_floats
from hullcal.measures._ece import ECE, hat_of, is_smooth, of_cells, places_of


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
        # Confidence, predicted class, gap, bin or hat, share in the next hat; strands; the mark.
        return 5 * n_samples + _STRANDS * (self.n_bins + 1) + 1

    def of_labellings(self, n_classes: int) -> Callable[..., None] | None:
        return None if type(self).value is not ConfidenceECE.value else _of_labellings

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
        bins = self.parameters(np.empty((0, 0)))
        numbers = np.concatenate([ends, classes])
        return np.concatenate([[len(bins)], bins, as_floats(numbers)])


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


#: Sums kept for each bin or hat. Neighbouring rows often share one, and an addition to a sum has to
#: wait for the last one.
_STRANDS = 8


@compiled_part
def _rooms(scratch, n_samples):  # type: ignore[no-untyped-def]
    """Confidence, predicted class, gap, places (unsigned, none is counted from the end), shares, sums."""
    return (
        scratch[:n_samples],
        scratch[n_samples : 2 * n_samples],
        scratch[2 * n_samples : 3 * n_samples],
        scratch[3 * n_samples : 4 * n_samples].view(np.uint32),
        scratch[4 * n_samples : 5 * n_samples],
        scratch[5 * n_samples : -1],
    )


@compiled_part
def _add_gaps(labels, row_weights, rooms, smooth, state):  # type: ignore[no-untyped-def]
    """Gaps of all rows into their bins, or shared out between two hats."""
    n_samples, n_places = row_weights.shape[0], state.shape[0]
    confidence, predicted, gap, places, shares, sums = rooms
    for n in range(n_samples):
        hit = 1.0 if predicted[n] == labels[n] else 0.0
        gap[n] = row_weights[n] * (hit - confidence[n])
    for i in range(_STRANDS * n_places):
        sums[i] = 0.0
    whole = n_samples - n_samples % _STRANDS
    if smooth:
        for n in range(0, whole, _STRANDS):
            for s in range(_STRANDS):
                at = np.uint32(s * n_places) + places[n + s]
                upper = gap[n + s] * shares[n + s]
                sums[at] += gap[n + s] - upper
                sums[at + np.uint32(1)] += upper
        for n in range(whole, n_samples):
            upper = gap[n] * shares[n]
            sums[places[n]] += gap[n] - upper
            sums[places[n] + np.uint32(1)] += upper
    else:
        for n in range(0, whole, _STRANDS):
            for s in range(_STRANDS):
                sums[np.uint32(s * n_places) + places[n + s]] += gap[n + s]
        for n in range(whole, n_samples):
            sums[places[n]] += gap[n]
    for s in range(_STRANDS):
        for j in range(n_places):
            state[j] += sums[s * n_places + j]


@compiled_value
def _accumulate(mixed, labels, row_weights, edges, state, scratch):  # type: ignore[no-untyped-def]
    rooms = _rooms(scratch, mixed.shape[1])
    confidence, predicted, _, places, shares, _ = rooms
    if not again(scratch):
        _top_class(mixed, confidence, predicted)
        places_of(confidence, edges, places, shares)
    _add_gaps(labels, row_weights, rooms, is_smooth(edges), state)


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
def _of_labellings(mixed, drawn, edges, out):  # type: ignore[no-untyped-def]
    n_samples = mixed.shape[1]
    confidence, predicted = np.empty((1, n_samples)), np.empty(n_samples)
    _top_class(mixed, confidence[0], predicted)
    _of_top(confidence, predicted.astype(np.uint16), edges, drawn, out)


@compiled
def _of_top(confidence, predicted, edges, drawn, out):  # type: ignore[no-untyped-def]
    n_samples, smooth = predicted.shape[0], is_smooth(edges)
    places = np.empty((1, n_samples), dtype=np.uint32)
    shares = np.empty((1 if smooth else 0, n_samples))
    places_of(confidence[0], edges, places[0], shares.reshape(-1))
    n_cells = edges.shape[0] - int(not smooth)
    of_cells(confidence, predicted.reshape(1, n_samples), places, shares, n_cells, drawn, out)


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

    def of_labellings(self, n_classes: int) -> Callable[..., None] | None:
        return _of_labellings_of_entries


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
    n_samples, n_edges = row_weights.shape[0], int(parameters[0])
    edges = parameters[1 : n_edges + 1]
    ends = parameters[n_edges + 1 :].view(np.uint32)[:n_samples]
    rooms = _rooms(scratch, n_samples)
    confidence, predicted, _, places, shares, _ = rooms
    if not again(scratch):
        _top_entries(mixed[0], ends, confidence, predicted)
        places_of(confidence, edges, places, shares)
    fill(state, 0.0)
    _add_gaps(labels, row_weights, rooms, is_smooth(edges), state)
    return _finish(state, offset, edges, n_samples)


@compiled_value
def _of_labellings_of_entries(mixed, drawn, parameters, out):  # type: ignore[no-untyped-def]
    n_samples, n_edges = drawn.shape[0], int(parameters[0])
    numbers = parameters[n_edges + 1 :].view(np.uint32)
    confidence, predicted = np.empty((1, n_samples)), np.empty(n_samples)
    _top_entries(mixed[0], numbers[:n_samples], confidence[0], predicted)
    classes = np.empty(n_samples, dtype=np.uint16)
    for n in range(n_samples):
        classes[n] = numbers[n_samples + int(predicted[n])]
    _of_top(confidence, classes, parameters[1 : n_edges + 1], drawn, out)


@compiled
def _of_draws(mixed, classes, bounds, ends, labels, edges, state):  # type: ignore[no-untyped-def]
    """Gaps of rows drawn any number of times, each time with a label of its own, into their places."""
    smooth = is_smooth(edges)
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
        gap = hits - float(ends[n + 1] - ends[n]) * mixed[top]
        if smooth:
            hat, share = hat_of(mixed[top], edges.shape[0])
            state[hat] += gap * (1.0 - share)
            state[hat + 1] += gap * share
        else:
            state[bin_index(mixed[top], edges)] += gap


_OverEntries.value = staticmethod(_value_of_entries)
_OverEntries.of_draws = staticmethod(_of_draws)

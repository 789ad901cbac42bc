"""Exact search for two members: every breakpoint of a binned measure along the segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import F1, F2, F3, I2, INT, driver
from hullcal._compiled.mixing import mix
from hullcal.engines.objective import Objective
from hullcal.engines.packed import Packed
from hullcal.measures import Measure
from hullcal.measures.ece_conf import ConfidenceECE
from hullcal.measures.ece_cwise import ClasswiseECE
from hullcal.minimizers._base import Minima, Minimizer


@dataclass(frozen=True, kw_only=True)
class Exact(Minimizer):
    r"""The global minimum for M = 2 of the two expected calibration errors.

    With :math:`p(s) = (1-s)\,p^{(1)} + s\,p^{(2)}`, the predicted classes and the bins change only at
    finitely many *breakpoints* s. Between two neighbours each signed gap is linear in s, so g is
    convex and piecewise linear there, and its minimum over the closed cell is at an end of the cell or
    where a gap vanishes. All of these are visited. At an end, g of the open cell may be lower than g
    at the breakpoint itself (bins are half open); the minimum is then an infimum, and the answer is a
    point within 1e-12 of it. Cost: quadratic in N; `max_evaluations` does not limit it.
    """

    name: ClassVar[str] = "exact"
    needs_predictions: ClassVar[bool] = True
    any_function: ClassVar[bool] = False
    over_entries: ClassVar[bool] = False

    def check(self, measure: Measure, n_members: int) -> None:
        if n_members > 2:
            raise self._refuse(f"a set of {n_members} members", 'use minimizer="pairwise"')
        if not isinstance(measure, ConfidenceECE | ClasswiseECE):
            raise self._refuse(
                f"measure `{measure.name}`", 'use minimizer="pairwise", or an ECE measure'
            )

    def search(self, objective: Objective, key: NDArray[np.uint64]) -> Minima:
        assert isinstance(objective, Packed)
        minima = Minima.empty(objective.n_cases, 2)
        crossings = isinstance(objective.measure, ConfidenceECE)
        breakpoints = _breakpoints(objective.members, objective.parameters[1:-1], crossings)
        points = np.empty(objective.n_cases)
        evaluations = np.empty(objective.n_cases)
        _sweep(
            objective.measure.value,
            objective.members,
            objective.labels,
            objective.row_weights,
            objective.parameters,
            objective.offset,
            *objective.sizes,
            breakpoints,
            points,
            minima.values,
            evaluations,
        )
        minima.weights[:] = np.stack([1.0 - points, points], axis=1)
        minima.n_evaluations[:] = evaluations
        minima.converged[:] = True
        return minima


#: How far inside a cell a limit at its end is approached: close enough that equal limits are ties.
_INSIDE = 2e-15


def _breakpoints(
    members: NDArray[np.float64], inner_edges: NDArray[np.float64], crossings: bool
) -> NDArray[np.float64]:
    """All s in [0, 1] where a probability meets a bin edge or, for confidence, two classes tie."""
    start, slope = members[0], members[1] - members[0]
    meets = [np.array([0.0, 1.0])]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for edge in inner_edges:
            meets.append(((edge - start) / slope).ravel())
        if crossings:
            for k in range(1, len(start)):
                meets.append(((start[:k] - start[k]) / (slope[k] - slope[:k])).ravel())
    points = np.concatenate(meets)
    return np.unique(points[(points >= 0.0) & (points <= 1.0)])


@driver(F3, I2, F2, F1, F1, INT, INT, F1, F1, F1, F1)
def _sweep(  # type: ignore[no-untyped-def]
    value, members, labels, row_weights, parameters, offset, state_size, scratch_size,
    breakpoints, points, values, evaluations,
):  # fmt: skip
    mixed = np.empty(members.shape[1:])
    weights = np.empty(2)
    state = np.zeros(state_size)
    scratch = np.zeros(scratch_size)
    left = np.empty(state_size)
    candidates = np.empty(state_size + 4)
    for case in range(labels.shape[0]):
        best, best_point, count = np.inf, 0.0, 0
        for cell in range(breakpoints.shape[0]):
            low = breakpoints[cell]
            high = breakpoints[min(cell + 1, breakpoints.shape[0] - 1)]
            n_candidates = 1
            candidates[0] = low
            if high - low > 4.0 * _INSIDE:
                # Two points inside the cell give every gap's line, and so where it vanishes.
                a, b = low + 0.25 * (high - low), low + 0.75 * (high - low)
                for point in (a, b):
                    weights[0], weights[1] = 1.0 - point, point
                    mix(members, weights, mixed)
                    value(
                        mixed, labels[case], row_weights[case], parameters, offset, state, scratch
                    )
                    if point == a:
                        left[:] = state
                count += 2
                candidates[1] = low + _INSIDE
                candidates[2] = high - _INSIDE
                n_candidates = 3
                best_inside = -1.0
                lowest = np.inf
                for j in range(state_size):
                    rise = state[j] - left[j]
                    if rise != 0.0:
                        zero = a + (offset[j] - left[j]) / rise * (b - a)
                        if low < zero < high:
                            # Of the zeros only the lowest can matter; the lines tell which it is.
                            total = 0.0
                            for i in range(state_size):
                                slope = (state[i] - left[i]) / (b - a)
                                total += abs(left[i] + slope * (zero - a) - offset[i])
                            if total < lowest:
                                lowest = total
                                best_inside = zero
                if best_inside >= 0.0:
                    candidates[3] = best_inside
                    n_candidates = 4
            for c in range(n_candidates):
                weights[0], weights[1] = 1.0 - candidates[c], candidates[c]
                mix(members, weights, mixed)
                g = value(
                    mixed, labels[case], row_weights[case], parameters, offset, state, scratch
                )
                count += 1
                if g < best:
                    best, best_point = g, candidates[c]
        points[case], values[case], evaluations[case] = best_point, best, count

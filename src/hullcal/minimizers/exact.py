"""Exact search for two members: every breakpoint of a binned measure along the segment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import F1, F2, F3, I2, INT, compiled, driver
from hullcal._compiled.mixing import mix
from hullcal.measures import Measure
from hullcal.measures.ece_conf import ConfidenceECE
from hullcal.measures.ece_cwise import ClasswiseECE
from hullcal.minimizers._base import Minima, Minimizer
from hullcal.objectives.base import Function
from hullcal.objectives.memory import InMemory


@dataclass(frozen=True, kw_only=True)
class Exact(Minimizer):
    r"""The global minimum for M = 2 of the two expected calibration errors.

    With :math:`p(s) = (1-s)\,p^{(1)} + s\,p^{(2)}`, the predicted classes and the bins change only at
    finitely many *breakpoints* s. Between two neighbours each signed gap is linear in s, so g is
    convex and piecewise linear there, and its minimum over the closed cell is at an end of the cell or
    where a gap vanishes. All of these are visited. At an end, g of the open cell may be lower than g
    at the breakpoint itself (bins are half open); the minimum is then an infimum, and the answer is a
    point inside the cell, as near to its end as rounding lets a row change its bin. The value there is
    within 1e-12 of the infimum unless members differ by less than a thousandth in the row that
    changes and by far more in others. Cost: quadratic in N; `max_evaluations` does not limit it.
    """

    name: ClassVar[str] = "exact"
    needs: ClassVar[frozenset[str]] = frozenset({"measure", "predictions", "classes"})

    def check(self, measure: Measure, n_members: int) -> None:
        if n_members > 2:
            raise self._refuse(f"a set of {n_members} members", 'use minimizer="steepest"')
        # Between breakpoints the gaps of a smooth measure are parabolas, not lines.
        if not isinstance(measure, ConfidenceECE | ClasswiseECE) or measure.smooth:
            raise self._refuse(
                f"measure `{measure.name}`", 'use minimizer="steepest", "ece_conf" or "ece_cwise"'
            )

    def search(self, objective: Function, key: NDArray[np.uint64]) -> Minima:
        assert isinstance(objective, InMemory)
        minima = Minima.empty(objective.n_cases, 2)
        crossings = isinstance(objective.measure, ConfidenceECE)
        breakpoints = _breakpoints(objective.members, objective.parameters[1:-1], crossings)
        points = np.empty(objective.n_cases)
        evaluations = np.empty(objective.n_cases)
        _sweep(*objective.loop, breakpoints, points, minima.values, evaluations)
        minima.weights[:] = np.stack([1.0 - points, points], axis=1)
        minima.n_evaluations[:] = evaluations
        minima.converged[:] = True
        return minima


#: How far inside a cell a limit at its end is approached first: so near that equal limits are ties.
_INSIDE = 2e-15
#: The next step, where the rows that change at the end have not changed yet for rounding.
_FURTHER = 4.0
#: How well gaps inside a cell agree with their lines.
_AGREES = 1e-12


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


@compiled
def _on_lines(left, right, offset, share):  # type: ignore[no-untyped-def]
    """Sum of the gaps, each of which has gone this share of the way from `left` to `right`."""
    total = 0.0
    for i in range(left.shape[0]):
        total += abs(left[i] + share * (right[i] - left[i]) - offset[i])
    return total


@driver(F3, I2, F2, F1, F1, INT, INT, F1, F1, F1, F1)
def _sweep(  # type: ignore[no-untyped-def]
    value, members, labels, row_weights, parameters, offset, state_size, scratch_size,
    breakpoints, points, values, evaluations,
):  # fmt: skip
    mixed = np.empty(members.shape[1:])
    weights = np.empty(2)
    state = np.zeros(state_size)
    scratch = np.zeros(scratch_size)
    left, right = np.empty(state_size), np.empty(state_size)
    candidates = np.empty(2)
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
                    else:
                        right[:] = state
                count += 2
                for sign in (1.0, -1.0):
                    step = _INSIDE
                    while step < 0.25 * (high - low):
                        point = low + step if sign > 0.0 else high - step
                        weights[0], weights[1] = 1.0 - point, point
                        mix(members, weights, mixed)
                        g = value(
                            mixed,
                            labels[case],
                            row_weights[case],
                            parameters,
                            offset,
                            state,
                            scratch,
                        )
                        count += 1
                        if g < best:
                            best, best_point = g, point
                        expected = _on_lines(left, right, offset, (point - a) / (b - a))
                        if abs(_on_lines(state, state, offset, 0.0) - expected) <= _AGREES:
                            break
                        step *= _FURTHER
                lowest = np.inf
                for j in range(state_size):
                    rise = right[j] - left[j]
                    if rise != 0.0:
                        zero = a + (offset[j] - left[j]) / rise * (b - a)
                        if low < zero < high:
                            # Of the zeros only the lowest can matter; the lines tell which it is.
                            total = _on_lines(left, right, offset, (zero - a) / (b - a))
                            if total < lowest:
                                lowest = total
                                candidates[1] = zero
                                n_candidates = 2
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

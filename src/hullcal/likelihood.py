"""The best combination: maximum likelihood by passes over the rows, with its certificate.

Every fit is for several *cases* at once (labellings, or the first so many rows), and asks for nothing
but sums over rows, so the same code serves arrays in memory, blocks of rows and a Dask cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hullcal._compiled.jit import compiled
from hullcal.objectives import _row_loops as loops
from hullcal.objectives.base import Floats
from hullcal.objectives.chunked import Cases, Job, Passes, Rows

#: A fit ends when no combination can be likelier by more.
TOLERANCE = 1e-9
MOST_PASSES = 100
#: Positive probabilities below this count as this: a weight times less can vanish.
_LEAST = 1e-300


@dataclass(frozen=True)
class Mixture:
    """The likeliest combination of each case.

    Attributes
    ----------
    weights : ndarray of shape (n_cases, n_members)
    log_likelihoods : ndarray of shape (n_cases,)
        Over rows whose label has a positive probability by some member.
    gaps : ndarray of shape (n_cases,)
        No combination is likelier by more than this: the certificate of `upper_bounds`.
    n_rows : ndarray of shape (n_cases,)
        Rows that count, with a label that some member thought possible.
    """

    weights: Floats
    log_likelihoods: Floats
    gaps: Floats
    n_rows: Floats

    @property
    def upper_bounds(self) -> Floats:
        """At least the largest log-likelihood of any combination, whether the fit converged or not."""
        return self.log_likelihoods + self.gaps


def fit_mixture(
    passes: Passes, cases: Cases, start: Floats | None = None, n_steps: int = MOST_PASSES
) -> Mixture:
    r"""Maximise :math:`\ell(\lambda) = \sum_i \log p_\lambda(y_i|x_i)` over the simplex, case by case.

    Newton's method with a non-negative quadratic programme for each step (Kim et al. 2020). With
    :math:`D_m = \frac1N \sum_i p^{(m)}(y_i|x_i) / p_\lambda(y_i|x_i)` Jensen's inequality gives
    :math:`\ell(\mu) \le \ell(\lambda) + N \log \max_m D_m` for all :math:`\mu`.
    """
    n_cases, n_members = len(cases), len(passes.positions)
    mean = np.full((n_cases, n_members), 1.0 / n_members)

    def evaluated(at: Floats, which: NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        job = _MixtureSums(cases=cases.only(which), at=at, **passes.sizes)
        sums = passes.total(job)
        n_rows = sums[:, 1]
        shares = sums[:, 2 : 2 + n_members] / np.maximum(n_rows, 1.0)[:, np.newaxis]
        curvature = sums[:, 2 + n_members :].reshape(-1, n_members, n_members)
        curvature /= np.maximum(n_rows, 1.0)[:, np.newaxis, np.newaxis]
        counts[which] = n_rows
        # Without a row nothing can be gained.
        largest = np.where(n_rows > 0.0, shares.max(axis=1), 1.0)
        certificates[which] = n_rows * np.log(np.maximum(largest, 1.0))
        goals = np.empty_like(at)
        _next_weights(curvature, shares, at, goals)
        tolerance = np.maximum(TOLERANCE, 8.0 * np.finfo(float).eps * n_rows)
        steps = goals - at
        steps[certificates[which] <= tolerance] = 0.0
        return sums[:, 0], steps, certificates[which]

    counts, certificates = np.zeros(n_cases), np.zeros(n_cases)
    weights, values, gaps = climbed(evaluated, mean if start is None else start, n_steps)
    return Mixture(weights, values, gaps, counts)


#: value, step and something to keep, at points for some of the cases.
Evaluated = Callable[[Floats, NDArray[np.int64]], tuple[Floats, Floats, Floats]]


def climbed(evaluated: Evaluated, start: Floats, n_passes: int) -> tuple[Floats, Floats, Floats]:
    """Take steps that raise the value, or half of them, until a case's step is 0."""
    points = start.copy()
    every = np.arange(len(start))
    values, steps, kept = evaluated(points, every)
    sizes = np.ones(len(start))
    active = every[steps.any(axis=1)]
    for _ in range(n_passes):
        if not len(active):
            break
        trials = points[active] + sizes[active, np.newaxis] * steps[active]
        found, next_steps, next_kept = evaluated(trials, active)
        # Rounding must not stop the last steps.
        better = found >= values[active] - 1e-13 * np.abs(values[active])
        taken = active[better]
        points[taken], values[taken] = trials[better], found[better]
        steps[taken], kept[taken], sizes[taken] = next_steps[better], next_kept[better], 1.0
        sizes[active[~better]] /= 2.0
        active = every[steps.any(axis=1) & (sizes > 1e-9)]
    return points, values, kept


@dataclass(frozen=True, kw_only=True)
class _MixtureSums(Job):
    """Log-likelihood, rows, sums of r_m and of r_m r_l, with r_m = p_m(y) / p_λ(y)."""

    cases: Cases
    at: Floats

    @property
    def shape(self) -> tuple[int, int]:
        n_members = len(self.positions)
        return len(self.cases), 2 + n_members + n_members**2

    def _add(self, rows: Rows, sums: Floats) -> None:
        _mixture_sums(self.at, sums, *self._arguments(self.cases, rows))


@compiled
def opened(probs, positions, labels, row, kind, key, replicates, label_weights):  # type: ignore[no-untyped-def]
    """Some rows, their members packed, and the labels and weights that all cases have there.

    Members sum to 1 in every row here: over many rows of a likelihood, what rounding has left adds up.
    """
    n_rows, _, n_classes = probs.shape
    n_cases = replicates.shape[0]
    members, totals = np.empty((positions.shape[0], n_classes, n_rows)), np.empty(n_rows)
    loops.pack(probs, 0, n_rows, positions, members)
    for m in range(members.shape[0]):
        own = members[m]
        totals[:] = 0.0
        for k in range(n_classes):
            for n in range(n_rows):
                totals[n] += own[k, n]
        for k in range(n_classes):
            for n in range(n_rows):
                own[k, n] /= totals[n]
                if 0.0 < own[k, n] < _LEAST:
                    own[k, n] = _LEAST
    case_labels = np.empty((n_cases, n_rows), dtype=np.int32)
    case_weights = np.empty((n_cases, n_rows))
    counts = np.zeros((0, 0), dtype=np.int32)
    loops.fill_cases(
        kind, members, labels, row, key, replicates, label_weights, counts, 1,
        case_labels, case_weights,
    )  # fmt: skip
    return members, case_labels, case_weights


@compiled
def _mixture_sums(  # type: ignore[no-untyped-def]
    at, sums, probs, positions, labels, first, block_rows,
    kind, key, replicates, label_weights, draws, n_units, rows_per_unit,
):  # fmt: skip
    n_members, n_cases = positions.shape[0], replicates.shape[0]
    ratios = np.empty(n_members)
    begin = 0
    while begin < len(probs):
        end = loops.end_of_block(begin, first, len(probs), block_rows, rows_per_unit)
        n_block = end - begin
        members, case_labels, case_weights = opened(
            probs[begin:end], positions, labels[begin:end], first + begin,
            kind, key, replicates, label_weights,
        )  # fmt: skip
        for case in range(n_cases):
            own, weights = sums[case], at[case]
            curvature = own[2 + n_members :].reshape(n_members, n_members)
            for n in range(n_block):
                if case_weights[case, n] == 0.0:
                    continue
                label = case_labels[case, n]
                largest, mixed = 0.0, 0.0
                for m in range(n_members):
                    ratios[m] = members[m, label, n]
                    largest = max(largest, ratios[m])
                    mixed += weights[m] * ratios[m]
                if largest == 0.0:
                    continue
                own[1] += 1.0
                if mixed == 0.0:
                    own[0] = -np.inf
                    continue
                own[0] += math.log(mixed)
                for m in range(n_members):
                    ratios[m] /= mixed
                    own[2 + m] += ratios[m]
                for m in range(n_members):
                    ratio = ratios[m]
                    for other in range(n_members):
                        curvature[m, other] += ratio * ratios[other]
        begin = end


@compiled
def _next_weights(curvature, shares, at, goals):  # type: ignore[no-untyped-def]
    """The next weights of every case: a quadratic programme over non-negative weights, scaled to 1.

    Minimise x'Hx/2 - b'x over x >= 0 with H = curvature and b = H λ + D - 1 (Lawson and Hanson 1974,
    on the normal equations). A little is added to the diagonal of H, in b too, so that combinations
    equal on all labels stay where they are, and the maximum remains the fixed point.
    """
    n_cases, n_members = at.shape
    inside = np.empty(n_members, dtype=np.bool_)
    which = np.empty(n_members, dtype=np.int64)
    factor, solution = np.empty((n_members, n_members)), np.empty(n_members)
    hessian, linear = np.empty((n_members, n_members)), np.empty(n_members)
    for case in range(n_cases):
        x = goals[case]
        scale = 0.0
        for m in range(n_members):
            scale = max(scale, curvature[case, m, m])
        for m in range(n_members):
            linear[m] = shares[case, m] - 1.0
            for other in range(n_members):
                hessian[m, other] = curvature[case, m, other]
            hessian[m, m] += 1e-10 * scale
            for other in range(n_members):
                linear[m] += hessian[m, other] * at[case, other]
            x[m] = at[case, m]
            inside[m] = x[m] > 0.0
        for _ in range(6 * n_members):
            n_inside = 0
            for m in range(n_members):
                if inside[m]:
                    which[n_inside] = m
                    n_inside += 1
            _solve(hessian, linear, which[:n_inside], factor, solution)
            # As far towards the solution as no weight falls below 0.
            far, leaving = 1.0, -1
            for i in range(n_inside):
                m = which[i]
                if solution[i] <= 0.0:
                    share = x[m] / (x[m] - solution[i]) if x[m] > solution[i] else 0.0
                    if share < far:
                        far, leaving = share, m
            for i in range(n_inside):
                m = which[i]
                x[m] += far * (solution[i] - x[m])
            if leaving >= 0:
                x[leaving] = 0.0
                inside[leaving] = False
                continue
            best, entering = 1e-14, -1
            for m in range(n_members):
                if not inside[m]:
                    slope = linear[m]
                    for i in range(n_inside):
                        slope -= hessian[m, which[i]] * x[which[i]]
                    if slope > best:
                        best, entering = slope, m
            if entering < 0:
                break
            inside[entering] = True
        total = 0.0
        for m in range(n_members):
            x[m] = max(x[m], 0.0)
            total += x[m]
        for m in range(n_members):
            x[m] = x[m] / total if total > 0.0 else at[case, m]


@compiled
def _solve(matrix, right, which, factor, out):  # type: ignore[no-untyped-def]
    """Solve the equations of some rows and columns by Cholesky's factors."""
    n = which.shape[0]
    for i in range(n):
        for j in range(i + 1):
            value = matrix[which[i], which[j]]
            for k in range(j):
                value -= factor[i, k] * factor[j, k]
            if i == j:
                # Rounding can leave nothing of a member that others make up.
                factor[i, i] = math.sqrt(max(value, 1e-14 * matrix[which[i], which[i]] + 1e-300))
            else:
                factor[i, j] = value / factor[j, j]
    for i in range(n):
        value = right[which[i]]
        for k in range(i):
            value -= factor[i, k] * out[k]
        out[i] = value / factor[i, i]
    for i in range(n - 1, -1, -1):
        value = out[i]
        for k in range(i + 1, n):
            value -= factor[k, i] * out[k]
        out[i] = value / factor[i, i]

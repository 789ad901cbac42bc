"""Entropies over the hull: mutual information, and the least and the greatest entropy of a point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hullcal._compiled.jit import compiled
from hullcal._validation import warn
from hullcal.uncertainty.spread import Floats, per_instance

#: How far below the greatest entropy of the hull a reported one may lie, in nats.
GAP = 1e-8
_MAX_ITERATIONS = 100
#: Share of the way to the boundary that a step may go.
_BOUNDARY = 0.99
#: How much of the complementarity each step aims to keep.
_CENTERING = 0.05
#: Classes below this probability in every member add nothing to an entropy in doubles.
_NEGLIGIBLE = 1e-290


def mutual_information(probs: Any, *, n_jobs: int = 1) -> Floats:
    r"""Entropy of the average member less the average entropy of the members.

    .. math:: H(\bar p) - \frac{1}{M} \sum_m H(p^{(m)})

    This is the information about the label that knowing the member would give, if all members were
    equally likely. Unlike the other sizes it may shrink when a member is added.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes), or ClassifierSet
    n_jobs : int
        Threads; -1 for all cores.

    Returns
    -------
    ndarray of shape (n_samples,)
        Nats, from 0 to log min(M, K). Cost: N·M·K.

    Examples
    --------
    >>> mutual_information([[[1.0, 0.0], [0.0, 1.0]]]) / np.log(2)
    array([1.])
    """
    return per_instance(_mutual_information, probs, n_jobs=n_jobs)[:, 0]


def entropy_bounds(probs: Any, *, n_jobs: int = 1) -> tuple[Floats, Floats]:
    r"""Least and greatest entropy of a point of the hull.

    .. math:: \min_m H(p^{(m)}) \quad\text{and}\quad \max_\lambda H(p_\lambda)

    Entropy is concave, so the least one is that of a member. The greatest is found by an interior
    point method, to within 1e-8 by its own certificate: H at any point of the hull exceeds H(p) by
    at most the largest :math:`\langle \nabla H(p), p^{(m)} - p \rangle`.

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_members, n_classes), or ClassifierSet
    n_jobs : int
        Threads; -1 for all cores.

    Returns
    -------
    lower, upper : ndarray of shape (n_samples,)
        Nats. Cost: about 15·N·M²·(K + M).

    Examples
    --------
    >>> lower, upper = entropy_bounds([[[1.0, 0.0], [0.0, 1.0]]])
    >>> lower, upper / np.log(2)
    (array([0.]), array([1.]))
    """
    values = per_instance(_entropy_bounds, probs, GAP, n_values=3, n_jobs=n_jobs)
    lower, upper, gap = values.T.copy()
    short = int((gap > GAP).sum())
    if short > 0:
        warn(
            f"the upper entropy of {short} instances is known only to within {gap.max():.1g} nats.",
        )
    return lower, upper


@compiled
def _entropy(p):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(p.shape[0]):
        if p[k] > 0.0:
            total -= p[k] * math.log(p[k])
    return total


@compiled
def _average(members, out):  # type: ignore[no-untyped-def]
    n_members, n_classes = members.shape
    for k in range(n_classes):
        total = 0.0
        for m in range(n_members):
            total += members[m, k]
        out[k] = total / n_members


@compiled
def _mutual_information(members, out):  # type: ignore[no-untyped-def]
    n_samples, n_members, n_classes = members.shape
    average = np.empty(n_classes)
    for n in range(n_samples):
        _average(members[n], average)
        total = 0.0
        for m in range(n_members):
            total += _entropy(members[n, m])
        out[n, 0] = max(_entropy(average) - total / n_members, 0.0)


@compiled
def _entropy_bounds(members, gap, out):  # type: ignore[no-untyped-def]
    n_samples, n_members, n_classes = members.shape
    average = np.empty(n_classes)
    for n in range(n_samples):
        _average(members[n], average)
        lower, upper = np.inf, _entropy(average)
        for m in range(n_members):
            entropy = _entropy(members[n, m])
            lower, upper = min(lower, entropy), max(upper, entropy)
        found, left = _maximize_entropy(members[n], gap)
        out[n, 0] = lower
        # The members and their average are points of the hull too.
        out[n, 1] = max(found, upper)
        out[n, 2] = left


@compiled
def _maximize_entropy(members, tolerance):  # type: ignore[no-untyped-def]
    """Greatest entropy over the hull of `members` (M, K), and how far from it that may be.

    A primal-dual interior point method for: minimise sum of q log q, where q is the combination
    with weights w >= 0 of sum 1. Its optimality conditions, relaxed by mu, are

        gradient - slack + level = 0,   w * slack = mu,   sum of w = 1,

    and a Newton step needs one Cholesky factor of an M x M matrix.
    """
    n_members, n_classes = members.shape
    weights = np.full(n_members, 1.0 / n_members)
    slack, step, slack_step = np.empty(n_members), np.empty(n_members), np.empty(n_members)
    gradient, ones = np.empty(n_members), np.empty(n_members)
    mixed, logs = np.empty(n_classes), np.empty(n_classes)
    factor = np.empty((n_members, n_members))
    best, best_gap = -np.inf, np.inf
    level = 0.0
    for iteration in range(_MAX_ITERATIONS):
        entropy, gap = _evaluate(members, weights, mixed, logs, gradient)
        if gap < best_gap:
            best, best_gap = entropy, gap
        if best_gap <= 0.1 * tolerance:
            break
        if iteration == 0:
            level = 0.1 - gradient.min()
            for m in range(n_members):
                slack[m] = gradient[m] + level
        mu = 0.0
        for m in range(n_members):
            mu += weights[m] * slack[m]
        mu *= _CENTERING / n_members
        _hessian(members, mixed, weights, slack, factor)
        _cholesky(factor)
        for m in range(n_members):
            step[m] = mu / weights[m] - gradient[m] - level
            ones[m] = 1.0
        _solve(factor, step)
        _solve(factor, ones)
        level_step = step.sum() / ones.sum()
        length = 1.0
        for m in range(n_members):
            step[m] -= level_step * ones[m]
            slack_step[m] = (mu - slack[m] * step[m]) / weights[m] - slack[m]
            if step[m] < 0.0:
                length = min(length, -_BOUNDARY * weights[m] / step[m])
            if slack_step[m] < 0.0:
                length = min(length, -_BOUNDARY * slack[m] / slack_step[m])
        total = 0.0
        for m in range(n_members):
            weights[m] += length * step[m]
            slack[m] += length * slack_step[m]
            total += weights[m]
        level += length * level_step
        for m in range(n_members):
            weights[m] /= total
    return best, best_gap


@compiled
def _evaluate(members, weights, mixed, logs, gradient):  # type: ignore[no-untyped-def]
    """Entropy of the combination, and the most that any other may exceed it by."""
    n_members, n_classes = members.shape
    entropy = 0.0
    for k in range(n_classes):
        q = 0.0
        for m in range(n_members):
            q += weights[m] * members[m, k]
        mixed[k] = q
        logs[k] = math.log(q) if q > _NEGLIGIBLE else 0.0
        entropy -= q * logs[k]
    lowest, average = np.inf, 0.0
    for m in range(n_members):
        slope = 0.0
        for k in range(n_classes):
            slope += members[m, k] * (logs[k] + 1.0)
        gradient[m] = slope
        lowest = min(lowest, slope)
        average += weights[m] * slope
    return entropy, average - lowest


@compiled
def _hessian(members, mixed, weights, slack, out):  # type: ignore[no-untyped-def]
    """Second derivatives in the weights, with what the slacks add to their diagonal."""
    n_members, n_classes = members.shape
    for i in range(n_members):
        for j in range(i + 1):
            total = 0.0
            for k in range(n_classes):
                if mixed[k] > _NEGLIGIBLE:
                    total += members[i, k] / mixed[k] * members[j, k]
            out[i, j] = total
        out[i, i] += slack[i] / weights[i]


@compiled
def _cholesky(a):  # type: ignore[no-untyped-def]
    """Lower factor in place; members on a line leave pivots that are nothing but rounding."""
    size = a.shape[0]
    for j in range(size):
        pivot = a[j, j]
        for k in range(j):
            pivot -= a[j, k] * a[j, k]
        a[j, j] = math.sqrt(max(pivot, 1e-14 * a[j, j]))
        for i in range(j + 1, size):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            a[i, j] = total / a[j, j]


@compiled
def _solve(factor, b):  # type: ignore[no-untyped-def]
    """b becomes the solution, by the lower factor and its transpose."""
    size = b.shape[0]
    for i in range(size):
        total = b[i]
        for k in range(i):
            total -= factor[i, k] * b[k]
        b[i] = total / factor[i, i]
    for i in range(size - 1, -1, -1):
        total = b[i]
        for k in range(i + 1, size):
            total -= factor[k, i] * b[k]
        b[i] = total / factor[i, i]

"""Entropies over the hull: mutual information, and the least and the greatest entropy of a point."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from hullcal._compiled.jit import compiled
from hullcal._validation import HullcalWarning
from hullcal.uncertainty._instances import Floats, per_instance
from hullcal.uncertainty._maximum_entropy import maximize_entropy

#: How far below the greatest entropy of the hull a reported one may lie, in nats.
GAP = 1e-8


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
        warnings.warn(
            f"the upper entropy of {short} instances is known only to within {gap.max():.1g} nats.",
            HullcalWarning,
            stacklevel=2,
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
        found, left = maximize_entropy(members[n], gap)
        out[n, 0] = lower
        # The members and their average are points of the hull too.
        out[n, 1] = max(found, upper)
        out[n, 2] = left

"""Entropies over the hull: mutual information, and the least and the greatest entropy of a point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from hullcal._validation import warn
from hullcal.uncertainty.spread import Floats, per_instance
from hullcal.words import plural

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

    def information(members: Floats) -> Floats:
        mean, each = _entropy(members.mean(axis=0)), _entropy(members).mean(axis=0)
        return (mean - each).clip(min=0.0)  # type: ignore[no-any-return]

    return per_instance(information, probs, n_jobs=n_jobs)


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
    lower, upper, gap = per_instance(_entropy_bounds, probs, n_jobs=n_jobs).T.copy()
    if short := int((gap > GAP).sum()):
        warn(
            f"the upper entropy of {short} {plural(short, 'instance')} is known only to within "
            f"{gap.max():.1g} nats."
        )
    return lower, upper


def _entropy(probs: Floats) -> Floats:
    values: Floats = entr(probs).sum(axis=-2)
    return values


def _entropy_bounds(members: Floats) -> Floats:
    """Least and greatest entropy of each instance, and how far the latter may be from the truth."""
    vertices, centre = _entropy(members), _entropy(members.mean(axis=0))
    found, gap = _maximize_entropy(np.ascontiguousarray(members.transpose(2, 0, 1)))
    # The members and their average are points of the hull too.
    upper = np.maximum(found, np.maximum(vertices.max(axis=0), centre))
    return np.column_stack([vertices.min(axis=0), upper, gap])


def _maximize_entropy(members: Floats) -> tuple[Floats, Floats]:
    """Greatest entropy over each hull, and how far from it that may be; all instances in step.

    A primal-dual interior point method for: minimise sum of q log q, where q is the combination
    with weights w >= 0 of sum 1. Its optimality conditions, relaxed by mu, are

        gradient - slack + level = 0,   w * slack = mu,   sum of w = 1.
    """
    n_samples, n_members, _ = members.shape
    best, best_gap = np.full(n_samples, -np.inf), np.full(n_samples, np.inf)
    active: NDArray[np.intp] = np.arange(n_samples)
    weights: Floats = np.full((n_samples, n_members), 1.0 / n_members)
    slack, level = weights, weights[:, 0]
    for iteration in range(100):
        mixed = (weights[:, None, :] @ members)[:, 0]
        # A class below this probability in every member adds nothing to an entropy in doubles.
        there = mixed > 1e-290
        logs = np.log(mixed, out=np.zeros_like(mixed), where=there)
        gradient = (members @ (logs + 1.0)[:, :, None])[:, :, 0]
        # No combination has an entropy that exceeds this one's by more.
        gap = (weights * gradient).sum(axis=1) - gradient.min(axis=1)
        better = gap < best_gap[active]
        best[active[better]] = -(mixed * logs).sum(axis=1)[better]
        best_gap[active[better]] = gap[better]
        if iteration == 0:
            level = 0.1 - gradient.min(axis=1)
            slack = gradient + level[:, None]
        left = best_gap[active] > 0.1 * GAP
        if not left.any():
            break
        active, members, mixed, there = active[left], members[left], mixed[left], there[left]
        weights, slack, level, gradient = weights[left], slack[left], level[left], gradient[left]
        # Each step aims to keep a twentieth of the complementarity.
        mu = 0.05 * (weights * slack).mean(axis=1, keepdims=True)
        inverse = np.divide(1.0, mixed, out=np.zeros_like(mixed), where=there)
        hessian = (members * inverse[:, None, :]) @ members.transpose(0, 2, 1)
        diagonal = np.einsum("nmm->nm", hessian)
        # Members on a line leave pivots that are nothing but rounding.
        diagonal += slack / weights + 1e-14 * diagonal
        newton = mu / weights - gradient - level[:, None]
        solved = np.linalg.solve(hessian, np.stack([newton, np.ones_like(newton)], axis=2))
        level_step = solved[:, :, 0].sum(axis=1) / solved[:, :, 1].sum(axis=1)
        step = solved[:, :, 0] - level_step[:, None] * solved[:, :, 1]
        slack_step = (mu - slack * step) / weights - slack
        length = np.minimum(_longest(weights, step), _longest(slack, slack_step))
        weights += length[:, None] * step
        slack += length[:, None] * slack_step
        level += length * level_step
        weights /= weights.sum(axis=1, keepdims=True)
    return best, best_gap


def _longest(point: Floats, step: Floats) -> Floats:
    """Share of each step, at most 1, that goes 99 % of the way to where a coordinate is 0."""
    to_boundary = np.divide(point, -step, out=np.full_like(point, np.inf), where=step < 0.0)
    return (0.99 * to_boundary.min(axis=1)).clip(max=1.0)  # type: ignore[no-any-return]

"""Which combination of members is best by an objective: a calibration measure or a proper score?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal import hull
from hullcal.algorithm import minimize
from hullcal.measures.ece_conf import ConfidenceECE
from hullcal.objectives.opening import packed
from hullcal.sets import ClassifierSet
from hullcal.simplex import normalise

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]

#: Probabilities looked at by one step of the least-squares reduction.
_BLOCK = 2_000_000


def best_weights(
    members: ClassifierSet, labels: NDArray[Any], *, objective: Any, minimizer: Any, seed: int
) -> Floats:
    """Weights that minimise the objective; a proper score is convex and needs no random search."""
    solve = SCORES.get(objective) if isinstance(objective, str) else None
    if solve is not None:
        return solve(members, members.labels(labels))
    found = minimize(members, labels, measure=objective, minimizer=minimizer, rng=seed)
    return found.weights


def least_log_score(members: ClassifierSet, labels: Labels) -> Floats:
    """Maximum likelihood: a stretch of EM, then quasi-Newton steps from where EM grows slow.

    Rows to which every member gives probability 0 are left out, as everywhere in this package.
    """
    # Any measure: only likelihoods are used.
    own = packed(members, labels, ConfidenceECE())
    start = own.maximum_likelihood()
    chances = own.members[:, labels, np.arange(len(labels))].T
    possible = chances.max(axis=1) > 0.0
    if len(start) == 1 or not possible.any():
        return members.distinct.share(start)
    return members.distinct.share(_polished(chances[possible], start))


def _polished(chances: Floats, start: Floats) -> Floats:
    from scipy.optimize import Bounds, LinearConstraint, minimize

    # The scale of a row adds a constant to the score; scaled to 1, no row can underflow.
    chances = chances / chances.max(axis=1, keepdims=True)
    smallest = np.finfo(np.float64).tiny

    def score_and_slope(weights: Floats) -> tuple[float, Floats]:
        mixed = np.maximum(chances @ weights, smallest)
        return float(-np.log(mixed).mean()), -(chances / mixed[:, None]).mean(axis=0)

    found = minimize(
        score_and_slope,
        start,
        jac=True,
        method="SLSQP",
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(np.ones((1, len(start))), 1.0, 1.0),
        options={"maxiter": 500, "ftol": 1e-12},
    )
    polished = normalise(found.x)
    better = score_and_slope(polished)[0] < score_and_slope(start)[0]
    return polished if better else start


def least_brier_score(members: ClassifierSet, labels: Labels) -> Floats:
    """The point of the hull nearest to the one-hot labels, all rows taken as one long vector.

    Only inner products of the differences matter, so a triangular factor of them stands for all
    rows, and rows are read once.
    """
    n_samples, n_members, n_classes = members.probs.shape
    size = max(1, _BLOCK // (n_members * n_classes))
    factor = np.zeros((0, n_members))
    for first in range(0, n_samples, size):
        block = members.probs[first : first + size].astype(np.float64)
        block[np.arange(len(block)), :, labels[first : first + size]] -= 1.0
        differences = block.transpose(0, 2, 1).reshape(-1, n_members)
        factor = np.asarray(np.linalg.qr(np.vstack([factor, differences]), mode="r"))
    return hull.nearest(factor.T, np.zeros(len(factor)))


#: Objectives that are no measures of calibration.
SCORES: dict[str, Callable[[ClassifierSet, Labels], Floats]] = {
    "log_score": least_log_score,
    "brier_score": least_brier_score,
}

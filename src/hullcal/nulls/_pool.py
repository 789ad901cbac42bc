"""A model of the labels given all members' predictions: a log-linear pool, fitted to the labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hullcal.engines.packed import Packed

Floats = NDArray[np.float64]

#: Probabilities below this say no more than this: its logarithm is as far as a member's goes.
_FLOOR = 1e-4
#: Prior precision of a coefficient of a feature of unit size: a few rows' worth.
_RIDGE = 10.0
#: Rows that a fit of some dozen coefficients needs at most, and numbers that they may hold.
_ROWS, _ROOM = 20_000, 20_000_000
_ITERATIONS, _LONGEST_STEP, _CONVERGED = 30, 2.0, 1e-6


def pooled(objective: Packed, average: Floats) -> Floats:
    r"""Probabilities of the labels given x, of shape (n_classes, n_samples).

    .. math:: q_k(x) \propto \bar p_k(x)^{1 + \beta_0} \prod_m (p^{(m)}_k(x) / \bar p_k(x))^{\beta_m}

    around an average :math:`\bar p` (that of greatest likelihood), with :math:`\beta` by penalised
    maximum likelihood. It can follow what the members know of the labels together and no combination
    says, such as that all of them are too sure of themselves.
    """
    n_rows = min(_ROWS, max(1, _ROOM // objective.members[..., 0].size), objective.n_samples)
    rows = np.linspace(0, objective.n_samples - 1, n_rows).astype(np.int64)
    base = _log(average)
    features = np.stack(
        [_centred(feature[:, rows]) for feature in _features(objective.members, base)]
    )
    sizes = np.sqrt((features**2).mean(axis=(1, 2))) + 1e-12
    features /= sizes[:, None, None]
    coefficients = _fit(features, base[:, rows], objective.labels[0][rows]) / sizes
    # One feature at a time: all of them would take as much memory as the members.
    scores = base.copy()
    for coefficient, feature in zip(coefficients, _features(objective.members, base), strict=True):
        scores += coefficient * feature
    return _softmax(scores)


def _features(members: Floats, base: Floats) -> Iterator[Floats]:
    for member in members:
        yield _log(member) - base
    yield base


def _log(probabilities: Floats) -> Floats:
    logarithm: Floats = np.log(np.maximum(probabilities, _FLOOR))
    return logarithm


def _centred(feature: Floats) -> Floats:
    """What is the same for all classes cancels in the softmax, and must not count as size."""
    centred: Floats = feature - feature.mean(axis=0)
    return centred


def _softmax(scores: Floats) -> Floats:
    weights = np.exp(scores - scores.max(axis=0))
    shares: Floats = weights / weights.sum(axis=0)
    return shares


def _fit(features: Floats, base: Floats, labels: NDArray[np.int32]) -> Floats:
    """Newton's method for the coefficients, from 0, where the model is the average."""
    n_features, _, n_rows = features.shape
    observed = np.zeros(base.shape)
    observed[labels, np.arange(n_rows)] = 1.0
    coefficients = np.zeros(n_features)
    for _ in range(_ITERATIONS):
        model = _softmax(base + np.tensordot(coefficients, features, axes=1))
        gradient = np.tensordot(features, observed - model, axes=2) - _RIDGE * coefficients
        weighted = features * model
        means = weighted.sum(axis=1)
        second = np.tensordot(weighted, features, axes=((1, 2), (1, 2)))
        curvature = second - means @ means.T + _RIDGE * np.eye(n_features)
        step = np.linalg.solve(curvature, gradient)
        longest = np.abs(step).max()
        coefficients += step * min(1.0, _LONGEST_STEP / max(longest, 1e-300))
        if longest < _CONVERGED:
            break
    return coefficients

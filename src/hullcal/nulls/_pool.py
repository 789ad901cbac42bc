"""A model of the labels given all members' predictions: a log-linear pool, fitted to the labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Probabilities below this count as this: its logarithm is as low as a member's can be.
FLOOR = 1e-4
#: Prior precision of a coefficient of a feature of unit size: a few rows' worth.
_RIDGE = 10.0
_ITERATIONS, _LONGEST_STEP, _CONVERGED = 30, 2.0, 1e-6
#: Logarithms that are held at a time.
_HELD = 2**20


def pooled(members: Floats, labels: NDArray[np.int32], average: Floats) -> Floats:
    r"""Probabilities of the labels given x, of shape (n_classes, n_samples).

    .. math:: q_k(x) \propto \bar p_k(x)^{1 + \beta_0} \prod_m (p^{(m)}_k(x) / \bar p_k(x))^{\beta_m}

    around an average :math:`\bar p` (that of greatest likelihood), with :math:`\beta` by penalised
    maximum likelihood: Newton's method from 0, where the model is the average. It can follow what no
    combination says, such as that all members are overconfident.
    """
    squares = np.zeros(len(members) + 1)
    for _, _, features in _blocks(members, average):
        squares += (features**2).sum(axis=(1, 2))
    # In units of their size, so that the ridge means the same for all.
    sizes = np.sqrt(squares / average.size) + 1e-12
    coefficients = np.zeros(len(sizes))
    for _ in range(_ITERATIONS):
        gradient, curvature = -_RIDGE * coefficients, _RIDGE * np.eye(len(sizes))
        for rows, base, features in _blocks(members, average):
            features /= sizes[:, None, None]
            model = _softmax(base + np.tensordot(coefficients, features, axes=1))
            weighted = features * model
            means = weighted.sum(axis=1)
            curvature += np.tensordot(weighted, features, axes=((1, 2), (1, 2))) - means @ means.T
            model[labels[rows], np.arange(model.shape[1])] -= 1.0
            gradient -= np.tensordot(features, model, axes=2)
        step = np.linalg.solve(curvature, gradient)
        longest = np.abs(step).max()
        coefficients += step * min(1.0, _LONGEST_STEP / max(longest, 1e-300))
        if longest < _CONVERGED:
            break
    out = np.empty(average.shape)
    for rows, base, features in _blocks(members, average):
        out[:, rows] = _softmax(base + np.tensordot(coefficients / sizes, features, axes=1))
    return out


def _blocks(members: Floats, average: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
    """Rows, the average's logarithms there, and the features: (n_members + 1, n_classes, n_rows)."""
    n_members, n_classes, n_samples = members.shape
    size = max(1, _HELD // (n_members * n_classes))
    for first in range(0, n_samples, size):
        rows = slice(first, min(first + size, n_samples))
        base = _log(average[:, rows])
        features = np.concatenate([_log(members[:, :, rows]) - base, base[np.newaxis]])
        # What is the same for all classes cancels in the softmax, and must not count as size.
        features -= features.mean(axis=1, keepdims=True)
        yield rows, base, features


def _log(probabilities: Floats) -> Floats:
    logarithm: Floats = np.log(np.maximum(probabilities, FLOOR))
    return logarithm


def _softmax(scores: Floats) -> Floats:
    weights = np.exp(scores - scores.max(axis=0))
    shares: Floats = weights / weights.sum(axis=0)
    return shares

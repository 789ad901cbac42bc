"""Random distributions and labels, at any concentration: nothing is NaN, no row is all zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def dirichlet(concentration: Floats, rng: np.random.Generator) -> Floats:
    """One draw from each Dirichlet distribution, made in log space.

    Gamma variables of shape a far below 1 underflow, so their logarithms are drawn:
    log G(a) = log G(a + 1) - E / a, with E a standard exponential variable. As all shapes of a row
    go to 0, the largest of them is that of the class whose E / a is smallest, the winner of a race
    of exponential clocks, and the row becomes that corner of the simplex.

    Parameters
    ----------
    concentration : ndarray of shape (..., n_classes)
        Finite and at least 0, with something above 0 in every row. A class of 0 gets 0.

    Returns
    -------
    ndarray of shape (..., n_classes)

    Examples
    --------
    >>> dirichlet(np.array([[1e-300, 1e-300, 0.0]]), np.random.default_rng(0)).max()
    np.float64(1.0)
    """
    base = rng.standard_gamma(concentration + 1.0)
    clock = rng.standard_exponential(concentration.shape)
    # Logarithms of 0 and quotients too large for a double mean "never", which is what they give.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        logs = np.where(concentration > 0.0, np.log(base) - clock / concentration, -np.inf)
    top = logs.max(axis=-1, keepdims=True)
    lost = top[..., 0] == -np.inf  # every quotient of the row overflowed: only the race is left
    if lost.any():
        logs[lost] = _winner(clock[lost], concentration[lost])
        top[lost] = 0.0
    draw = np.exp(logs - top)
    shares: Floats = draw / draw.sum(axis=-1, keepdims=True)
    return shares


def _winner(clock: Floats, concentration: Floats) -> Floats:
    """Logarithms of the corner whose clock / concentration is smallest, itself too large to compute."""
    with np.errstate(divide="ignore"):
        arrival = np.log(clock) - np.log(concentration)
    first = arrival.argmin(axis=-1)[..., None]
    return np.where(np.arange(clock.shape[-1]) == first, 0.0, -np.inf)


def labels(distributions: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """One class from each row, by the inverse of its distribution function.

    Parameters
    ----------
    distributions : ndarray of shape (..., n_classes)
        Rows need not add up to 1 to the last bit. A class of probability 0 is never drawn: its sum
        is that of the class before, and the first sum *above* the threshold decides.

    Returns
    -------
    ndarray of shape (...,)
    """
    sums = np.cumsum(distributions, axis=-1)
    # A double below 1 times the whole is below the whole, so some sum is always above.
    thresholds = rng.random(sums.shape[:-1]) * sums[..., -1]
    drawn: NDArray[np.int64] = (sums <= thresholds[..., None]).sum(axis=-1)
    return drawn

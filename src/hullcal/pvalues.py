"""From a statistic and its null values to a p-value: the tie rule, the quantile, the interval, Holm."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Two values closer than this, relative to the statistic or to 1, are ties.
_TIE = 100.0 * np.finfo(np.float64).eps


def exceeds(null: ArrayLike, statistic: float) -> NDArray[np.bool_]:
    """Which null values reach the statistic: above it, or tied with it; infinite equals infinite."""
    values = np.asarray(null, dtype=np.float64)
    if math.isinf(statistic):
        return values >= statistic
    # One comparison says both: t0 >= t, and |t0 - t| within the tolerance.
    return values - statistic >= -_TIE * max(1.0, abs(statistic))


def monte_carlo(statistic: float, null: NDArray[np.float64]) -> float:
    """(1 + number of null values that reach the statistic) / (1 + D); never 0.

    >>> monte_carlo(2.0, np.array([1.0, 2.0, 3.0]))
    0.75
    """
    return (1 + int(exceeds(null, statistic).sum())) / (1 + len(null))


def rejections_allowed(n_resamples: int, alpha: float) -> int:
    """k, the number of ranks c in 1..D+1 for which a p-value of c/(D+1) is at most alpha."""
    # A product would round; the quotients in doubles decide, as they do for the p-value itself.
    return _last(lambda k: k / (n_resamples + 1) <= alpha, n_resamples + 1)


def critical_value(null: NDArray[np.float64], alpha: float) -> float:
    """The (D+1-k)-th smallest null value: a statistic above it (and not tied) is rejected.

    +inf when D is too small to reject at `alpha`.
    """
    k = rejections_allowed(len(null), alpha)
    if k == 0:
        return math.inf
    rank = len(null) + 1 - k
    return float(np.partition(null, rank - 1)[rank - 1])


def smallest_n_resamples(alpha: float) -> int:
    """The smallest D that can reject at `alpha`."""
    return 1 + _last(lambda d: 1 / (d + 1) > alpha, math.ceil(1 / Fraction(alpha)))


def _last(holds: Callable[[int], bool], high: int) -> int:
    """The last of 0, 1, ..., `high` for which something holds that holds for 0 and all before it."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def interval(count: int, n_resamples: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper–Pearson interval for the chance that a null value reaches the statistic.

    >>> low, high = interval(0, 99)
    >>> low, round(high, 4)
    (0.0, 0.0366)
    """
    from scipy.special import betaincinv

    tail = (1.0 - confidence) / 2.0
    low = betaincinv(count, n_resamples - count + 1, tail) if count > 0 else 0.0
    high = betaincinv(count + 1, n_resamples - count, 1.0 - tail) if count < n_resamples else 1.0
    return float(low), float(high)


def evalue(log_evalue: float) -> float:
    """The e-value with this logarithm; infinite if it is too large for a float."""
    return math.exp(log_evalue) if log_evalue < 709.0 else math.inf


def holm(pvalues: ArrayLike) -> NDArray[np.float64]:
    """Holm's step-down adjustment: reject those at most alpha, and the familywise error is alpha.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    raw = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    scaled = raw[order] * np.arange(raw.size, 0, -1)
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted

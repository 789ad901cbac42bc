"""Slow transcriptions of the tests of one classifier: what `hullcal.classical` is compared with.

Nothing of the package is imported here. `probs` is (n_samples, n_classes), `labels` holds class
indices.
"""

import itertools
import math
from fractions import Fraction

import numpy as np

import oracles

# Hosmer-Lemeshow ------------------------------------------------------------------------------


def hosmer_lemeshow(probs: np.ndarray, labels: np.ndarray, n_bins: int = 10) -> float:
    """sum_k sum_b |B| (o - p)^2 / p = sum (O - E)^2 / E; E = 0 gives 0 if O = 0, else +inf."""
    terms = []
    for k in range(probs.shape[1]):
        for part in oracles.equal_frequency_parts(probs[:, k].tolist(), n_bins):
            observed = float(sum(share for i, share in part.items() if labels[i] == k))
            expected = float(sum(share * Fraction(probs[i, k]) for i, share in part.items()))
            if expected == 0.0:
                terms.append(0.0 if observed == 0.0 else math.inf)
            else:
                terms.append((observed - expected) ** 2 / expected)
    return math.fsum(terms)


def hosmer_lemeshow_textbook(p: np.ndarray, y: np.ndarray, n_bins: int) -> float:
    """Two classes: sum_g (O_g - E_g)^2 / (n_g pbar_g (1 - pbar_g)), groups of equal size, no ties.

    `p` is the probability of class 1, `y` is 0 or 1 (Hosmer & Lemeshow 1980).
    """
    order = sorted(range(len(p)), key=lambda i: p[i])
    size = len(p) // n_bins
    assert size * n_bins == len(p)
    total = 0.0
    for g in range(n_bins):
        rows = order[g * size : (g + 1) * size]
        observed = sum(int(y[i]) for i in rows)
        expected = math.fsum(float(p[i]) for i in rows)
        mean = expected / size
        total += (observed - expected) ** 2 / (size * mean * (1 - mean))
    return total


# SKCE -----------------------------------------------------------------------------------------


def skce_terms(
    probs: np.ndarray,
    labels: np.ndarray,
    bandwidth: float = 1.0,
    kernel: str = "exponential",
) -> np.ndarray:
    """The N by N matrix h_ij = kernel(p_i, p_j) <p_i - y_i, p_j - y_j> (Widmann et al. 2019)."""
    rows = list(zip(probs, labels.tolist(), strict=True))
    return np.array(
        [[oracles.skce_term(*one, *other, bandwidth, kernel) for other in rows] for one in rows]
    )


def consecutive_pairs(h: np.ndarray) -> np.ndarray:
    """The terms of SKCE_ul: rows (0, 1), (2, 3), ...; an odd last row is dropped."""
    return np.array([h[2 * i, 2 * i + 1] for i in range(len(h) // 2)])


def skce(h: np.ndarray, estimator: str) -> float:
    """The three estimators of Widmann et al. (2019), Table 1, from the matrix of terms."""
    n = len(h)
    if estimator == "ul":
        return math.fsum(consecutive_pairs(h)) / (n // 2)
    if estimator == "uq":
        return math.fsum(h[i, j] for i in range(n) for j in range(i)) / math.comb(n, 2)
    return math.fsum(h.ravel()) / n**2


def asymptotic_pvalue(h: np.ndarray) -> float:
    """The normal tail of sqrt(n) mean / sd over the pairs of SKCE_ul, sd with 1/n."""
    pairs = consecutive_pairs(h)
    mean = math.fsum(pairs) / len(pairs)
    variance = math.fsum((x - mean) ** 2 for x in pairs) / len(pairs)
    if variance == 0.0:
        return 0.0 if mean > 0 else 1.0
    return 0.5 * math.erfc(math.sqrt(len(pairs)) * mean / math.sqrt(2 * variance))


def bootstrap_value(h: np.ndarray, rows: tuple[int, ...]) -> float:
    """T* of Arcones & Gine (1992) for the resample that consists of `rows`, term by term."""
    n = len(h)
    overall = math.fsum(h.ravel()) / n**2
    total = []
    for i, j in itertools.permutations(range(n), 2):
        a, b = rows[i], rows[j]
        first = math.fsum(h[a, k] for k in range(n)) / n
        second = math.fsum(h[k, b] for k in range(n)) / n
        total.append(h[a, b] - first - second + overall)
    return math.fsum(total) / n


def bootstrap_distribution(h: np.ndarray) -> np.ndarray:
    """T* of every one of the N^N equally likely resamples."""
    n = len(h)
    return np.array([bootstrap_value(h, rows) for rows in itertools.product(range(n), repeat=n)])


def distribution_free_pvalue(estimator: str, n: int, value: float) -> float:
    """The bounds of Widmann et al. (2019), Theorems D.3 and D.4, for |h| <= 2, in both kernels.

    SKCE_b: P(SKCE_b >= t) <= exp(-(sqrt(n t / B) - 1)^2 / 2) above t = B / n. The unbiased ones
    are Hoeffding's inequality for floor(n/2) independent terms that lie in [-B, B].
    """
    bound = 2.0
    if estimator == "b":
        excess = math.sqrt(n * value / bound) - 1
        return math.exp(-(excess**2) / 2) if excess > 0 else 1.0
    return math.exp(-(n // 2) * value**2 / (2 * bound**2)) if value > 0 else 1.0

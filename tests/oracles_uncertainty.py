"""Slow transcriptions of what the size of a set is: what `hullcal.uncertainty` is compared with.

Nothing of the package is imported here. `members` is (n_members, n_classes): one instance.
"""

import itertools
import math
from collections.abc import Iterator

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, linprog


def entropy(p: np.ndarray) -> float:
    """-sum_k p_k log p_k in nats; 0 log 0 = 0."""
    return -math.fsum(float(x) * math.log(x) for x in p if x > 0)


def mutual_information(members: np.ndarray) -> float:
    """H(pbar) - mean_m H(p^(m)), as the mean relative entropy to the average, which cannot cancel."""
    average = [math.fsum(column) / len(members) for column in members.T]
    terms = []
    for p in members:
        terms += [x * math.log(x / a) for x, a in zip(p, average, strict=True) if x > 0]
    return math.fsum(terms) / len(members)


def tv_diameter(members: np.ndarray) -> float:
    """The largest total variation between two members: a convex function peaks at vertices."""
    return max(0.5 * math.fsum(abs(p - q)) for p in members for q in members)


def interval_width(members: np.ndarray) -> float:
    """1/K sum_k (max_m p_k - min_m p_k)."""
    return math.fsum(max(column) - min(column) for column in members.T) / members.shape[1]


# Generalised Hartley --------------------------------------------------------------------------


def subsets(items: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for size in range(len(items) + 1):
        yield from itertools.combinations(items, size)


def lower_probability(members: np.ndarray, event: tuple[int, ...]) -> float:
    """nu(A) = min_m P_m(A)."""
    return min(math.fsum(p[k] for k in event) for p in members)


def moebius_mass(members: np.ndarray, event: tuple[int, ...]) -> float:
    """m(A) = sum over B in A of (-1)^|A - B| nu(B)."""
    return math.fsum(
        (-1) ** (len(event) - len(part)) * lower_probability(members, part)
        for part in subsets(event)
    )


def generalized_hartley(members: np.ndarray) -> float:
    """sum over A of m(A) log2 |A|, subset by subset (3^K terms: for few classes)."""
    everything = tuple(range(members.shape[1]))
    return math.fsum(
        moebius_mass(members, event) * math.log2(len(event))
        for event in subsets(everything)
        if event
    )


def hartley_coefficient(size: int, n_classes: int) -> float:
    """What nu(B), |B| = size < K, counts in the sum once it is written in nu instead of m.

    sum_j (-1)^j C(K - b, j) log2(b + j), which is a difference of high order and cancels badly; as
    log x = int (e^-t - e^-xt)/t dt it is -int e^-bt (1 - e^-t)^(K-b) / t dt / log 2: negative.
    """
    order = n_classes - size

    def integrand(t: float) -> float:
        return math.exp(-size * t) * (-math.expm1(-t)) ** order / t if t > 0 else float(order == 1)

    return -quad(integrand, 0, math.inf, epsabs=1e-14, epsrel=1e-12)[0] / math.log(2)


def generalized_hartley_by_coefficients(members: np.ndarray) -> float:
    """log2 K + sum over B, neither empty nor everything, of c(|B|) nu(B): 2^K terms."""
    k = members.shape[1]
    coefficients = [0.0] + [hartley_coefficient(size, k) for size in range(1, k)] + [math.log2(k)]
    indicators = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
    lower = (indicators @ members.T).min(axis=1)
    return math.fsum(np.array(coefficients)[indicators.sum(axis=1)] * lower)


def merged(members: np.ndarray, n_kept: int = 15, lowest_first: bool = True) -> np.ndarray:
    """The classes with the largest max_m p kept, the others summed into one class at the end.

    Ties go to the lowest index, or to the highest, which is the wrong answer for a control.
    """
    sign = 1 if lowest_first else -1
    largest = members.max(axis=0)
    ranked = sorted(range(members.shape[1]), key=lambda k: (-largest[k], sign * k))
    kept, rest = sorted(ranked[:n_kept]), ranked[n_kept:]
    return np.column_stack([members[:, kept], members[:, rest].sum(axis=1)])


# Entropy over the hull ------------------------------------------------------------------------


def upper_entropy(members: np.ndarray, tolerance: float = 1e-10) -> tuple[float, float]:
    """(attained, bound): the largest entropy lies between the two.

    Pairwise Frank-Wolfe steps with an exact line search, from the mean. The
    bound is the Frank-Wolfe certificate H(p) + max_m <grad H(p), p_m - p>, which is also the largest
    cross-entropy max_m -<p_m, log p>: no point of the hull can have more entropy than that.
    """
    members = members[:, members.max(axis=0) > 0]
    weights = np.full(len(members), 1 / len(members))
    for _ in range(20_000):
        p = weights @ members
        scores = -members @ np.log(p)
        if scores.max() - weights @ scores <= tolerance:
            break
        to = int(np.argmax(scores))
        away = min(np.flatnonzero(weights > 0), key=lambda m: scores[m])
        direction = members[to] - members[away]
        step = _best_step(p, direction, float(weights[away]))
        weights[to] += step
        weights[away] = 0.0 if step == weights[away] else weights[away] - step
    p = weights @ members
    return entropy(p), float((-members @ np.log(p)).max())


def _best_step(p: np.ndarray, direction: np.ndarray, longest: float) -> float:
    """Where H(p + s d) is largest for 0 <= s <= longest; its derivative is -<d, log(p + s d)>."""
    moved = direction != 0
    p, direction = p[moved], direction[moved]

    def derivative(step: float) -> float:
        return -float(direction @ np.log(np.maximum(p + step * direction, 1e-320)))

    if derivative(longest) >= 0:
        return longest
    return float(brentq(derivative, 0.0, longest, xtol=1e-17, rtol=1e-14))


# The hull -------------------------------------------------------------------------------------


def distance_to_hull(members: np.ndarray, point: np.ndarray) -> float:
    """The smallest total variation between the point and a combination, by linear programming.

    Minimise 1/2 sum_k (a_k + b_k) with sum_m w_m p_m + a - b = point, w in the simplex, a, b >= 0.
    Right to about 1e-9: the solver's tolerance, and it takes coefficients below 1e-9 for 0.
    """
    m, k = members.shape
    equalities = np.zeros((k + 1, m + 2 * k))
    equalities[:k, :m] = members.T
    equalities[:k, m : m + k] = np.eye(k)
    equalities[:k, m + k :] = -np.eye(k)
    equalities[k, :m] = 1
    result = linprog(
        np.concatenate([np.zeros(m), np.full(2 * k, 0.5)]),
        A_eq=equalities,
        b_eq=np.append(point, 1.0),
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.status != 0:
        raise RuntimeError(f"the distance LP did not end: {result.message}")
    return float(result.fun)

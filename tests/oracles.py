"""Slow, literal transcriptions of the paper's formulas: what the package is compared with.

Nothing of the package is imported here. Every function cites the equation, or the rule of the
contract, that it spells out; loops are plain on purpose. Classes, rows, bins and members count
from 0 in code where the paper counts from 1.

`probs` is (n_samples, n_classes) for one classifier and (n_samples, n_members, n_classes) for a
set; `labels` holds class indices; `g(probs, labels)` is a calibration measure of one classifier.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

Measure = Callable[[np.ndarray, np.ndarray], float]
Minimiser = Callable[[np.ndarray, np.ndarray], np.ndarray]
Scenario = tuple[np.ndarray, np.ndarray]

EPS = 2.0**-52
MEASURES = (
    *("ece_conf", "ece_cwise", "ece_conf_smooth", "ece_cwise_smooth"),
    *("hl_cwise", "skce_ul", "skce_uq", "skce_b"),
)

# The set --------------------------------------------------------------------------------------


def mixture(probs3d: np.ndarray, weights: Sequence[float]) -> np.ndarray:
    """The member p_lambda of S(P): p_lambda(x) = sum_m lambda_m p^(m)(x) (Eq. 2)."""
    n, m, k = probs3d.shape
    mixed = np.zeros((n, k))
    for i in range(n):
        for c in range(k):
            mixed[i, c] = sum(float(weights[j]) * float(probs3d[i, j, c]) for j in range(m))
    return mixed


def repeat_rows(
    probs: np.ndarray, labels: np.ndarray, weights: Sequence[int] | None, unit: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a bootstrap sample: row i literally stands there `weights[i]` times, units together."""
    probs, labels = np.asarray(probs, dtype=float), np.asarray(labels, dtype=int)
    if weights is None:
        return probs, labels
    rows = [
        row
        for first in range(0, len(labels) - unit + 1, unit)
        for _ in range(int(weights[first]))
        for row in range(first, first + unit)
    ]
    return probs[rows], labels[rows]


# Bins -----------------------------------------------------------------------------------------


def bin_of(p: float, n_bins: int) -> int:
    """Equal width: bin j is [j/B, (j+1)/B), the last closed on the right (text under Eq. 5).

    The edge is the double nearest to the quotient, which is what Python's `j / B` returns.
    """
    for j in range(1, n_bins):
        if p < j / n_bins:
            return j - 1
    return n_bins - 1


def equal_frequency_parts(values: Sequence[float], n_bins: int) -> list[dict[int, Fraction]]:
    """Equal frequency: for each part, row -> the share of that row which counts in the part.

    Sorted values are cut into B parts, the first N mod B one larger. Equal values that straddle
    a cut are shared: a group of G tied rows of which c places fall into a part puts c/G of each
    of its rows there.
    """
    n = len(values)
    sizes = [n // n_bins + (1 if j < n % n_bins else 0) for j in range(n_bins)]
    starts = [sum(sizes[:j]) for j in range(n_bins)]
    parts: list[dict[int, Fraction]] = [{} for _ in range(n_bins)]
    place = 0
    for value in sorted({float(v) for v in values}):
        tied = [i for i in range(n) if values[i] == value]
        first, last = place, place + len(tied)  # the tied rows hold the places first..last-1
        for j in range(n_bins):
            held = min(last, starts[j] + sizes[j]) - max(first, starts[j])
            if held > 0:
                for i in tied:
                    parts[j][i] = Fraction(held, len(tied))
        place = last
    return parts


# Measures -------------------------------------------------------------------------------------


def predicted_class(p: Sequence[float]) -> int:
    """argmax_k p_k; ties go to the lowest class index."""
    best = 0
    for c in range(1, len(p)):
        if p[c] > p[best]:
            best = c
    return best


def ece_conf(probs: np.ndarray, labels: np.ndarray, n_bins: int = 10) -> float:
    """Eq. 6: sum_j |B_j|/N |Acc(B_j) - c(B_j)|; an empty bin contributes 0."""
    n = len(labels)
    total = 0.0
    for j in range(n_bins):
        rows = [i for i in range(n) if bin_of(max(probs[i]), n_bins) == j]
        if not rows:
            continue
        acc = sum(1 for i in rows if labels[i] == predicted_class(probs[i])) / len(rows)
        conf = math.fsum(float(max(probs[i])) for i in rows) / len(rows)
        total += len(rows) / n * abs(acc - conf)
    return total


def ece_cwise(probs: np.ndarray, labels: np.ndarray, n_bins: int = 10) -> float:
    """Eq. 5: 1/K sum_k sum_j |B_jk|/N |o(B_jk) - p(B_jk)|, bins of equal width."""
    n, n_classes = np.shape(probs)
    total = 0.0
    for k in range(n_classes):
        for j in range(n_bins):
            rows = [i for i in range(n) if bin_of(probs[i][k], n_bins) == j]
            if not rows:
                continue
            o = sum(1 for i in rows if labels[i] == k) / len(rows)
            p = math.fsum(float(probs[i][k]) for i in rows) / len(rows)
            total += len(rows) / n * abs(o - p)
    return total / n_classes


def hat(p: float, j: int, n_bins: int) -> float:
    """phi_j(p) = max(0, 1 - |p B - j|): 1 at j/B, and 0 from its neighbours on."""
    return max(0.0, 1.0 - abs(float(p) * n_bins - j))


def ece_conf_smooth(probs: np.ndarray, labels: np.ndarray, n_bins: int = 10) -> float:
    """sum_j |1/N sum_i phi_j(c_i) (hit_i - c_i)|, j = 0, ..., B."""
    return math.fsum(abs(r) for r in residual_ece_conf(probs, labels, n_bins, smooth=True))


def ece_cwise_smooth(probs: np.ndarray, labels: np.ndarray, n_bins: int = 10) -> float:
    """1/K sum_k sum_j |1/N sum_i phi_j(p_ik) (y_ik - p_ik)|, j = 0, ..., B."""
    residual = residual_ece_cwise(probs, labels, n_bins, smooth=True)
    return math.fsum(abs(r) for r in residual) / np.shape(probs)[1]


def _observed_and_expected(
    probs: np.ndarray, labels: np.ndarray, n_bins: int
) -> Iterator[tuple[float, float] | None]:
    """Eq. 4, class by class and part by part: (o(B_jk), p(B_jk)); None for an empty part."""
    n, n_classes = np.shape(probs)
    for k in range(n_classes):
        for part in equal_frequency_parts([float(probs[i][k]) for i in range(n)], n_bins):
            if not part:
                yield None
                continue
            size = sum(part.values())
            o = float(sum(share for i, share in part.items() if labels[i] == k) / size)
            p = float(sum(share * Fraction(float(probs[i][k])) for i, share in part.items()) / size)
            yield o, p


def hl_cwise(probs: np.ndarray, labels: np.ndarray, n_bins: int = 10) -> float:
    """Eq. 3: sum_k sum_j (o - p)^2 / p over equal-frequency parts, o and p being means (Eq. 4).

    A cell with p = 0 counts 0 if o = 0, else +inf. An empty part (N < B) counts 0.
    """
    total = 0.0
    for cell in _observed_and_expected(probs, labels, n_bins):
        if cell is None:
            continue
        o, p = cell
        if p == 0.0:
            total += 0.0 if o == 0.0 else math.inf
        else:
            total += (o - p) * (o - p) / p
    return total


def total_variation(p: Sequence[float], q: Sequence[float]) -> float:
    """TV(p, q) = 1/2 sum_k |p_k - q_k|."""
    return 0.5 * math.fsum(abs(float(a) - float(b)) for a, b in zip(p, q, strict=True))


def kernel_value(
    p: Sequence[float],
    q: Sequence[float],
    bandwidth: float = 1.0,
    kernel: str = "exponential",
) -> float:
    """The scalar before the identity: exp(-TV/nu), or exp(-TV^2/h) for the Gaussian form."""
    tv = total_variation(p, q)
    if kernel == "exponential":
        return math.exp(-tv / bandwidth)
    if kernel == "gaussian":
        return math.exp(-tv * tv / bandwidth)
    raise ValueError(f"`kernel` must be 'exponential' or 'gaussian'; got {kernel!r}.")


def skce_term(
    p: Sequence[float],
    y: int,
    q: Sequence[float],
    z: int,
    bandwidth: float = 1.0,
    kernel: str = "exponential",
) -> float:
    """One pair of Eq. 7: sum_s sum_t (p_s - y_s)(q_t - z_t) Gamma_st(p, q), Gamma = kernel I."""
    scalar = kernel_value(p, q, bandwidth, kernel)
    terms = []
    for s in range(len(p)):
        for t in range(len(q)):
            gamma_st = scalar if s == t else 0.0
            terms.append((float(p[s]) - (y == s)) * (float(q[t]) - (z == t)) * gamma_st)
    return math.fsum(terms)


def skce_ul(
    probs: np.ndarray, labels: np.ndarray, bandwidth: float = 1.0, kernel: str = "exponential"
) -> float:
    """Eq. 8: the mean over floor(N/2) disjoint consecutive pairs; an odd last row is dropped."""
    pairs = len(labels) // 2
    terms = []
    for i in range(pairs):
        a, b = 2 * i, 2 * i + 1
        terms.append(skce_term(probs[a], labels[a], probs[b], labels[b], bandwidth, kernel))
    return math.fsum(terms) / pairs


def skce_uq(
    probs: np.ndarray, labels: np.ndarray, bandwidth: float = 1.0, kernel: str = "exponential"
) -> float:
    """Eq. 7: the mean over all pairs i < j."""
    n = len(labels)
    terms = []
    for i in range(n - 1):
        for j in range(i + 1, n):
            terms.append(skce_term(probs[i], labels[i], probs[j], labels[j], bandwidth, kernel))
    return math.fsum(terms) / math.comb(n, 2)


def skce_b(
    probs: np.ndarray, labels: np.ndarray, bandwidth: float = 1.0, kernel: str = "exponential"
) -> float:
    """The V-statistic of Widmann et al. (2019): the mean over all N^2 ordered pairs, i = j too."""
    n = len(labels)
    terms = []
    for i in range(n):
        for j in range(n):
            terms.append(skce_term(probs[i], labels[i], probs[j], labels[j], bandwidth, kernel))
    return math.fsum(terms) / n**2


def median_bandwidth(mean_probs: np.ndarray) -> float:
    """The median TV over pairs i < j of the average member's rows, of which there are 1,000 at most."""
    rows = np.asarray(mean_probs, dtype=float)
    assert len(rows) <= 1000
    distances = sorted(
        total_variation(rows[i], rows[j])
        for i in range(len(rows) - 1)
        for j in range(i + 1, len(rows))
    )
    middle = len(distances) // 2
    if len(distances) % 2 == 1:
        return distances[middle]
    return (distances[middle - 1] + distances[middle]) / 2


# Residual vectors, whose norm is the measure --------------------------------------------------


def _signed_gaps(pairs: list[tuple[float, float]], n_bins: int, smooth: bool) -> list[float]:
    """Of (y, p) of all rows: sum of y - p over the rows of each bin, or shared by hats; over N."""
    if smooth:
        shares = [[hat(p, j, n_bins) for _, p in pairs] for j in range(n_bins + 1)]
    else:
        shares = [[float(bin_of(p, n_bins) == j) for _, p in pairs] for j in range(n_bins)]
    return [
        math.fsum(share * (y - p) for share, (y, p) in zip(row, pairs, strict=True)) / len(pairs)
        for row in shares
    ]


def residual_ece_conf(
    probs: np.ndarray,
    labels: np.ndarray,
    n_bins: int = 10,
    weights: Sequence[int] | None = None,
    smooth: bool = False,
) -> np.ndarray:
    """B signed gaps of (hit, confidence), or B + 1; their L1 norm is Eq. 6."""
    probs, labels = repeat_rows(probs, labels, weights)
    tops = [predicted_class(p) for p in probs]
    pairs = [(float(y == k), float(p[k])) for p, y, k in zip(probs, labels, tops, strict=True)]
    return np.array(_signed_gaps(pairs, n_bins, smooth))


def residual_ece_cwise(
    probs: np.ndarray,
    labels: np.ndarray,
    n_bins: int = 10,
    weights: Sequence[int] | None = None,
    smooth: bool = False,
) -> np.ndarray:
    """K*B signed gaps of (y_ik, p_ik), or K*(B + 1), class 0 first. L1 over K is Eq. 5."""
    probs, labels = repeat_rows(probs, labels, weights)
    residual = []
    for k in range(probs.shape[1]):
        pairs = [(float(y == k), float(p[k])) for p, y in zip(probs, labels, strict=True)]
        residual += _signed_gaps(pairs, n_bins, smooth)
    return np.array(residual)


def residual_hl(
    probs: np.ndarray,
    labels: np.ndarray,
    n_bins: int = 10,
    weights: Sequence[int] | None = None,
) -> np.ndarray:
    """K*B values (o - p)/sqrt(p), all parts of class 0 first. The sum of squares is Eq. 3.

    p = 0 gives 0 if o = 0, else +inf; an empty part gives 0.
    """
    probs, labels = repeat_rows(probs, labels, weights)
    residual = []
    for cell in _observed_and_expected(probs, labels, n_bins):
        if cell is None:
            residual.append(0.0)
            continue
        o, p = cell
        if p == 0.0:
            residual.append(0.0 if o == 0.0 else math.inf)
        else:
            residual.append((o - p) / math.sqrt(p))
    return np.array(residual)


def _minus(a: float, b: float) -> float:
    """a - b where infinite equals infinite, so that the difference is never NaN."""
    return 0.0 if a == b else a - b


def recentered_value(
    measure: str,
    probs_star: np.ndarray,
    labels_star: np.ndarray,
    offset: np.ndarray | float | tuple[np.ndarray, np.ndarray],
    n_bins: int = 10,
    bandwidth: float = 1.0,
    kernel: str = "exponential",
) -> float:
    """The measure of a bootstrap sample whose residual has the observed residual subtracted.

    `probs_star`, `labels_star` are the resampled rows at lambda. `offset` is the residual vector
    of the data at lambda_hat for the binned measures, the observed mean of h for `skce_ul`, and
    for `skce_uq`, `skce_b` the data at lambda_hat themselves, (probs_hat, labels), whose mean
    element is subtracted in the RKHS.
    """
    if measure.startswith("ece_"):
        classwise, smooth = "cwise" in measure, measure.endswith("_smooth")
        residual_of = residual_ece_cwise if classwise else residual_ece_conf
        residual = residual_of(probs_star, labels_star, n_bins, smooth=smooth)
        norm = math.fsum(abs(r - o) for r, o in zip(residual, offset, strict=True))
        return norm / np.shape(probs_star)[1] if classwise else norm
    if measure == "hl_cwise":
        residual = residual_hl(probs_star, labels_star, n_bins)
        gaps = [_minus(float(r), float(o)) for r, o in zip(residual, offset, strict=True)]
        return sum(gap * gap for gap in gaps)
    if measure == "skce_ul":
        return skce_ul(probs_star, labels_star, bandwidth, kernel) - float(offset)
    if measure not in ("skce_uq", "skce_b"):
        raise ValueError(f"`measure` must be one of {MEASURES}; got {measure!r}.")

    # f_a = phi(p_a) (x) (p_a - y_a), so <f_a, f_b> = kernel(p_a, p_b) (p_a - y_a).(p_b - y_b).
    probs_hat, labels_hat = offset
    n, n_hat = len(labels_star), len(labels_hat)
    star = [(probs_star[a], int(labels_star[a])) for a in range(n)]
    hat = [(probs_hat[c], int(labels_hat[c])) for c in range(n_hat)]

    def inner(f: tuple[np.ndarray, int], other: tuple[np.ndarray, int]) -> float:
        return skce_term(f[0], f[1], other[0], other[1], bandwidth, kernel)

    # <f_a, R_hat> and <R_hat, R_hat> with R_hat = 1/n sum_c f_c(lambda_hat).
    f_with_mean = [math.fsum(inner(f, e) for e in hat) / n_hat for f in star]
    mean_with_mean = math.fsum(inner(e, d) for e in hat for d in hat) / n_hat**2

    # <g_a, g_b> with g_a = f_a - R_hat.
    terms = []
    for a in range(n):
        for b in range(n):
            if measure == "skce_uq" and a == b:
                continue
            terms.append(inner(star[a], star[b]) - f_with_mean[a] - f_with_mean[b] + mean_with_mean)
    return math.fsum(terms) / (n * (n - 1) if measure == "skce_uq" else n**2)


# Maximum-likelihood weights -------------------------------------------------------------------


def log_likelihood(probs3d: np.ndarray, labels: np.ndarray, weights: Sequence[float]) -> float:
    """sum_i log sum_m lambda_m p^(m)_{y_i}(x_i), over the rows some member gives more than 0."""
    total = []
    for i in range(len(labels)):
        likelihood = [float(p) for p in probs3d[i, :, labels[i]]]
        if any(likelihood):
            total.append(math.log(sum(w * q for w, q in zip(weights, likelihood, strict=True))))
    return math.fsum(total)


def em_weights(probs3d: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """EM on the mixture likelihood from uniform weights.

    Rows to which every member gives 0 are left out. Stops when the log-likelihood gains less than
    1e-9 per remaining row, or after 500 iterations. Uniform weights if no row remains.
    """
    n, m, _ = probs3d.shape
    rows = [i for i in range(n) if any(probs3d[i, j, labels[i]] > 0 for j in range(m))]
    weights = [1.0 / m] * m
    if not rows:
        return np.array(weights)
    before = log_likelihood(probs3d, labels, weights)
    for _ in range(500):
        responsibility = [0.0] * m
        for i in rows:
            joint = [weights[j] * float(probs3d[i, j, labels[i]]) for j in range(m)]
            for j in range(m):
                responsibility[j] += joint[j] / sum(joint)
        weights = [r / len(rows) for r in responsibility]
        after = log_likelihood(probs3d, labels, weights)
        if after - before < 1e-9 * len(rows):
            break
        before = after
    return np.array(weights)


# Decisions ------------------------------------------------------------------------------------


def at_least(t0: float, t: float) -> bool:
    """t0 >= t or |t0 - t| <= 100 eps max(1, |t|); an infinite value ties only with itself."""
    if t0 >= t:
        return True
    if math.isinf(t0) or math.isinf(t):
        return False
    return abs(t0 - t) <= 100 * EPS * max(1.0, abs(t))


def p_value(t: float, null: Sequence[float]) -> float:
    """(1 + #{t0 at least t}) / (1 + D), never 0."""
    return (1 + sum(1 for t0 in null if at_least(t0, t))) / (1 + len(null))


def critical_value(null: Sequence[float], alpha: float) -> float:
    """The (D+1-k)-th smallest null value, k = #{c in 1..D+1 : c/(D+1) <= alpha} in doubles.

    +inf if k = 0: no value can be rejected. -inf if k = D+1 (alpha >= 1): every value is.
    """
    d = len(null)
    k = sum(1 for c in range(1, d + 2) if c / (d + 1) <= alpha)
    if k == 0:
        return math.inf
    if k == d + 1:
        return -math.inf
    return float(sorted(null)[d + 1 - k - 1])


def is_above(t: float, critical: float) -> bool:
    """t above the critical value by the same tie rule: the critical value is not at least t."""
    return not at_least(critical, t)


def holm(pvalues: Sequence[float]) -> list[float]:
    """Holm's step-down: adjusted p_(i) = max over j <= i of min(1, (n - j + 1) p_(j))."""
    n = len(pvalues)
    order = sorted(range(n), key=lambda i: pvalues[i])
    adjusted = [0.0] * n
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (n - rank) * pvalues[i]))
        adjusted[i] = largest
    return adjusted


# Algorithm 1 ----------------------------------------------------------------------------------


def draw_label(p: Sequence[float], rng: np.random.Generator) -> int:
    """One draw from Cat(p) by inversion."""
    return label_at(p, rng.random())


def label_at(p: Sequence[float], level: float) -> int:
    """The first class whose running sum exceeds the level; never one of probability 0."""
    point = level * math.fsum(float(q) for q in p)
    cumulative = 0.0
    for k in range(len(p)):
        cumulative += float(p[k])
        if point < cumulative:
            return k
    return max(k for k in range(len(p)) if p[k] > 0)  # only rounding leads here


def algorithm1(
    probs3d: np.ndarray,
    labels: np.ndarray,
    g: Measure,
    n_resamples: int,
    minimise: Minimiser,
    rng: np.random.Generator,
) -> dict[str, object]:
    """Algorithm 1, lines 1-7. `minimise(probs3d, labels)` returns the weights of line 7.

    Returns the statistic, its weights and the null values; line 6 at a given alpha is
    `critical_value(null, alpha)` and line 8 is `is_above`.
    """
    n, m, _ = probs3d.shape
    null = []
    for _d in range(n_resamples):  # line 1
        rows = rng.integers(0, n, size=n)  # line 2
        lambda_0 = rng.dirichlet(np.ones(m))  # line 3
        p_0 = mixture(probs3d[rows], lambda_0)
        labels_0 = np.array([draw_label(p_0[i], rng) for i in range(n)])  # line 4
        null.append(g(p_0, labels_0))  # line 5
    weights = minimise(probs3d, labels)  # line 7
    statistic = g(mixture(probs3d, weights), labels)
    return {"statistic": statistic, "weights": weights, "null": null}


# Exact nulls by enumeration -------------------------------------------------------------------


def _label_vectors(probs2d: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
    """All K^N label vectors, each with its probability when y_i ~ Cat(p_i) independently."""
    n, k = probs2d.shape
    for vector in itertools.product(range(k), repeat=n):
        probability = math.prod(float(probs2d[i, vector[i]]) for i in range(n))
        yield np.array(vector), probability


def exact_label_null(probs2d: np.ndarray, g: Measure) -> list[tuple[float, float]]:
    """(value, probability) of g over all K^N label vectors: the null of one classifier."""
    return [(g(probs2d, labels), weight) for labels, weight in _label_vectors(probs2d)]


def exact_label_pvalue(probs2d: np.ndarray, labels: np.ndarray, g: Measure) -> float:
    """P(g of labels from p is at least the observed g), ties by the rule of the p-value."""
    observed = g(probs2d, labels)
    null = exact_label_null(probs2d, g)
    return math.fsum(weight for value, weight in null if at_least(value, observed))


def exact_refit_pvalue(
    probs3d: np.ndarray,
    labels: np.ndarray,
    g: Measure,
    minimise: Minimiser,
    weights: Sequence[float],
) -> float:
    """P(min g is at least the observed min g) over all K^N labels drawn from p_weights.

    `minimise(probs3d, labels)` returns weights and is applied to the data and to every vector.
    """

    def minimum(y: np.ndarray) -> float:
        return g(mixture(probs3d, minimise(probs3d, y)), y)

    observed = minimum(np.asarray(labels))
    null = ((minimum(y), weight) for y, weight in _label_vectors(mixture(probs3d, weights)))
    return math.fsum(weight for value, weight in null if at_least(value, observed))


# Minima ---------------------------------------------------------------------------------------


def simplex_grid(m: int, grid: int) -> Iterator[tuple[float, ...]]:
    """All weights whose entries are multiples of 1/grid, for M = 2 or 3."""
    if m == 2:
        for a in range(grid + 1):
            yield a / grid, (grid - a) / grid
    elif m == 3:
        for a in range(grid + 1):
            for b in range(grid + 1 - a):
                yield a / grid, b / grid, (grid - a - b) / grid
    else:
        raise ValueError(f"`probs3d` must have 2 or 3 members; got {m}.")


def brute_force_minimum(
    probs3d: np.ndarray, labels: np.ndarray, g: Measure, grid: int
) -> tuple[float, np.ndarray]:
    """Line 7 over the grid: the smallest g and the first weights that reach it."""
    best, best_weights = math.inf, None
    for weights in simplex_grid(probs3d.shape[1], grid):
        value = g(mixture(probs3d, weights), labels)
        if best_weights is None or value < best:
            best, best_weights = value, weights
    return best, np.array(best_weights)


Line = tuple[Fraction, Fraction]  # a + b lambda
Cells = dict[object, list[Line]]  # bin -> one line per row in it: the row's label minus forecast


def _at(line: Line, lam: Fraction) -> Fraction:
    return line[0] + line[1] * lam


def _exact_bin(p: Fraction, n_bins: int) -> int:
    """`bin_of` in rational arithmetic; the edge is the double j/B taken as a rational."""
    for j in range(1, n_bins):
        if p < Fraction(j / n_bins):
            return j - 1
    return n_bins - 1


def _forecast_lines(probs3d: np.ndarray) -> list[list[Line]]:
    """p_ik as a line in lambda, for weights (lambda, 1 - lambda)."""
    n, m, k = probs3d.shape
    if m != 2:
        raise ValueError(f"`probs3d` must have 2 members; got {m}.")
    lines = []
    for i in range(n):
        row = []
        for c in range(k):
            p1, p2 = Fraction(float(probs3d[i, 0, c])), Fraction(float(probs3d[i, 1, c]))
            row.append((p2, p1 - p2))
        lines.append(row)
    return lines


def _breakpoints(lines: list[list[Line]], n_bins: int) -> list[Fraction]:
    """Every lambda in [0, 1] where two classes of a row tie or a forecast is on an edge."""
    points = {Fraction(0), Fraction(1)}
    for row in lines:
        crossings = []
        for c in range(len(row)):
            for j in range(1, n_bins):
                crossings.append((row[c][0] - Fraction(j / n_bins), row[c][1]))
            for other in range(c):
                crossings.append((row[c][0] - row[other][0], row[c][1] - row[other][1]))
        for a, b in crossings:
            if b != 0 and 0 <= -a / b <= 1:
                points.add(-a / b)
    return sorted(points)


def _conf_cells(lines: list[list[Line]], labels: np.ndarray, n_bins: int, lam: Fraction) -> Cells:
    cells: Cells = {}
    for i, row in enumerate(lines):
        top = predicted_class([_at(line, lam) for line in row])
        a, b = row[top]
        hit = 1 if labels[i] == top else 0
        cells.setdefault(_exact_bin(_at(row[top], lam), n_bins), []).append((hit - a, -b))
    return cells


def _cwise_cells(lines: list[list[Line]], labels: np.ndarray, n_bins: int, lam: Fraction) -> Cells:
    cells: Cells = {}
    for i, row in enumerate(lines):
        for k, (a, b) in enumerate(row):
            y = 1 if labels[i] == k else 0
            cells.setdefault((k, _exact_bin(_at((a, b), lam), n_bins)), []).append((y - a, -b))
    return cells


def _infimum(
    lines: list[list[Line]],
    n_bins: int,
    cells_at: Callable[[Fraction], Cells],
    scale: int,
) -> Fraction:
    """inf over lambda in [0, 1] of sum over bins |sum of the bin's lines| / scale, exactly.

    Between two neighbouring breakpoints nobody changes bin or predicted class, so the function
    is convex and piecewise linear there: its infimum is a one-sided limit at an end or the value
    where a bin's gap is 0. The function may jump at the breakpoints, which are evaluated too.
    """

    def gaps(cells: Cells) -> list[Line]:
        return [(sum(a for a, _ in c), sum(b for _, b in c)) for c in cells.values()]

    def value(bin_gaps: list[Line], lam: Fraction) -> Fraction:
        return sum((abs(_at(gap, lam)) for gap in bin_gaps), Fraction(0)) / scale

    points = _breakpoints(lines, n_bins)
    candidates = [value(gaps(cells_at(lam)), lam) for lam in points]
    for left, right in itertools.pairwise(points):
        middle = (left + right) / 2
        inside = gaps(cells_at(middle))
        zeros = [-a / b for a, b in inside if b != 0 and left < -a / b < right]
        candidates += [value(inside, lam) for lam in [left, middle, right, *zeros]]
    return min(candidates)


def exact_minimum_ece_conf(probs3d: np.ndarray, labels: np.ndarray, n_bins: int = 10) -> Fraction:
    """The infimum of Eq. 6 over the segment of M = 2 members, in rational arithmetic.

    It need not be attained: bins are half-open, so the measure may jump up at its limit.
    """
    lines = _forecast_lines(probs3d)
    return _infimum(lines, n_bins, lambda lam: _conf_cells(lines, labels, n_bins, lam), len(labels))


def exact_minimum_ece_cwise(probs3d: np.ndarray, labels: np.ndarray, n_bins: int = 10) -> Fraction:
    """The infimum of Eq. 5 over the segment of M = 2 members, in rational arithmetic."""
    lines = _forecast_lines(probs3d)
    return _infimum(
        lines,
        n_bins,
        lambda lam: _cwise_cells(lines, labels, n_bins, lam),
        len(labels) * probs3d.shape[2],
    )


# Scenarios (Section 4.1, Appendix A) ----------------------------------------------------------


def draw_dirichlet(rng: np.random.Generator, concentration: np.ndarray) -> np.ndarray:
    """Dirichlet rows in log space: log G(a) = log G(a + 1) + log(U) / a.

    A concentration of 0 gives the component 0. If every logarithm of a row underflows, the row
    is the corner whose logarithm is the largest.
    """
    a = np.asarray(concentration, dtype=float)
    log_base = np.log(rng.standard_gamma(a + 1.0))
    log_u = np.log1p(-rng.random(a.shape))  # 1 - U lies in (0, 1]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_gamma = np.where(a > 0, log_base + log_u / a, -np.inf)
        # -log(U)/a is smallest where log G is largest, and its logarithm cannot overflow.
        log_rate = np.where(a > 0, np.log(-log_u) - np.log(a), np.inf)
    top = np.max(log_gamma, axis=-1, keepdims=True)
    lost = ~np.isfinite(top)
    draw = np.exp(log_gamma - np.where(lost, 0.0, top))
    corner = np.arange(a.shape[-1]) == np.argmin(log_rate, axis=-1)[..., None]
    draw = np.where(lost, corner, draw)
    return draw / draw.sum(axis=-1, keepdims=True)


def draw_members(
    rng: np.random.Generator, n: int, m: int, k: int, u: float
) -> tuple[np.ndarray, np.ndarray]:
    """p_e ~ Dir(1/K, ..., 1/K) and M members ~ Dir(K p_e / u), per instance."""
    p_e = draw_dirichlet(rng, np.full((n, k), 1.0 / k))
    members = draw_dirichlet(rng, np.repeat(k * p_e[:, None, :] / u, m, axis=1))
    return p_e, members


def draw_labels(rng: np.random.Generator, truth: np.ndarray) -> np.ndarray:
    """One label per row from Cat(truth)."""
    return np.array([draw_label(row, rng) for row in truth])


def scenario_s1(
    rng: np.random.Generator, n: int, m: int, k: int, u: float, vertex: bool = False
) -> Scenario:
    """S1: labels from p_lambda, one lambda uniform on the simplex (or a random vertex) per set."""
    _, members = draw_members(rng, n, m, k, u)
    weights = np.eye(m)[rng.integers(m)] if vertex else rng.dirichlet(np.ones(m))
    return members, draw_labels(rng, mixture(members, weights))


def in_hull(point: np.ndarray, members: np.ndarray) -> bool:
    """Is there lambda with sum_m lambda_m p^(m) = point? The LP of Algorithm 2, line 7.

    Up to the solver's feasibility tolerance (HiGHS: 1e-7), here and in `find_boundary`. It
    matters: with many classes most probabilities are far below it.
    """
    m = len(members)
    a = np.vstack([members.T, np.ones(m)])
    result = linprog(
        np.zeros(m),
        A_eq=a,
        b_eq=np.append(point, 1.0),
        bounds=(0, None),
        method="highs",
    )
    return result.status == 0


def find_boundary(members: np.ndarray, p_0: np.ndarray, p_c: np.ndarray) -> np.ndarray:
    """Algorithm 2 with one LP in place of the line search: the last point of the hull on the ray.

    Maximise s subject to v, w in the simplex, sum_m v_m p^(m) = p_0 and
    sum_m w_m p^(m) = p_0 + s (p_c - p_0), 0 <= s <= 1. The hull is convex, so every point between
    the two is in it. Infeasible means that p_0 is outside, where Algorithm 2 returns p_0.
    """
    m, k = members.shape
    ray = p_c - p_0
    # Unknowns (v, w, s).
    a = np.zeros((2 * k + 2, 2 * m + 1))
    a[:k, :m] = members.T
    a[k, :m] = 1.0
    a[k + 1 : 2 * k + 1, m : 2 * m] = members.T
    a[k + 1 : 2 * k + 1, 2 * m] = -ray
    a[2 * k + 1, m : 2 * m] = 1.0
    z = np.concatenate([p_0, [1.0], p_0, [1.0]])
    objective = np.zeros(2 * m + 1)
    objective[-1] = -1.0
    result = linprog(
        objective,
        A_eq=a,
        b_eq=z,
        bounds=[(0, None)] * (2 * m) + [(0, 1)],
        method="highs",
    )
    if result.status == 2:
        return p_0.copy()
    if result.status != 0:
        raise RuntimeError(f"the boundary LP did not end: {result.message}")
    return p_0 + min(max(float(result.x[-1]), 0.0), 1.0) * ray


def find_boundaries(members: np.ndarray, p_0: np.ndarray, p_c: np.ndarray) -> np.ndarray:
    """`find_boundary` for each instance."""
    return np.array([find_boundary(members[i], p_0[i], p_c[i]) for i in range(len(members))])


def find_boundaries_fast(members: np.ndarray, p_0: np.ndarray, p_c: np.ndarray) -> np.ndarray:
    """`find_boundaries` by linear algebra where the answer is clear, the LP elsewhere.

    Outside at once: p_0 exceeds every member, or is below every member, in some class. Otherwise,
    for M <= K members that are affinely independent, the weights of p_0 + s (p_c - p_0) are
    unique and affine in s: the boundary is the largest s that keeps them >= 0, and s = 0 if the
    ray leaves the affine span of the members. An instance whose answer hangs on the LP's
    tolerance, or whose members are nearly dependent, is left to the LP.
    """
    _, m, k = members.shape
    boundary = p_0.copy()
    clear = 3e-7 * (1 + m)  # more than the LP's tolerance of 1e-7 per row and weight can bridge
    outside = np.any(
        (p_0 > members.max(axis=1) + clear) | (p_0 < members.min(axis=1) - clear), axis=1
    )
    undecided = np.flatnonzero(~outside)
    by_program = undecided
    if m <= k and len(undecided) > 0:
        ones = np.ones((len(undecided), 1, m))
        a = np.concatenate([members[undecided].transpose(0, 2, 1), ones], axis=1)
        z = np.pad(p_0[undecided], ((0, 0), (0, 1)), constant_values=1.0)
        ray = np.pad(p_c[undecided] - p_0[undecided], ((0, 0), (0, 1)))
        inverse = np.linalg.pinv(a)
        at_start = np.einsum("nmk,nk->nm", inverse, z)
        along = np.einsum("nmk,nk->nm", inverse, ray)
        off_start = np.abs(np.einsum("nkm,nm->nk", a, at_start) - z).max(axis=1)
        off_ray = np.abs(np.einsum("nkm,nm->nk", a, along) - ray).max(axis=1)
        smallest = np.linalg.svd(a, compute_uv=False)[:, -1]
        is_inside = (off_start < 1e-12) & (at_start.min(axis=1) > clear) & (smallest > 1e-2)
        too_negative = at_start.min(axis=1) * smallest < -1e-6 * np.sqrt(k + 1)
        is_outside = (off_start > clear) | ((smallest > 1e-6) & too_negative)
        ray_decided = (off_ray < 1e-12) | (off_ray > 1e-2)
        decided = is_outside | (is_inside & ray_decided)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(along < 0, at_start / -along, np.inf)
        step = np.clip(steps.min(axis=1), 0.0, 1.0)
        step = np.where(is_inside & (off_ray < 1e-12), step, 0.0)
        rows = undecided[decided]
        boundary[rows] += step[decided, None] * (p_c[rows] - p_0[rows])
        by_program = undecided[~decided]
    for i in by_program:
        boundary[i] = find_boundary(members[i], p_0[i], p_c[i])
    return boundary


def scenario_s3_draws(
    rng: np.random.Generator,
    n: int,
    m: int,
    k: int,
    u: float,
    strength: float = 1.0,
    boundaries: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] = find_boundaries,
) -> dict[str, np.ndarray]:
    """S3 with everything that was drawn: truth = b + strength w (corner - b), w ~ U(0, 1)."""
    p_e, members = draw_members(rng, n, m, k, u)
    corner = np.eye(k)[rng.integers(k, size=n)]
    w = rng.random((n, 1))
    boundary = boundaries(members, p_e, corner)
    truth = boundary + strength * w * (corner - boundary)
    truth = np.maximum(truth, 0.0)
    truth /= truth.sum(axis=1, keepdims=True)
    return {
        "p_e": p_e,
        "probs": members,
        "corner": corner,
        "boundary": boundary,
        "truth": truth,
        "labels": draw_labels(rng, truth),
    }


def scenario_s3_fast(
    rng: np.random.Generator, n: int, m: int, k: int, u: float, strength: float = 1.0
) -> Scenario:
    """S3: per instance, labels from a random point beyond the boundary towards a random corner."""
    drawn = scenario_s3_draws(rng, n, m, k, u, strength, find_boundaries_fast)
    return drawn["probs"], drawn["labels"]


def calibrated_not_truth(rng: np.random.Generator, n: int) -> Scenario:
    """K = M = 2: member A is exactly calibrated, yet no combination gives the labels' law.

    eta = 1/2 + tanh(z1)/4 + tanh(2 z2)/4 is the probability of class index 1; member A gives it
    1/2 + tanh(z1)/4 = E[eta | z1], member B the overconfident 1/(1 + exp(-6 z2)).
    """
    z1, z2 = rng.standard_normal(n), rng.standard_normal(n)
    eta = 0.5 + 0.25 * np.tanh(z1) + 0.25 * np.tanh(2 * z2)
    member_a = 0.5 + 0.25 * np.tanh(z1)
    member_b = 1.0 / (1.0 + np.exp(-6.0 * z2))
    probs = np.stack(
        [
            np.stack([1.0 - member_a, member_a], axis=1),
            np.stack([1.0 - member_b, member_b], axis=1),
        ],
        axis=1,
    )
    return probs, draw_labels(rng, np.stack([1.0 - eta, eta], axis=1))

"""Tests of Widmann et al. (2019): is the kernel calibration error zero?"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcal import pvalues
from hullcal._compiled.drawn_rows import draw_counts
from hullcal._compiled.streams import key_of
from hullcal._validation import check_integer, check_seed, refusal, takes_rng, unknown
from hullcal.classical.single import ClassicalTestResult, one_classifier
from hullcal.kernels import Kernel, kernel_factors
from hullcal.measures.skce import SKCE
from hullcal.nulls import ONE_CALIBRATED
from hullcal.threads import blocks

Floats = NDArray[np.float64]

#: B, which bounds |h|; derived in the docstring of `skce_test`.
BOUND = 2.0
#: Terms h of a block of rows with all rows, and counts of a block of replicates, held at once.
_TERMS, _COUNTS = 1_000_000, 16_000_000

_METHODS = {
    "asymptotic": ("ul",),
    "bootstrap": ("uq",),
    "distribution_free": ("ul", "uq", "b"),
}


@takes_rng
def skce_test(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    estimator: Literal["ul", "uq", "b"] = "ul",
    method: Literal["asymptotic", "bootstrap", "distribution_free"] = "asymptotic",
    bandwidth: float | Literal["median"] = 1.0,
    kernel: str | Kernel = "exponential",
    n_resamples: int = 999,
    rng: int | np.random.Generator | None = None,
    classes: ArrayLike | None = None,
    from_logits: bool = False,
    from_log: bool = False,
    normalize: bool = False,
) -> ClassicalTestResult:
    r"""Test whether one classifier is calibrated in the strong sense, by an SKCE estimator.

    Write :math:`h_{ij} = (p_i - e_{y_i})^\top \Gamma(p_i, p_j) (p_j - e_{y_j})`, t for the estimate
    and n for the number of rows. The tests are one-sided: only a large t is evidence against calibration.

    ``("ul", "asymptotic")``
        The n/2 terms of disjoint pairs are independent with mean 0 under the hypothesis, so by the
        central limit theorem :math:`\sqrt{\lfloor n/2 \rfloor}\, t / \hat\sigma` is asymptotically
        standard normal, :math:`\hat\sigma` being the standard deviation of the terms (divided by
        their number). Cost: n·K.

    ``("uq", "bootstrap")``
        Under the hypothesis :math:`E[h_{ij} \mid x_i, y_i] = 0`: the U-statistic is degenerate, and
        n·t tends to a weighted sum of centred chi-squared variables. Arcones and Giné (1992): with
        rows drawn with replacement, marked by a star,

        .. math:: \frac{1}{n} \sum_{i \neq j} \Bigl( h^*_{ij} - \frac{1}{n} \sum_k h_{i^*k}
                  - \frac{1}{n} \sum_k h_{kj^*} + \frac{1}{n^2} \sum_{k,l} h_{kl} \Bigr)

        has the same limit. The null values are these, divided by n, so that they compare with t.
        Cost: n²·(K + D), in blocks: never an n×n array.

    ``("ul" | "uq" | "b", "distribution_free")``
        Both kernels have :math:`\Gamma(p, p') = \gamma I` with :math:`0 < \gamma \le 1`, and
        :math:`\lVert p - e_y \rVert_2^2 = \lVert p \rVert_2^2 - 2 p_y + 1 \le 2` in the unit simplex,
        so by Cauchy and Schwarz :math:`|h| \le B = 2`; this is their :math:`B_{p;q}` for p = q = 2.
        By Hoeffding's inequality for U-statistics, for t > 0 and ``"ul"``, ``"uq"``,

        .. math:: P(T \ge t) \le \exp\bigl(-\lfloor n/2 \rfloor\, t^2 / (2 B^2)\bigr).

        For ``"b"``, :math:`\sqrt{T}` is the norm of a mean of n independent elements with mean 0 and
        norm at most :math:`\sqrt{B}`: its expectation is at most :math:`\sqrt{B/n}`, changing one
        row changes it by at most :math:`2\sqrt{B}/n`, and by McDiarmid's inequality

        .. math:: P(T \ge t) \le \exp\Bigl(-\tfrac{1}{2} \max\bigl(0, \sqrt{n t / B} - 1\bigr)^2\Bigr).

        Valid for every n, and very conservative. (The Gaussian kernel of a total variation is not
        positive definite for K > 2; the bound for ``"b"`` is then not proven.)

    Parameters
    ----------
    probs : array-like of shape (n_samples, n_classes)
    labels : array-like of shape (n_samples,)
    estimator : {"ul", "uq", "b"}
    method : {"asymptotic", "bootstrap", "distribution_free"}
    bandwidth, kernel
        As in `SKCE`.
    n_resamples : int
        D, for the bootstrap.
    rng : int, numpy.random.Generator or None
        Seed of the bootstrap.
    classes, from_logits, from_log, normalize
        As in `calibration_test`.

    Returns
    -------
    ClassicalTestResult

    Examples
    --------
    >>> sure_and_wrong = [[1.0, 0.0]] * 100
    >>> skce_test(sure_and_wrong, [1] * 100, method="distribution_free").pvalue < 1e-10
    True
    """
    measure = SKCE(estimator=estimator, bandwidth=bandwidth, kernel=kernel)
    if str(method) not in _METHODS:
        raise unknown("method", method, sorted(_METHODS))
    if estimator not in _METHODS[method]:
        rule = f"`{method}` needs estimator {' or '.join(_METHODS[method])}"
        repair = "The method `distribution_free` takes every estimator."
        raise refusal("method", rule, f"estimator `{estimator}`", repair)
    n_resamples, seed = check_integer(n_resamples, "n_resamples", 1), check_seed(rng)
    read = {"from_logits": from_logits, "from_log": from_log, "normalize": normalize}
    classifiers, truth = one_classifier(probs, labels, classes=classes, **read)
    predictions = classifiers.probs[:, 0, :]
    measure.check(len(truth))
    if method == "asymptotic" and len(truth) < 4:
        rule = '"asymptotic" needs two pairs of rows, whose spread it estimates'
        repair = "Use method `bootstrap` or `distribution_free`."
        raise refusal("method", rule, f"{len(truth)} rows", repair)
    mixed = np.ascontiguousarray(predictions.T, dtype=np.float64)
    parameters = measure.parameters(predictions)
    statistic = measure.evaluate(mixed, truth, parameters)
    errors, null = mixed.copy(), np.empty(0)
    errors[truth, np.arange(len(truth))] -= 1.0  # p - e_y, (K, N)
    if method == "asymptotic":
        i, j = np.arange(len(truth) // 2 * 2).reshape(-1, 2).T
        products = (errors[:, i] * errors[:, j]).sum(axis=0)
        pvalue = _normal(_terms(mixed[:, i], mixed[:, j], products, parameters))
    elif method == "bootstrap":
        null = _bootstrap(mixed, errors, parameters, n_resamples, key_of(seed))
        pvalue = pvalues.monte_carlo(statistic, null)
    else:
        pvalue = _bounded(statistic, len(truth), estimator)
    return ClassicalTestResult(
        statistic=statistic,
        pvalue=pvalue,
        test=f"Widmann et al., {measure.name}, {method}",
        hypothesis=ONE_CALIBRATED,
        settings={**measure.settings(), "method": method},
        null_distribution=null,
        seed=seed if method == "bootstrap" else None,
        n_samples=len(truth),
        n_classes=predictions.shape[1],
        notes=classifiers.notes,
    )


def _terms(p: Floats, q: Floats, products: Floats, parameters: Floats) -> Floats:
    """h of predictions whose rows broadcast, (K, ...), from the inner products of their errors."""
    distances = np.zeros_like(products)
    for one, other in zip(p, q, strict=True):
        distances += np.abs(one - other)
    distances *= 0.5
    kernel_factors(distances.ravel(), parameters[0], parameters[1], np.empty(distances.size))
    return distances * products


def _normal(terms: Floats) -> float:
    mean, deviation = float(terms.mean()), float(terms.std())
    if deviation == 0.0:
        # Certain-and-right predictions: no spread, and the sign alone decides.
        return 0.0 if mean > 0.0 else 1.0
    return 0.5 * math.erfc(math.sqrt(len(terms) / 2.0) * mean / deviation)


def _bounded(statistic: float, n_samples: int, estimator: str) -> float:
    if estimator == "b":
        excess = math.sqrt(n_samples * max(statistic, 0.0) / BOUND) - 1.0
        return math.exp(-0.5 * max(excess, 0.0) ** 2)
    return math.exp(-(n_samples // 2) * max(statistic, 0.0) ** 2 / (2.0 * BOUND**2))


def _bootstrap(
    mixed: Floats, errors: Floats, parameters: Floats, n_resamples: int, key: NDArray[np.uint64]
) -> Floats:
    """Arcones and Giné's bootstrap of the degenerate U-statistic.

    With w the times that each row is drawn and c = w - 1, the sum over all i and j of the centred
    terms is c'Hc; the sum over i = j, to be taken off, is w'(diagonal - 2 row means + mean). H is
    made in blocks of rows, again for every block of replicates, and never held whole.
    """
    n_samples = mixed.shape[1]
    out = []
    for first, last in blocks(0, n_resamples, max(1, _COUNTS // n_samples)):
        counts = np.zeros((last - first, n_samples))
        draw_counts(key, first, 1, counts)
        c = counts - 1.0
        quadratic, row_means, diagonal = np.zeros(len(c)), np.empty(n_samples), np.empty(n_samples)
        for begin, end in blocks(0, n_samples, max(1, _TERMS // n_samples)):
            rows = slice(begin, end)
            products = errors[:, rows].T @ errors
            terms = _terms(mixed[:, rows, None], mixed[:, None], products, parameters)
            quadratic += np.einsum("dn,dn->d", c @ terms.T, c[:, rows])
            row_means[rows] = terms.mean(axis=1)
            diagonal[rows] = np.diagonal(terms[:, rows])
        doubled = counts @ (diagonal - 2.0 * row_means + row_means.mean())
        out.append((quadratic - doubled) / n_samples**2)
    return np.concatenate(out)

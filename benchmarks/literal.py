"""The opponent: the paper's test in the manner of its authors' public scripts, NumPy and SciPy alone.

This is how those scripts go about it, in our own words. A bootstrap sample is drawn from the list of
rows by `random.choices` and stacked again; members are mixed by `matmul`; each label comes from a
frozen `scipy.stats.multinomial(1, p)` made for its row inside `apply_along_axis`; line 7 of
Algorithm 1 is COBYLA from the uniform weights with its default options, the sum and both bounds of
every weight being inequalities of their own. Where the scripts depart from the paper's text, the text
is followed. The SKCE is kinder than theirs: one array expression for all pairs.

Its lean form is the same test by whole arrays: rows by number, labels from uniform draws, bins by
`bincount`; the search is the same COBYLA. It tells what is won by sparing waste from what is won by
compiled arithmetic.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from experiments.alternatives import em_weights
from scipy.optimize import minimize
from scipy.stats import multinomial

import hullcal as hc
from benchmarks.measuring import Array

Measure = Callable[[Array, Array], float]
N_BINS = 10


def binned_gap(p: Array, hit: Array) -> float:
    """The sum of Eqs. 5 and 6: mean claim against share of hits in bins of equal width."""
    bins = np.digitize(p, np.arange(1, N_BINS) / N_BINS)
    value = 0.0
    for j in range(N_BINS):
        mask = bins == j
        if mask.any():
            value += mask.mean() * abs(hit[mask].mean() - p[mask].mean())
    return value


def ece_conf(probs: Array, labels: Array) -> float:
    """Eq. 6."""
    return binned_gap(probs.max(axis=1), probs.argmax(axis=1) == labels)


def ece_cwise(probs: Array, labels: Array) -> float:
    """Eq. 5."""
    n_classes = probs.shape[1]
    return sum(binned_gap(probs[:, k], labels == k) for k in range(n_classes)) / n_classes


def hl_cwise(probs: Array, labels: Array) -> float:
    """Eqs. 3-4; rows that tie are cut where they happen to stand."""
    value = 0.0
    for k in range(probs.shape[1]):
        p = probs[:, k]
        y = labels == k
        for rows in np.array_split(np.argsort(p, kind="stable"), N_BINS):
            observed, expected = y[rows].mean(), p[rows].mean()
            if expected > 0:
                value += (observed - expected) ** 2 / expected
            elif observed > 0:
                value += np.inf
    return value


def skce_ul(probs: Array, labels: Array) -> float:
    """Eq. 8."""
    residual = probs - np.eye(probs.shape[1])[labels]
    value = 0.0
    n_pairs = len(labels) // 2
    for i in range(n_pairs):
        a, b = 2 * i, 2 * i + 1
        kernel = np.exp(-np.abs(probs[a] - probs[b]).sum() / 2)
        value += kernel * (residual[a] @ residual[b])
    return value / n_pairs


def skce_terms(probs: Array, labels: Array) -> Array:
    """The N x N matrix of the terms of Eq. 7."""
    residual = probs - np.eye(probs.shape[1])[labels]
    distance = np.abs(probs[:, None, :] - probs[None, :, :]).sum(axis=2)
    return np.exp(-distance / 2) * (residual @ residual.T)


def skce_uq(probs: Array, labels: Array) -> float:
    """Eq. 7."""
    h = skce_terms(probs, labels)
    n = len(labels)
    return (h.sum() - np.trace(h)) / (n * (n - 1))


def skce_b(probs: Array, labels: Array) -> float:
    """The biased estimator of Widmann et al. (2019)."""
    return skce_terms(probs, labels).mean()


MEASURES: dict[str, Measure] = {
    g.__name__: g for g in (ece_conf, ece_cwise, hl_cwise, skce_ul, skce_uq, skce_b)
}


def lean_gaps(p: Array, hit: Array) -> float:
    """The sum of Eqs. 5 and 6, all bins of all columns at once."""
    n_samples, n_columns = p.shape
    cells = np.digitize(p, np.arange(1, N_BINS) / N_BINS) + N_BINS * np.arange(n_columns)
    sums = np.bincount(cells.ravel(), (hit - p).ravel(), minlength=N_BINS * n_columns)
    return float(np.abs(sums).sum()) / n_samples


def lean_ece_conf(probs: Array, labels: Array) -> float:
    """Eq. 6."""
    return lean_gaps(probs.max(axis=1)[:, None], (probs.argmax(axis=1) == labels)[:, None])


def lean_ece_cwise(probs: Array, labels: Array) -> float:
    """Eq. 5."""
    n_classes = probs.shape[1]
    return lean_gaps(probs, labels[:, None] == np.arange(n_classes)) / n_classes


def lean_hl_cwise(probs: Array, labels: Array) -> float:
    """Eqs. 3-4."""
    n_samples, n_classes = probs.shape
    order = np.argsort(probs, axis=0, kind="stable")
    begins = np.array([rows[0] for rows in np.array_split(np.arange(n_samples), N_BINS)])
    sizes = np.diff(np.append(begins, n_samples))[:, None]
    hits = (labels[:, None] == np.arange(n_classes))[order, np.arange(n_classes)].astype(float)
    observed = np.add.reduceat(hits, begins) / sizes
    expected = np.add.reduceat(np.take_along_axis(probs, order, 0), begins) / sizes
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (observed - expected) ** 2 / expected
    return float(np.where((expected == 0) & (observed == 0), 0.0, terms).sum())


def lean_skce_ul(probs: Array, labels: Array) -> float:
    """Eq. 8."""
    n_pairs = len(labels) // 2
    residual = (probs - np.eye(probs.shape[1])[labels])[: 2 * n_pairs]
    a, b = probs[: 2 * n_pairs : 2], probs[1 : 2 * n_pairs : 2]
    kernel = np.exp(-np.abs(a - b).sum(axis=1) / 2)
    return float((kernel * (residual[::2] * residual[1::2]).sum(axis=1)).mean())


#: The SKCE over all pairs is lean already.
LEAN: dict[str, Measure] = MEASURES | {
    "ece_conf": lean_ece_conf,
    "ece_cwise": lean_ece_cwise,
    "hl_cwise": lean_hl_cwise,
    "skce_ul": lean_skce_ul,
}


def combine(probs: Array, weights: Array) -> Array:
    """p_lambda, (N, K), of the members' probabilities, (N, M, K)."""
    return np.matmul(np.swapaxes(probs, 1, 2), weights)


def bootstrap(probs: Array, rows: random.Random) -> Array:
    """Line 2: N rows drawn with replacement."""
    return np.stack(rows.choices(probs.tolist(), k=len(probs)))


def sample_labels(probs: Array, rng: np.random.Generator) -> Array:
    """Line 4: one label per row, by a distribution made for it."""
    return np.apply_along_axis(
        lambda p: np.argmax(multinomial(1, p, seed=rng).rvs(size=1)[0]), 1, probs
    )


def simplex_constraints(n_members: int) -> list[dict[str, Any]]:
    """The simplex as inequalities, as COBYLA wants it."""
    constraints: list[dict[str, Any]] = [
        {"type": "ineq", "fun": lambda w: np.sum(w) - 1.0},
        {"type": "ineq", "fun": lambda w: 1.0 - np.sum(w)},
    ]
    for m in range(n_members):
        constraints.append({"type": "ineq", "fun": lambda w, m=m: w[m]})
        constraints.append({"type": "ineq", "fun": lambda w, m=m: 1.0 - w[m]})
    return constraints


def minimise(probs: Array, labels: Array, g: Measure) -> tuple[float, int]:
    """Line 7: COBYLA over the simplex from the uniform weights; value and evaluations."""
    n_members = probs.shape[1]
    result = minimize(
        lambda w: g(combine(probs, w), labels),
        np.full(n_members, 1 / n_members),
        method="COBYLA",
        constraints=simplex_constraints(n_members),
    )
    # COBYLA may end a hair outside the simplex.
    weights = np.clip(result.x, 0, None)
    return g(combine(probs, weights / weights.sum()), labels), result.nfev


def paper_null(probs: Array, g: Measure, n_resamples: int, rng: np.random.Generator) -> list[float]:
    """Lines 1 to 5 of Algorithm 1, to the letter."""
    rows = random.Random(int(rng.integers(2**32)))
    null = []
    for _ in range(n_resamples):
        drawn = bootstrap(probs, rows)
        probs_0 = combine(drawn, rng.dirichlet(np.ones(probs.shape[1])))
        null.append(g(probs_0, sample_labels(probs_0, rng)))
    return null


def lean_paper_null(
    probs: Array, g: Measure, n_resamples: int, rng: np.random.Generator
) -> list[float]:
    """The same by whole arrays."""
    null = []
    for _ in range(n_resamples):
        drawn = probs[rng.integers(len(probs), size=len(probs))]
        probs_0 = combine(drawn, rng.dirichlet(np.ones(probs.shape[1])))
        null.append(g(probs_0, hc.simulation.draw_labels(probs_0, rng)))
    return null


def refit_null(
    probs: Array, labels: Array, g: Measure, n_resamples: int, rng: np.random.Generator
) -> list[float]:
    """The refit null: rows fixed, labels from the EM weights, COBYLA on every resample."""
    probs_0 = combine(probs, em_weights(probs, labels))
    return [minimise(probs, sample_labels(probs_0, rng), g)[0] for _ in range(n_resamples)]

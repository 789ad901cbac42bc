"""The opponent: the paper's test in the manner of its authors' public scripts, NumPy and SciPy alone.

This is how those scripts go about it, in our own words. A bootstrap sample is drawn from the list of
rows by `random.choices` and stacked again; members are mixed by `matmul`; each label comes from a
frozen `scipy.stats.multinomial(1, p)` made for its row inside `apply_along_axis`; line 7 of
Algorithm 1 is COBYLA from the uniform weights with its default options, the sum and both bounds of
every weight being inequalities of their own. Nothing is slower than that. The leaner call
`multinomial.rvs(1, p)`, which makes no distribution for the row, would take about half the time:
that is `lean=True`, and the benchmark prints both.

Where the scripts depart from the paper's text, the text is followed: rows are drawn with
replacement, weights are uniform, each class has its own HL bins. The SKCE is kinder than theirs: no
K x K matrix for a pair, and one array expression for all pairs in place of a loop in Python. HL bins
come from `argsort` and `array_split`, so rows that tie are cut where they happen to stand.

`python -m benchmarks.literal` prints how long one test takes for each measure; `--refit` adds the
refit null, which runs COBYLA on every resample and takes minutes.
"""

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import multinomial

Array = np.ndarray
Measure = Callable[[Array, Array], float]

N_BINS = 10


def ece_conf(probs: Array, labels: Array) -> float:
    """Eq. 6."""
    edges = np.arange(N_BINS + 1) / N_BINS
    confidence = probs.max(axis=1)
    hit = probs.argmax(axis=1) == labels
    bins = np.digitize(confidence, edges[1:-1])
    value = 0.0
    for j in range(N_BINS):
        mask = bins == j
        if mask.any():
            value += mask.mean() * abs(hit[mask].mean() - confidence[mask].mean())
    return value


def ece_cwise(probs: Array, labels: Array) -> float:
    """Eq. 5."""
    edges = np.arange(N_BINS + 1) / N_BINS
    n_classes = probs.shape[1]
    value = 0.0
    for k in range(n_classes):
        p = probs[:, k]
        y = labels == k
        bins = np.digitize(p, edges[1:-1])
        for j in range(N_BINS):
            mask = bins == j
            if mask.any():
                value += mask.mean() * abs(y[mask].mean() - p[mask].mean())
    return value / n_classes


def hl_cwise(probs: Array, labels: Array) -> float:
    """Eqs. 3-4."""
    value = 0.0
    for k in range(probs.shape[1]):
        p = probs[:, k]
        y = labels == k
        for rows in np.array_split(np.argsort(p, kind="stable"), N_BINS):
            if len(rows) == 0:
                continue
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
    "ece_conf": ece_conf,
    "ece_cwise": ece_cwise,
    "hl_cwise": hl_cwise,
    "skce_ul": skce_ul,
    "skce_uq": skce_uq,
    "skce_b": skce_b,
}


def combine(probs: Array, weights: Array) -> Array:
    """p_lambda, (N, K), of the members' probabilities, (N, M, K)."""
    return np.matmul(np.swapaxes(probs, 1, 2), weights)


def bootstrap(probs: Array, rows: random.Random) -> Array:
    """Line 2: N rows drawn with replacement."""
    return np.stack(rows.choices(probs.tolist(), k=len(probs)))


def draw_label(p: Array, rng: np.random.Generator) -> np.intp:
    """One label from Cat(p), by a distribution made for this row."""
    return np.argmax(multinomial(1, p, seed=rng).rvs(size=1)[0])


def draw_label_lean(p: Array, rng: np.random.Generator) -> np.intp:
    """One label from Cat(p), by the distribution that SciPy keeps at hand."""
    return np.argmax(multinomial.rvs(1, p, random_state=rng))


def sample_labels(probs: Array, rng: np.random.Generator, lean: bool = False) -> Array:
    """Line 4: one label per row."""
    return np.apply_along_axis(draw_label_lean if lean else draw_label, 1, probs, rng)


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


def minimise(probs: Array, labels: Array, g: Measure) -> tuple[float, Array, int]:
    """Line 7: COBYLA over the simplex from the uniform weights; value, weights, evaluations."""
    n_members = probs.shape[1]
    result = minimize(
        lambda w: g(combine(probs, w), labels),
        np.full(n_members, 1 / n_members),
        method="COBYLA",
        constraints=simplex_constraints(n_members),
    )
    # COBYLA may end a hair outside the simplex.
    weights = np.clip(result.x, 0, None)
    weights /= weights.sum()
    return g(combine(probs, weights), labels), weights, result.nfev


def em_weights(probs: Array, labels: Array) -> Array:
    """The maximum-likelihood combination, by EM from the uniform weights."""
    likelihood = probs[np.arange(len(labels)), :, labels]
    likelihood = likelihood[likelihood.max(axis=1) > 0]
    weights = np.full(probs.shape[1], 1 / probs.shape[1])
    if len(likelihood) == 0:
        return weights
    before = np.log(likelihood @ weights).mean()
    for _ in range(500):
        joint = likelihood * weights
        weights = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
        after = np.log(likelihood @ weights).mean()
        if after - before < 1e-9:
            break
        before = after
    return weights


def decide(statistic: float, weights: Array, null: list[float], alpha: float) -> dict[str, Any]:
    """Lines 6 and 8."""
    values = np.array(null)
    critical_value = np.quantile(values, 1 - alpha, method="inverted_cdf")
    return {
        "statistic": statistic,
        "weights": weights,
        "pvalue": (1 + np.sum(values >= statistic)) / (1 + len(values)),
        "null": values,
        "critical_value": critical_value,
        "rejected": statistic > critical_value,
    }


def literal_null(
    probs: Array, g: Measure, n_resamples: int, rng: np.random.Generator, lean: bool = False
) -> list[float]:
    """Lines 1 to 5 of Algorithm 1, to the letter."""
    rows = random.Random(int(rng.integers(2**32)))
    null = []
    for _ in range(n_resamples):
        drawn = bootstrap(probs, rows)
        probs_0 = combine(drawn, rng.dirichlet(np.ones(probs.shape[1])))
        null.append(g(probs_0, sample_labels(probs_0, rng, lean)))
    return null


def literal_test(
    probs: Array,
    labels: Array,
    measure: str,
    n_resamples: int,
    alpha: float,
    rng: np.random.Generator,
    lean: bool = False,
) -> dict[str, Any]:
    """Algorithm 1 to the letter."""
    g = MEASURES[measure]
    null = literal_null(probs, g, n_resamples, rng, lean)
    statistic, weights, _ = minimise(probs, labels, g)
    return decide(statistic, weights, null, alpha)


def literal_refit_test(
    probs: Array,
    labels: Array,
    measure: str,
    n_resamples: int,
    alpha: float,
    rng: np.random.Generator,
    lean: bool = False,
) -> dict[str, Any]:
    """The refit null: rows fixed, labels from the EM weights, COBYLA on every resample."""
    g = MEASURES[measure]
    probs_0 = combine(probs, em_weights(probs, labels))
    null = []
    for _ in range(n_resamples):
        labels_0 = sample_labels(probs_0, rng, lean)
        null.append(minimise(probs, labels_0, g)[0])
    statistic, weights, _ = minimise(probs, labels, g)
    return decide(statistic, weights, null, alpha)


def example(
    n_samples: int, n_members: int, n_classes: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """A set of classifiers that contains the truth: the average member."""
    probs = rng.dirichlet(np.ones(n_classes), size=(n_samples, n_members))
    return probs, sample_labels(probs.mean(axis=1), rng)


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the literal test, N=100, M=K=10, D=100.")
    parser.add_argument("--refit", action="store_true", help="time the refit null too")
    tests = {"paper": literal_test}
    if parser.parse_args().refit:
        tests["refit"] = literal_refit_test
    rng = np.random.default_rng(0)
    probs, labels = example(100, 10, 10, rng)
    print("seconds for one test, N=100, M=K=10, D=100, and with the leaner draw of labels")
    for measure in MEASURES:
        for null, test in tests.items():
            times = []
            for lean in (False, True):
                start = time.perf_counter()
                test(probs, labels, measure, 100, 0.05, rng, lean)
                times.append(time.perf_counter() - start)
            print(f"{measure:<10} {null:<6} {times[0]:8.2f} {times[1]:8.2f}")


if __name__ == "__main__":
    main()

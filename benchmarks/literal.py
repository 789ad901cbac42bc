"""The opponent: the paper's test as a research script would write it, with NumPy and SciPy alone.

Nothing is slowed down and nothing is clever: labels are drawn row by row, bins are boolean masks,
SKCE_ul is a loop over pairs, line 7 of Algorithm 1 is COBYLA from the uniform weights with its
default options. Run the file to print how long one test takes for each measure; `--refit` adds
the refit null, which runs COBYLA on every resample and takes minutes.

HL bins come from `argsort` and `array_split`, so rows that tie are cut where they happen to stand.
"""

import argparse
import time

import numpy as np
from scipy.optimize import minimize
from scipy.stats import multinomial

N_BINS = 10


def ece_conf(probs, labels):
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


def ece_cwise(probs, labels):
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


def hl_cwise(probs, labels):
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


def skce_ul(probs, labels):
    """Eq. 8."""
    residual = probs - np.eye(probs.shape[1])[labels]
    value = 0.0
    n_pairs = len(labels) // 2
    for i in range(n_pairs):
        a, b = 2 * i, 2 * i + 1
        kernel = np.exp(-np.abs(probs[a] - probs[b]).sum() / 2)
        value += kernel * (residual[a] @ residual[b])
    return value / n_pairs


def skce_terms(probs, labels):
    """The N x N matrix of the terms of Eq. 7."""
    residual = probs - np.eye(probs.shape[1])[labels]
    distance = np.abs(probs[:, None, :] - probs[None, :, :]).sum(axis=2)
    return np.exp(-distance / 2) * (residual @ residual.T)


def skce_uq(probs, labels):
    """Eq. 7."""
    h = skce_terms(probs, labels)
    n = len(labels)
    return (h.sum() - np.trace(h)) / (n * (n - 1))


def skce_b(probs, labels):
    """The biased estimator of Widmann et al. (2019)."""
    return skce_terms(probs, labels).mean()


MEASURES = {
    "ece_conf": ece_conf,
    "ece_cwise": ece_cwise,
    "hl_cwise": hl_cwise,
    "skce_ul": skce_ul,
    "skce_uq": skce_uq,
    "skce_b": skce_b,
}


def combine(probs, weights):
    """p_lambda, (N, K), of the members' probabilities, (N, M, K)."""
    return np.einsum("m,nmk->nk", weights, probs)


def sample_labels(probs, rng):
    """One label per row from Cat(p)."""
    labels = np.empty(len(probs), dtype=int)
    for i in range(len(probs)):
        p = probs[i] / probs[i].sum()
        labels[i] = np.argmax(multinomial.rvs(1, p, random_state=rng))
    return labels


def minimise(probs, labels, g):
    """Line 7: COBYLA over the simplex from the uniform weights."""
    n_members = probs.shape[1]
    constraints = [
        {"type": "ineq", "fun": lambda w: w.sum() - 1},
        {"type": "ineq", "fun": lambda w: 1 - w.sum()},
    ]
    for m in range(n_members):
        constraints.append({"type": "ineq", "fun": lambda w, m=m: w[m]})
    result = minimize(
        lambda w: g(combine(probs, w), labels),
        np.full(n_members, 1 / n_members),
        method="COBYLA",
        constraints=constraints,
    )
    # COBYLA may end a hair outside the simplex.
    weights = np.clip(result.x, 0, None)
    weights /= weights.sum()
    return g(combine(probs, weights), labels), weights


def em_weights(probs, labels):
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


def decide(statistic, weights, null, alpha):
    """Lines 6 and 8."""
    null = np.array(null)
    critical_value = np.quantile(null, 1 - alpha, method="inverted_cdf")
    return {
        "statistic": statistic,
        "weights": weights,
        "pvalue": (1 + np.sum(null >= statistic)) / (1 + len(null)),
        "null": null,
        "critical_value": critical_value,
        "rejected": statistic > critical_value,
    }


def literal_test(probs, labels, measure, n_resamples, alpha, rng):
    """Algorithm 1 to the letter."""
    g = MEASURES[measure]
    n_samples, n_members, _ = probs.shape
    null = []
    for _ in range(n_resamples):
        rows = rng.integers(0, n_samples, size=n_samples)
        lambda_0 = rng.dirichlet(np.ones(n_members))
        probs_0 = combine(probs[rows], lambda_0)
        labels_0 = sample_labels(probs_0, rng)
        null.append(g(probs_0, labels_0))
    statistic, weights = minimise(probs, labels, g)
    return decide(statistic, weights, null, alpha)


def literal_refit_test(probs, labels, measure, n_resamples, alpha, rng):
    """The refit null: rows fixed, labels from the EM weights, COBYLA on every resample."""
    g = MEASURES[measure]
    probs_0 = combine(probs, em_weights(probs, labels))
    null = []
    for _ in range(n_resamples):
        labels_0 = sample_labels(probs_0, rng)
        null.append(minimise(probs, labels_0, g)[0])
    statistic, weights = minimise(probs, labels, g)
    return decide(statistic, weights, null, alpha)


def example(n_samples, n_members, n_classes, rng):
    """A set of classifiers that contains the truth: the average member."""
    probs = rng.dirichlet(np.ones(n_classes), size=(n_samples, n_members))
    return probs, sample_labels(probs.mean(axis=1), rng)


def main():
    parser = argparse.ArgumentParser(description="Time the literal test, N=100, M=K=10, D=100.")
    parser.add_argument("--refit", action="store_true", help="time the refit null too")
    tests = {"paper": literal_test}
    if parser.parse_args().refit:
        tests["refit"] = literal_refit_test
    rng = np.random.default_rng(0)
    probs, labels = example(100, 10, 10, rng)
    print("seconds for one test, N=100, M=K=10, D=100")
    for measure in MEASURES:
        for null, test in tests.items():
            start = time.perf_counter()
            test(probs, labels, measure, 100, 0.05, rng)
            print(f"{measure:<10} {null:<6} {time.perf_counter() - start:8.2f}")


if __name__ == "__main__":
    main()

"""Which alternatives should the likelihood test average over? Rates of rejection, family by family.

    python -m experiments.alternatives --sets 100

prints, for valid sets and for sets that hold no truth in several ways, how often each statistic
rejects at alpha = 0.05 with 39 resamples: the likelihood ratio of the pool, fitted by Newton's method;
the average likelihood ratio of each family alone, by Laplace's approximation at the combination; and
averages of several. Written in NumPy apart from the package, so that it also checks it.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import hullcal as hc
from experiments.levels import ALPHA, N_RESAMPLES
from experiments.truth import VALID, WRONG, Draw, redrawn
from hullcal.simulation import draw_labels

Floats = np.ndarray

#: Probabilities are raised to the floor before their logarithms are taken.
FLOOR, RIDGE, HEAT_RIDGE, FEW_CLASSES = 1e-4, 10.0, 1.0, 5
#: Cells of `experiments.truth` that are shown here, and real ensembles with labels redrawn.
VALID_SHOWN = (
    "S1, N=100, M=10, K=10",
    "S1 at a vertex, N=100, M=10, K=10",
    "valid, N=300, M=5, K=3",
)
WRONG_LEFT = ("S3 at .1, N=100, u=.1", "S3 at .25, N=100, u=1")
CELLS: dict[str, Draw] = {
    **{name: VALID[name] for name in VALID_SHOWN},
    **{name: draw for name, draw in WRONG.items() if name not in WRONG_LEFT},
    **{
        f"{short}, {what}": partial(redrawn, name=name, **how)
        for short, name in (("forest", "random forest"), ("networks", "bagged networks"))
        for what, how in (
            ("valid", {}),
            ("temperature 1.4", {"power": 1 / 1.4}),
            ("temperature .7", {"power": 1 / 0.7}),
            ("one class off", {"odds": 3.0}),
        )
    },
}
#: What is averaged over, by name of the column.
AVERAGES = {
    "all": ("temperature", "pool", "classes", "logits"),
    "+ ranks": ("temperature", "pool", "classes", "logits", "ranks"),
    "+ trust": ("temperature", "pool", "classes", "logits", "trust"),
    "first two": ("temperature", "pool"),
}
FAMILIES = ("temperature", "pool", "classes", "logits", "ranks", "trust")


def em_weights(probs: Floats, labels: Floats) -> Floats:
    """The maximum-likelihood combination, by EM from the uniform weights."""
    likelihood = probs[np.arange(len(labels)), :, labels]
    weights = np.full(probs.shape[1], 1 / probs.shape[1])
    before = -np.inf
    for _ in range(500):
        # A label that no member thinks possible tells nothing of the weights.
        mixed = np.maximum(likelihood @ weights, 1e-300)
        if np.log(mixed).mean() - before < 1e-9:
            break
        before = np.log(mixed).mean()
        weights = (likelihood * weights / mixed[:, None]).mean(axis=0)
        weights /= weights.sum()
    return weights


def features(probs: Floats, base: Floats) -> dict[str, Callable[[], Floats]]:
    """What makes the features (n_samples, n_classes, n_features) of each family around a combination."""
    n, k = base.shape
    logs = np.log(np.maximum(base, FLOOR))
    ratios = np.log(np.maximum(probs, FLOOR)).transpose(0, 2, 1) - logs[:, :, None]
    rank = np.argsort(np.argsort(-base, axis=1, kind="stable"), axis=1)
    entropy = -(base * np.log(np.maximum(base, 1e-300))).sum(axis=1, keepdims=True)
    entropy = ((entropy - entropy.mean()) / (entropy.std() + 1e-12))[:, :, None]

    def own_logits() -> Floats:
        shared = np.column_stack([np.ones(n), logs - logs.mean(axis=1, keepdims=True)])
        own = np.eye(k)[None, :, :, None] * shared[:, None, None, :]
        return own.reshape(n, k, k * (k + 1))

    makers: dict[str, Callable[[], Floats]] = {
        "temperature": lambda: logs[:, :, None],
        "pool": lambda: np.concatenate([logs[:, :, None], ratios], axis=2),
        "classes": lambda: np.broadcast_to(np.eye(k), (n, k, k)),
        "ranks": lambda: np.stack([base, rank == 0, rank == 1], axis=2),
        "trust": lambda: logs[:, :, None] * np.concatenate([entropy, entropy.clip(min=0)], axis=2),
    }
    return makers | ({"logits": own_logits} if k <= FEW_CLASSES else {})


def standardised(raw: Floats) -> Floats:
    """Features less the mean of their row, over their root mean square; constant ones are left out."""
    centred = raw - raw.mean(axis=1, keepdims=True)
    scale = np.sqrt((centred**2).mean(axis=(0, 1)))
    return centred[:, :, scale > 1e-9] / scale[scale > 1e-9]


def slopes_and_curvature(x: Floats, q: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Derivatives of the log-likelihood in the coefficients."""
    mean = np.einsum("nk,nkf->nf", q, x)
    flat = (x * np.sqrt(q)[:, :, None]).reshape(-1, x.shape[2])
    slopes = x[np.arange(len(q)), labels].sum(axis=0) - mean.sum(axis=0)
    return slopes, flat.T @ flat - mean.T @ mean


def evidence(x: Floats, q: Floats, labels: Floats, ridge: float) -> float:
    """The average likelihood ratio by Laplace's approximation at the combination."""
    slopes, curvature = slopes_and_curvature(x, q, labels)
    curvature = curvature + ridge * np.eye(len(slopes))
    volume = np.linalg.slogdet(curvature / ridge)[1]
    return float(slopes @ np.linalg.solve(curvature, slopes) - volume) / 2.0


def tilted(x: Floats, q: Floats, coefficients: Floats) -> Floats:
    """The alternative of these coefficients."""
    scores = np.log(q) + x @ coefficients
    law = np.exp(scores - scores.max(axis=1, keepdims=True))
    return law / law.sum(axis=1, keepdims=True)


def fitted(x: Floats, q: Floats, labels: Floats, ridge: float) -> Floats:
    """Coefficients of the best alternative, by Newton's method."""
    coefficients = np.zeros(x.shape[2])
    for _ in range(25):
        slopes, curvature = slopes_and_curvature(x, tilted(x, q, coefficients), labels)
        slopes = slopes - ridge * coefficients
        step = np.linalg.solve(curvature + ridge * np.eye(len(slopes)), slopes)
        if slopes @ step < 2e-5:
            break
        coefficients = coefficients + step * min(1.0, 2.0 / np.abs(step).max())
    return coefficients


def log_ratio(x: Floats, q: Floats, labels: Floats) -> float:
    """The log-likelihood of the best alternative less that of the combination."""
    best, rows = tilted(x, q, fitted(x, q, labels, RIDGE)), np.arange(len(q))
    return float(np.log(best[rows, labels]).sum() - np.log(q[rows, labels]).sum())


def evidences(
    probs: Floats, labels: Floats, wanted: Sequence[str] = ("ratio", *FAMILIES)
) -> tuple[dict[str, float], Floats]:
    """Logarithms of the ratios of a set, and the law of labels by its likeliest combination."""
    base = np.einsum("m,nmk->nk", em_weights(probs, labels), probs)
    q = np.maximum(base, FLOOR) / np.maximum(base, FLOOR).sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    with np.errstate(divide="ignore"):
        # Labels that the floor alone makes possible count for every alternative.
        floored = float(np.log(q[rows, labels]).sum() - np.log(base[rows, labels]).sum())
    makers, found = features(probs, base), {}
    for name in wanted:
        if name == "ratio":
            found[name] = floored + log_ratio(standardised(makers["pool"]()), q, labels)
        elif name in makers:
            ridge = HEAT_RIDGE if name == "temperature" else RIDGE
            found[name] = floored + evidence(standardised(makers[name]()), q, labels, ridge)
    return found, base


def averaged(found: dict[str, float], families: Sequence[str]) -> float:
    """The logarithm of the mean ratio of those families that there are."""
    some = [found[name] for name in families if name in found]
    return float(np.logaddexp.reduce(some) - np.log(len(some)))


def statistics(probs: Floats, labels: Floats) -> tuple[dict[str, float], Floats]:
    """All columns of the table for a set, and the law of labels by its likeliest combination."""
    found, law = evidences(probs, labels)
    return found | {name: averaged(found, parts) for name, parts in AVERAGES.items()}, law


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Alternatives of the likelihood test.")
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    how = parser.parse_args()
    columns = ("ratio", *FAMILIES, *AVERAGES)
    low, high = hc.simulation.wilson(how.sets // 2, how.sets)
    print(f"{how.sets} sets a cell, {N_RESAMPLES} resamples, alpha = {ALPHA}; ", end="")
    print(f"a rate of .5 has the 95 % interval {low:.2f} to {high:.2f}")
    print(f"{'':34}" + "".join(f"{name:>12}" for name in columns))
    for cell, draw in CELLS.items():
        if how.only not in cell:
            continue
        rejections = dict.fromkeys(columns, 0)
        for index in range(how.sets):
            rng = np.random.default_rng([index, 77])
            probs, labels = (np.ascontiguousarray(each) for each in draw(rng))
            observed, law = statistics(probs, labels)
            null = [statistics(probs, draw_labels(law, rng))[0] for _ in range(N_RESAMPLES)]
            for name in observed:
                reached = 1 + sum(each[name] >= observed[name] for each in null)
                rejections[name] += reached / (1 + N_RESAMPLES) <= ALPHA
        rates = [f"{rejections[name] / how.sets:12.2f}" for name in columns]
        print(f"{cell:34}" + "".join(rates), flush=True)


if __name__ == "__main__":
    main()

"""How long do the sizes of a set take, and SKCE over all pairs of rows? NumPy is the opponent."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

import hullcal as hc
from benchmarks.measuring import (
    Array,
    Target,
    at_least,
    at_most,
    best_seconds,
    exponent,
    plain,
    print_table,
    print_title,
)

N_SAMPLES = 10_000
#: Rows given to the opponents; their time grows in proportion.
FEW = {"generalized_hartley": 20, "entropy_bounds": 100}
MOST = 500
#: Sizes for the exponent: none fits a cache, so that no step from cache to memory bends the line.
GROWTH = (40_000, 80_000, 160_000)
#: Rows and columns of a block of pairs in NumPy: distances of a block fit the second-level cache.
PAIR_BLOCK = 250


def entropy(p: Array) -> float:
    """H(p), with 0 log 0 = 0."""
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def generalized_hartley(members: Array) -> float:
    """As defined: the Möbius inverse of the lower probability, subset by subset."""
    n_classes = members.shape[1]
    inside = np.arange(2**n_classes)[:, None] >> np.arange(n_classes) & 1
    lower = (inside @ members.T).min(axis=1)
    sizes = inside.sum(axis=1)
    total = 0.0
    for a in range(1, 2**n_classes):
        below = np.flatnonzero((np.arange(2**n_classes) & ~a) == 0)
        mass = ((-1.0) ** (sizes[a] - sizes[below]) * lower[below]).sum()
        total += mass * np.log2(sizes[a])
    return total


def entropy_bounds(members: Array) -> tuple[float, float]:
    """The least entropy of a member, and the greatest of a combination by SciPy's SLSQP."""
    n_members = len(members)
    found = minimize(
        lambda w: -entropy(w @ members),
        np.full(n_members, 1 / n_members),
        method="SLSQP",
        bounds=[(0, 1)] * n_members,
        constraints=[{"type": "eq", "fun": lambda w: w.sum() - 1}],
    )
    return min(entropy(p) for p in members), -found.fun


LITERAL: dict[str, Callable[[Array], object]] = {
    "mutual_information": lambda p: entropy(p.mean(axis=0)) - np.mean([entropy(q) for q in p]),
    "generalized_hartley": generalized_hartley,
    "tv_diameter": lambda p: max(0.5 * np.abs(a - b).sum() for a, b in combinations(p, 2)),
    "interval_width": lambda p: (p.max(axis=0) - p.min(axis=0)).mean(),
    "entropy_bounds": entropy_bounds,
}


def skce_uq_blas(p: Array, labels: Array) -> float:
    """Eq. 7 over blocks of pairs: products by BLAS, distances by one array operation a class."""
    n_samples, n_classes = p.shape
    errors = p - np.eye(n_classes)[labels]
    total = 0.0
    for i in range(0, n_samples, PAIR_BLOCK):
        a, e = p[i : i + PAIR_BLOCK], errors[i : i + PAIR_BLOCK]
        for j in range(i, n_samples, PAIR_BLOCK):
            b, f = p[j : j + PAIR_BLOCK], errors[j : j + PAIR_BLOCK]
            distance = np.zeros((len(a), len(b)))
            for k in range(n_classes):
                distance += np.abs(a[:, k, None] - b[None, :, k])
            terms = np.exp(-0.5 * distance) * (e @ f.T)
            total += terms.sum() * 2 if j > i else terms.sum() - np.trace(terms)
    return total / (n_samples * (n_samples - 1))


def time_of(name: str, probs: Array) -> float:
    """Seconds of one of our sizes, on one thread."""
    size = getattr(hc.uncertainty, name)
    size(probs[:10])
    return best_seconds(lambda: size(probs), at_least=0.2, fewest=2)


def print_sizes() -> list[Target]:
    """One line for each size."""
    probs, _ = plain(0, max(GROWTH))
    rows, targets = [], []
    for name, literal in LITERAL.items():
        few = probs[: FEW.get(name, MOST)]
        slow = best_seconds(lambda few=few, g=literal: [g(p) for p in few], at_least=0.2, fewest=2)
        ours, theirs = time_of(name, probs[:N_SAMPLES]), slow / len(few)
        slope = exponent(GROWTH, [time_of(name, probs[:n]) for n in GROWTH])
        ratio = theirs * N_SAMPLES / ours
        times = f"{1e3 * ours:.1f}", f"{1e6 * ours / N_SAMPLES:.2f}", f"{1e6 * theirs:,.0f}"
        rows.append([name, *times, f"{ratio:,.0f}", f"{slope:.3f}"])
        targets += [
            at_most(f"{name} of {N_SAMPLES:,} instances, one thread", ours, 1.0, " s"),
            at_least(f"{name} against literal NumPy", ratio, 50),
            at_most(f"exponent of {name} in N", slope, 1.1),
        ]
    print_table(
        ["size", "ms", "us a row", "NumPy us a row", "ratio", "exponent in N"],
        rows,
        f"Sizes of {N_SAMPLES:,} x 10 x 10 predictions, one thread each; SciPy's SLSQP for the "
        "upper entropy",
    )
    return targets


def print_pairs() -> list[Target]:
    """One evaluation of SKCE over all pairs."""
    probs, labels = plain(0, N_SAMPLES, n_members=1)
    p = probs[:, 0]
    g = hc.SKCE(estimator="uq")
    g(p[:50], labels[:50])
    with threadpool_limits(1):
        theirs = best_seconds(lambda: skce_uq_blas(p, labels), fewest=2)
        ours = best_seconds(lambda: g(p, labels))
        difference = abs(g(p, labels) - skce_uq_blas(p, labels))
    print_table(
        ["skce_uq", "ms"],
        [["hullcal", f"{1e3 * ours:,.0f}"], ["NumPy blocks and BLAS", f"{1e3 * theirs:,.0f}"]],
        f"One evaluation over all pairs of {N_SAMPLES:,} rows, K=10, one thread each "
        f"(they differ by {difference:.1g})",
    )
    return [
        at_most(f"skce_uq of {N_SAMPLES:,} rows, one thread", ours, 1.0, " s"),
        at_least("skce_uq against NumPy blocks and BLAS", theirs / ours, 3),
    ]


def run() -> list[Target]:
    """Print both tables."""
    print_title("Sizes of a set, and SKCE over all pairs")
    return print_sizes() + print_pairs()

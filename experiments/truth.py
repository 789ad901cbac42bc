"""Rates at which the truth test rejects: valid sets (its level) and others (its power).

    python -m experiments.truth --sets 200 --jobs 2

prints a line for each cell: the rate of the likelihood test at alpha = 0.05, that of the e-value, and
that of `ece_conf` and `ece_cwise` with labels drawn in the same way, with 95 % intervals for the first.
A mark shows where the likelihood test rejects valid sets more often than the 99 % bound of a binomial
count. With `--streams N` it prints how many of N valid streams ever pass an e-value of 20, looked at
after every batch.
"""

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial

import numpy as np
from docs import choosing_figures as truths
from scipy.stats import binom

import hullcal as hc
from experiments.levels import ALPHA, N_RESAMPLES, Set, calibrated, simulated
from hullcal.demonstration import examples
from hullcal.simulation import draw_labels

MEASURES = ("ece_conf", "ece_cwise")
Draw = Callable[[np.random.Generator], Set]


def alternative(
    rng: np.random.Generator, name: str, n: int, strength: float, u: float = 1.0, m: int = 10
) -> Set:
    """S2 or S3 of the paper, with ten classes and the truth this far towards its corner."""
    sizes = {"n_samples": n, "n_members": m, "spread": u, "strength": strength}
    found = hc.simulation.scenario(name, **sizes, rng=rng)
    return found.probs, found.labels


def heated(
    rng: np.random.Generator,
    n: int,
    temperature: float,
    u: float = 1.0,
    m: int = 10,
    vertex: bool = False,
) -> Set:
    """Labels from a combination of S1, or from a member, whose logits were divided by a temperature."""
    probs = hc.simulation.scenario("S1", n_samples=n, n_members=m, spread=u, rng=rng).probs
    weights = np.eye(m)[0] if vertex else rng.dirichlet(np.ones(m))
    law = np.einsum("m,nmk->nk", weights, probs) ** (1.0 / temperature)
    return probs, draw_labels(law, rng)


def with_zeros(rng: np.random.Generator, n: int) -> Set:
    """Members that rule classes out, each its own: votes of 20 trees, as a forest's leaves have them."""
    centre = rng.dirichlet(np.full(5, 0.5), size=n)
    votes = np.stack([[rng.multinomial(20, p) for _ in range(6)] for p in centre]) / 20
    return votes, draw_labels(np.einsum("m,nmk->nk", rng.dirichlet(np.ones(6)), votes), rng)


def triangle(rng: np.random.Generator, n: int, truth: Callable[[np.ndarray], np.ndarray]) -> Set:
    """Five members that scatter around uniform predictions of three classes, and a wrong mean."""
    probs = truths.ensemble(n, 5, rng)
    return probs, draw_labels(truth(probs.mean(axis=1)), rng)


def at_an_edge(rng: np.random.Generator, n: int, m: int, k: int) -> Set:
    """S1 with the truth half-way between two of the members."""
    probs = simulated(rng, n, m, k, vertex=False)[0]
    return probs, draw_labels(probs[:, :2].mean(axis=1), rng)


@cache
def on_digits(name: str) -> np.ndarray:
    """Held-out predictions of a real ensemble, for 899 handwritten digits."""
    return next(each.probs for each in examples(0) if each.name == name)


def redrawn(rng: np.random.Generator, name: str, power: float = 1.0, odds: float = 1.0) -> Set:
    """300 digits, with labels from the average to a power and with other odds of the first class."""
    everything = on_digits(name)
    probs = everything[rng.choice(len(everything), 300, replace=False)]
    law = probs.mean(axis=1) ** power
    law[:, 0] *= odds
    return probs, draw_labels(law, rng)


#: Rows, members and classes.
SIZES = (
    *((50, 10, 10), (100, 10, 10), (500, 10, 10), (2000, 10, 10)),
    *((50, 2, 2), (300, 2, 2), (2000, 2, 2), (100, 50, 10), (100, 5, 100), (300, 50, 2)),
)
VALID: dict[str, Draw] = {
    **{
        f"S1{' at a vertex' * vertex}, N={n}, M={m}, K={k}": partial(
            simulated, n=n, m=m, k=k, vertex=vertex
        )
        for n, m, k in SIZES
        for vertex in (False, True)
    },
    **{
        f"S1 at an edge, N={n}, M={m}, K={k}": partial(at_an_edge, n=n, m=m, k=k)
        for n, m, k in ((50, 10, 10), (100, 50, 10), (500, 10, 10), (300, 10, 2))
    },
    "exact zeros, N=200, M=6, K=5": partial(with_zeros, n=200),
    "exact zeros, N=50, M=6, K=5": partial(with_zeros, n=50),
    "valid, N=300, M=5, K=3": partial(triangle, n=300, truth=truths.as_claimed),
    "forest on digits, N=300": partial(redrawn, name="random forest"),
    "networks on digits, N=300": partial(redrawn, name="bagged networks"),
}
WRONG: dict[str, Draw] = {
    "S3 at .1, N=100, u=1": partial(alternative, name="S3", n=100, strength=0.1, u=1.0),
    "S3 at .1, N=100, u=.1": partial(alternative, name="S3", n=100, strength=0.1, u=0.1),
    "S3 at .25, N=100, u=1": partial(alternative, name="S3", n=100, strength=0.25, u=1.0),
    "S2 at .5, N=100, u=1": partial(alternative, name="S2", n=100, strength=0.5, u=1.0),
    "S2, N=300, u=1": partial(alternative, name="S2", n=300, strength=1.0, u=1.0),
    "calibrated, not the truth, N=300": partial(calibrated, n=300),
    "temperature 1.4, N=300, u=1": partial(heated, n=300, temperature=1.4, u=1.0),
    "temperature .7, N=300, u=.3": partial(heated, n=300, temperature=0.7, u=0.3),
    "overconfident, K=3, N=150": partial(triangle, n=150, truth=truths.overconfident),
    "one class off, K=3, N=300": partial(triangle, n=300, truth=truths.one_class),
    "runners-up exchanged, K=3, N=300": partial(triangle, n=300, truth=truths.runners_up),
    "handedness, K=3, N=300": partial(triangle, n=300, truth=truths.handedness),
}


def decisions(index: int, draw: Draw, measures: tuple[str, ...]) -> list[bool]:
    """Whether each test rejects set number `index`: likelihood, e-value, and the measures."""
    probs, labels = draw(np.random.default_rng(index))
    options = {"n_resamples": N_RESAMPLES, "alpha": ALPHA, "rng": index}
    found = hc.truth_test(probs, labels, **options)
    by_measure = [hc.truth_test(probs, labels, measure=g, **options) for g in measures]
    return [found.rejected, found.evalue >= 1 / ALPHA, *(each.rejected for each in by_measure)]


def ever_passed(index: int) -> bool:
    """Whether the e-value of a valid stream of 30 batches ever passes 20."""
    rng = np.random.default_rng([index, 1])
    weights = rng.dirichlet(np.ones(5)) if index % 2 else np.eye(5)[0]
    monitor = hc.Monitor(n_members=5, n_classes=4, alpha=ALPHA)
    for _ in range(30):
        probs = rng.dirichlet(np.full(4, 0.7), size=(20, 5))
        monitor.update(probs, draw_labels(np.einsum("m,nmk->nk", weights, probs), rng))
    return monitor.rejected


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description="Level and power of the truth test.")
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--streams", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--no-measures", action="store_true", help="likelihood and e-value alone")
    how = parser.parse_args()
    measures = () if how.no_measures else MEASURES
    bound = int(binom.ppf(0.99, how.sets, ALPHA))
    print(f"{how.sets} sets a cell, {N_RESAMPLES} resamples, alpha = {ALPHA}")
    print(f"{'':36}{'likelihood':>22}{'e-value':>9}" + "".join(f"{g:>11}" for g in measures))
    with ProcessPoolExecutor(how.jobs) as pool:
        for name, draw in {**VALID, **WRONG}.items():
            if how.only not in name:
                continue
            task = partial(decisions, draw=draw, measures=measures)
            counts = np.sum(list(pool.map(task, range(how.sets), chunksize=5)), axis=0)
            low, high = hc.simulation.wilson(int(counts[0]), how.sets)
            rates = counts / how.sets
            mark = " above its bound" if name in VALID and counts[0] > bound else ""
            own = f"{rates[0]:8.3f} ({low:.3f}, {high:.3f}){rates[1]:9.3f}"
            others = "".join(f"{rate:11.3f}" for rate in rates[2:])
            print(f"{name:36}{own}{others}{mark}", flush=True)
        if how.streams:
            passed = sum(pool.map(ever_passed, range(how.streams), chunksize=5))
            print(f"{passed} of {how.streams} valid streams ever pass an e-value of 20")


if __name__ == "__main__":
    main()

"""Rates at which null "stacked" rejects sets that contain a calibrated combination.

    python -m experiments.levels --sets 200 --jobs 2

prints a line for each cell: its rate at alpha = 0.05 with a 95 % interval, and a mark where the rate is
above the 99 % bound of a binomial count, allowing for the number of cells. Cells with real members need
scikit-learn, and some the files beside the project (`--data`); they are left out where these are absent.
"""

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.stats import binom

import hullcal as hc
from experiments.levels import members

ALPHA, N_RESAMPLES = 0.05, 39  # 2/40 is alpha exactly
MEASURES = hc.measures.available()
#: All pairs of rows: only where rows are few.
COSTLY, FEW_ROWS = ("skce_uq", "skce_b"), 300

Set = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Cell:
    """Sets of one kind, tested by one measure."""

    where: str
    measure: str
    draw: Callable[[np.random.Generator], Set] = field(compare=False)

    def rejects(self, index: int) -> bool:
        """The decision on set number `index`."""
        probs, labels = self.draw(np.random.default_rng([index, len(self.where)]))
        test = hc.calibration_test(
            probs,
            labels,
            measure=self.measure,
            null="stacked",
            n_resamples=N_RESAMPLES,
            alpha=ALPHA,
            rng=index,
        )
        return test.rejected


def drawn(rng: np.random.Generator, law: np.ndarray) -> np.ndarray:
    """A label for each row of a law."""
    levels = rng.random((len(law), 1)) * law.sum(axis=1, keepdims=True)
    return (law.cumsum(axis=1)[:, :-1] <= levels).sum(axis=1)


def with_labels(rng: np.random.Generator, probs: np.ndarray, vertex: bool) -> Set:
    """Labels from a combination of the members: uniform on the simplex, or one of them."""
    m = probs.shape[1]
    weights = np.eye(m)[rng.integers(m)] if vertex else rng.dirichlet(np.ones(m))
    return probs, drawn(rng, np.einsum("m,nmk->nk", weights, probs))


def simulated(rng: np.random.Generator, n: int, m: int, k: int, vertex: bool) -> Set:
    """S1 of the paper, with spread 1."""
    sizes = {"n_samples": n, "n_members": m, "n_classes": k, "spread": 1.0}
    return with_labels(rng, hc.simulation.scenario("S1", **sizes, rng=rng).probs, vertex)


def calibrated(rng: np.random.Generator, n: int) -> Set:
    """A member is calibrated and labels follow no combination."""
    found = hc.simulation.scenario("calibrated", n_samples=n, n_members=2, n_classes=2, rng=rng)
    return found.probs, found.labels


def real(rng: np.random.Generator, name: str, folder: Path, vertex: bool) -> Set:
    """Some rows of real members."""
    probs = _members(name, folder)
    rows = rng.choice(len(probs), size=min(len(probs), 1000), replace=False)
    return with_labels(rng, probs[rows], vertex)


def reweighted(rng: np.random.Generator, n: int) -> Set:
    """Rows of a forest of which a sparse combination is calibrated and labels follow none."""
    probs, labels, chances = _forest()
    rows = rng.choice(len(labels), size=n, p=chances)
    return probs[rows], labels[rows]


_forest = cache(members.calibrated_forest)


@cache
def _members(name: str, folder: Path) -> np.ndarray:
    return members.KINDS[name](folder)


def cells(folder: Path) -> Iterator[Cell]:
    """One factor at a time around N = 100, M = K = 10, inside the hull and at a vertex."""
    sizes = [(100, 10, 10), (300, 10, 10), (1000, 10, 10)]
    sizes += [(100, 2, 10), (100, 50, 10), (100, 10, 2), (100, 10, 100), (300, 2, 2), (300, 50, 2)]
    kinds: list[tuple[str, int, Callable[[np.random.Generator], Set]]] = []
    for n, m, k in sizes:
        for vertex in (False, True):
            where = f"S1{' at a vertex' * vertex}, N={n}, M={m}, K={k}"
            kinds.append((where, n, partial(simulated, n=n, m=m, k=k, vertex=vertex)))
    kinds += [
        (f"calibrated but not the truth, N={n}", n, partial(calibrated, n=n))
        for n in (100, 300, 1000)
    ]
    for name in members.available(folder):
        for vertex in (False, True):
            draw = partial(real, name=name, folder=folder, vertex=vertex)
            kinds.append((f"{name}{', a member' * vertex}", 1000, draw))
    if "forest on digits" in members.available(folder):
        where = "forest, a sparse combination calibrated, N=300"
        yield Cell(where, "ece_conf", partial(reweighted, n=300))
    for where, n, draw in kinds:
        for measure in MEASURES:
            if measure not in COSTLY or n < FEW_ROWS:
                yield Cell(where, measure, draw)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sets", type=int, default=200, help="sets a cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--only", default="", help="cells whose line contains this")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    given = parser.parse_args()
    chosen = [cell for cell in cells(given.data) if given.only in f"{cell.where} {cell.measure}"]
    bound = binom.ppf(1 - 0.01 / max(1, len(chosen)), given.sets, ALPHA)
    print(
        f"null stacked, alpha = {ALPHA}, {N_RESAMPLES} resamples, {given.sets} sets a cell; marked: "
        f"more than {int(bound)} rejections"
    )
    total = 0
    with ProcessPoolExecutor(given.jobs) as pool:
        for cell in chosen:
            count = sum(pool.map(cell.rejects, range(given.sets), chunksize=10))
            low, high = hc.simulation.wilson(count, given.sets)
            mark = "  above the bound" if count > bound else ""
            rate = count / given.sets
            shown = f"{rate:.3f} ({low:.3f}, {high:.3f})"
            print(f"{cell.where:<48}{cell.measure:<18}{shown}{mark}", flush=True)
            total += count > bound
    print(f"{total} of {len(chosen)} cells above the bound")


if __name__ == "__main__":
    main()

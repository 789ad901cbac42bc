"""Rates at which a null, "stacked" by default, rejects sets that contain a calibrated combination.

    python -m experiments.levels --sets 200 --jobs 2

prints a line for each cell: its rate at alpha = 0.05 with a 95 % interval, and a mark where the rate is
above the 99 % bound of a binomial count, allowing for the number of cells. Cells with real members need
scikit-learn, and some the files beside the project (`--data`); they are left out where these are absent.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.stats import binom

import hullcal as hc
from experiments import command_line
from hullcal.simulation import draw_labels

ALPHA, N_RESAMPLES = 0.05, 39  # 2/40 is alpha exactly
#: All pairs of rows: only where rows are few.
COSTLY, FEW_ROWS = ("skce_uq", "skce_b"), 300
_NETWORKS, _FEATURES = "cifar10_14nets.npz", "caltech101_mobilenetv2_200px.npz"

Set = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Cell:
    """Sets of one kind, tested by one measure."""

    where: str
    measure: str
    draw: Callable[[np.random.Generator], Set] = field(compare=False)

    def rejects(self, index: int, null: str) -> bool:
        """The decision on set number `index`."""
        data = self.draw(np.random.default_rng([index, len(self.where)]))
        options = {"measure": self.measure, "null": null, "n_resamples": N_RESAMPLES}
        return hc.calibration_test(*data, **options, alpha=ALPHA, rng=index).rejected


def with_labels(rng: np.random.Generator, probs: np.ndarray, vertex: bool) -> Set:
    """Labels from a combination of the members: uniform on the simplex, or one of them."""
    m = probs.shape[1]
    weights = np.eye(m)[rng.integers(m)] if vertex else rng.dirichlet(np.ones(m))
    return probs, draw_labels(np.einsum("m,nmk->nk", weights, probs), rng)


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
    probs = members(name, folder)
    rows = rng.choice(len(probs), size=min(len(probs), 1000), replace=False)
    return with_labels(rng, probs[rows], vertex)


def reweighted(rng: np.random.Generator, n: int) -> Set:
    """Rows of a forest of which a sparse combination is calibrated and labels follow none."""
    probs, labels, chances = calibrated_forest()
    rows = rng.choice(len(labels), size=n, p=chances)
    return probs[rows], labels[rows]


def forest(load: str = "digits", extra: bool = False, **settings: object) -> Set:
    """Ten trees fitted to half of a data set of scikit-learn, predicting the other half."""
    from sklearn import datasets
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.model_selection import train_test_split

    kind = ExtraTreesClassifier if extra else RandomForestClassifier
    features, labels = getattr(datasets, f"load_{load}")(return_X_y=True)
    train, test, known, wanted = train_test_split(features, labels, test_size=0.5, random_state=0)
    trees = kind(10, random_state=0, **settings).fit(train, known).estimators_
    return np.stack([tree.predict_proba(test) for tree in trees], axis=1), wanted


@cache
def calibrated_forest() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A forest's predictions, labels, and chances of the rows that make one combination calibrated.

    The combination is a sparse one, with a small confidence ECE on these rows. In each bin of its
    confidence, hits and misses are reweighted until accuracy is the mean confidence: in samples of
    these rows it is calibrated, and labels follow no combination.
    """
    probs, labels = forest(min_samples_leaf=5)
    weights = hc.minimize(probs, labels, minimizer="pairwise", rng=0).weights
    mixed = np.einsum("m,nmk->nk", weights, probs)
    confidence, hit = mixed.max(axis=1), mixed.argmax(axis=1) == labels
    bins = hc.binning.bins_of(confidence, 10)
    chances = np.zeros(len(labels))
    for j in np.unique(bins):
        hits, misses = (bins == j) & hit, (bins == j) & ~hit
        if hits.any() and misses.any():
            chances[misses] = 1.0
            chances[hits] = confidence[misses].sum() / (1.0 - confidence[hits]).sum()
            chances[bins == j] *= (bins == j).sum() / chances[bins == j].sum()
    return probs, labels, chances / chances.sum()


def heads(path: Path) -> np.ndarray:
    """Five linear heads on features of Caltech-101, fitted to bootstrap samples of half the rows."""
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression

    with np.load(path, allow_pickle=False) as data:
        features, labels = data["features"].astype(np.float64), data["labels"].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    reduced = PCA(40, random_state=0).fit(features[train]).transform(features)
    reduced /= reduced[train].std(axis=0)
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        # Every class at least once, so that all heads have the same classes.
        first = [rng.choice(train[labels[train] == k]) for k in np.unique(labels)]
        rows = np.concatenate([first, rng.choice(train, size=len(train))])
        head = LogisticRegression(C=0.1, max_iter=200).fit(reduced[rows], labels[rows])
        found.append(head.predict_proba(reduced[test]))
    return np.stack(found, axis=1)


@cache
def members(name: str, folder: Path) -> np.ndarray:
    """Predictions (n_samples, n_members, n_classes) of real members."""
    if name == "forest on digits":
        return forest(min_samples_leaf=3)[0]
    if name == "Caltech heads":
        return heads(folder / _FEATURES)
    with np.load(folder / _NETWORKS, allow_pickle=False) as data:
        return data["probs"].astype(np.float64)


def cells(folder: Path) -> Iterator[Cell]:
    """One factor at a time around N = 100, M = K = 10, inside the hull and at a vertex."""
    sizes = [(100, 10, 10), (300, 10, 10), (1000, 10, 10)]
    sizes += [(100, 2, 10), (100, 50, 10), (100, 10, 2), (100, 10, 100), (300, 2, 2), (300, 50, 2)]
    kinds: list[tuple[str, int, Callable[[np.random.Generator], Set]]] = []
    for n, m, k in sizes:
        for vertex in (False, True):
            where = f"S1{' at a vertex' * vertex}, N={n}, M={m}, K={k}"
            kinds.append((where, n, partial(simulated, n=n, m=m, k=k, vertex=vertex)))
    for n in (100, 300, 1000):
        kinds.append((f"calibrated but not the truth, N={n}", n, partial(calibrated, n=n)))
    with_sklearn = find_spec("sklearn") is not None
    there = {
        "forest on digits": with_sklearn,
        "fourteen networks": (folder / _NETWORKS).is_file(),
        "Caltech heads": with_sklearn and (folder / _FEATURES).is_file(),
    }
    for name in (name for name, is_there in there.items() if is_there):
        for vertex in (False, True):
            draw = partial(real, name=name, folder=folder, vertex=vertex)
            kinds.append((f"{name}{', a member' * vertex}", 1000, draw))
    if with_sklearn:
        where = "forest, a sparse combination calibrated, N=300"
        yield Cell(where, "ece_conf", partial(reweighted, n=300))
    for where, n, draw in kinds:
        for measure in hc.measures.available():
            if measure not in COSTLY or n < FEW_ROWS:
                yield Cell(where, measure, draw)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = command_line("experiments.levels", __doc__)
    parser.add_argument("--sets", type=int, default=200, help="sets a cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--null", default="stacked", choices=hc.nulls.available())
    parser.add_argument("--only", default="", help="cells whose line contains this")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    given = parser.parse_args(arguments)
    chosen = [cell for cell in cells(given.data) if given.only in f"{cell.where} {cell.measure}"]
    bound = binom.ppf(1 - 0.01 / max(1, len(chosen)), given.sets, ALPHA)
    print(
        f"null {given.null}, alpha = {ALPHA}, {N_RESAMPLES} resamples, {given.sets} sets a cell; marked: "
        f"more than {int(bound)} rejections"
    )
    total = 0
    with ProcessPoolExecutor(given.jobs) as pool:
        for cell in chosen:
            rejects = partial(cell.rejects, null=given.null)
            count = sum(pool.map(rejects, range(given.sets), chunksize=10))
            low, high = hc.simulation.wilson(count, given.sets)
            mark = "  above the bound" if count > bound else ""
            shown = f"{count / given.sets:.3f} ({low:.3f}, {high:.3f})"
            print(f"{cell.where:<48}{cell.measure:<18}{shown}{mark}", flush=True)
            total += count > bound
    print(f"{total} of {len(chosen)} cells above the bound")


if __name__ == "__main__":
    main()

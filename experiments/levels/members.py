"""Which real members are tested: predictions of shape (n_samples, n_members, n_classes)."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import hullcal as hc

_NETWORKS = "cifar10_14nets.npz"
_FEATURES = "caltech101_mobilenetv2_200px.npz"


def forest(folder: Path) -> np.ndarray:
    """Ten trees of a random forest on half of the digits, predicting the other half."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

    train, test, labels, _ = train_test_split(
        *load_digits(return_X_y=True), test_size=0.5, random_state=0
    )
    trees = RandomForestClassifier(10, min_samples_leaf=3, random_state=0).fit(train, labels)
    return np.stack([tree.predict_proba(test) for tree in trees.estimators_], axis=1)


def networks(folder: Path) -> np.ndarray:
    """Fourteen published networks on the test images of CIFAR-10."""
    with np.load(folder / _NETWORKS, allow_pickle=False) as data:
        return data["probs"].astype(np.float64)


def heads(folder: Path) -> np.ndarray:
    """Five linear heads on features of Caltech-101, fitted to bootstrap samples of half the rows."""
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression

    with np.load(folder / _FEATURES, allow_pickle=False) as data:
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


def calibrated_forest() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A forest's predictions, labels, and chances of the rows that make one combination calibrated.

    The combination is a sparse one, with a small confidence ECE on these rows. In each bin of its
    confidence, hits and misses are reweighted until accuracy is the mean confidence: in samples of
    these rows it is calibrated, and labels follow no combination.
    """
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

    train, test, known, labels = train_test_split(
        *load_digits(return_X_y=True), test_size=0.5, random_state=0
    )
    trees = RandomForestClassifier(10, min_samples_leaf=5, random_state=0).fit(train, known)
    probs = np.stack([tree.predict_proba(test) for tree in trees.estimators_], axis=1)
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


KINDS: dict[str, Callable[[Path], np.ndarray]] = {
    "forest on digits": forest,
    "fourteen networks": networks,
    "Caltech heads": heads,
}
_NEEDS = {"fourteen networks": _NETWORKS, "Caltech heads": _FEATURES}


def available(folder: Path) -> list[str]:
    """The kinds whose packages and files are there."""
    with_sklearn = find_spec("sklearn") is not None
    return [
        name
        for name in KINDS
        if (name == "fourteen networks" or with_sklearn)
        and (name not in _NEEDS or (folder / _NEEDS[name]).is_file())
    ]

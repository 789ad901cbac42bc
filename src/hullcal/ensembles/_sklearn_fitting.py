"""How is an ensemble fitted on some rows, and which rows are kept back for its weights?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing

from hullcal._validation import refusal

Rows = NDArray[np.int64]

#: Seeds are drawn below this, which every random_state takes.
SEEDS = 2**31 - 1


def fit_apart(
    estimator: Any, X: Any, y: NDArray[Any], *, holdout: float, random: np.random.RandomState
) -> tuple[Any, Any, NDArray[Any]]:
    """Fit a copy of the estimator on some rows; give it, and the X and y of the others."""
    if not hasattr(estimator, "fit"):
        rule = "must be a classifier that can be fitted, unless `prefit=True`"
        repair = (
            "Pass for example a VotingClassifier of the models, or fit them and say `prefit=True`."
        )
        raise refusal("estimator", rule, type(estimator).__name__, repair)
    used, kept = two_parts(y, holdout, random)
    copy = _seeded(clone(estimator), random)
    fitted = copy.fit(_safe_indexing(X, used), y[used])
    return fitted, _safe_indexing(X, kept), y[kept]


def two_parts(y: NDArray[Any], holdout: float, random: np.random.RandomState) -> tuple[Rows, Rows]:
    """Rows to fit on and rows to keep back, both ascending.

    A class of one row is fitted on: nothing could be learnt of it otherwise. The others are split
    with the shares of the classes where both parts have room for all of them.
    """
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        repair = f"Pass rows of at least two classes (n_samples={len(y)})."
        raise refusal("y", "must hold at least two classes", "one class", repair)
    alone = counts[codes] == 1
    shared = np.flatnonzero(~alone)
    if len(shared) == 0:
        rule = "must hold a class with two rows or more, so that one can be kept back"
        repair = "Pass more rows, or a fitted ensemble with `prefit=True`."
        raise refusal("y", rule, f"n_samples={len(y)}, each of its own class", repair)
    size = min(max(round(holdout * len(y)), 1), len(shared) - 1)
    room = min(size, len(shared) - size) >= np.count_nonzero(counts > 1)
    used, kept = train_test_split(
        shared,
        test_size=size,
        stratify=codes[shared] if room else None,
        random_state=random.randint(SEEDS),
    )
    return np.sort(np.concatenate([np.flatnonzero(alone), used])), np.sort(kept)


def _seeded(estimator: Any, random: np.random.RandomState) -> Any:
    """Give every `random_state` within that is None a seed of its own; others are the user's."""
    parameters = estimator.get_params(deep=True)
    wanting = sorted(
        name
        for name, value in parameters.items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    )
    seeds = {name: int(random.randint(SEEDS)) for name in wanting}
    return estimator.set_params(**seeds) if seeds else estimator

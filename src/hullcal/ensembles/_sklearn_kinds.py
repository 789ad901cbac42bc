"""Which members does a fitted scikit-learn model have, and what do they predict?"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from hullcal._validation import InvalidInputError, refusal
from hullcal.ensembles._sklearn_input import plain

try:
    from sklearn.frozen import FrozenEstimator
except ImportError:  # scikit-learn 1.5
    FrozenEstimator = ()  # of which nothing is an instance

Classes = list[Hashable]


@dataclass(frozen=True, slots=True)
class Members:
    """Members by name, and what they predict.

    `outputs` gives for each member the classes of its columns and its predictions, one at a time, so
    that no more than one member's predictions wait for their place.
    """

    names: list[str]
    classes: Classes
    outputs: Iterator[tuple[Classes, NDArray[Any]]]


def members_of(estimator: Any, X: Any, n_stages: int) -> Members:
    """The members of any fitted classifier; one that is no ensemble is its own only member."""
    for kinds, find in KINDS:
        if isinstance(estimator, kinds):
            known_classes(estimator)  # unfitted models and those of several outputs end here
            return find(estimator, X, n_stages)
    return _single(estimator, X)


def known_classes(estimator: Any) -> Classes:
    """The classes a fitted classifier knows, in the order of its columns."""
    rule = "must be a fitted classifier, or a list or dictionary of them"
    name = type(estimator).__name__
    if not hasattr(estimator, "classes_"):
        if not isinstance(estimator, type) and hasattr(estimator, "fit"):
            check_is_fitted(estimator)
        repair = "Regressors and clusterings have no classes; a search needs `refit=True`."
        raise refusal("estimator", rule, f"{name}, which has no `classes_`", repair)
    classes = np.asarray(estimator.classes_, dtype=object)
    several = any(isinstance(each, np.ndarray | list) for each in estimator.classes_)
    if several or classes.ndim != 1 or getattr(estimator, "multilabel_", False):
        repair = "Fit one model for each output."
        raise refusal("estimator", "must have one output", f"{name} fitted on several", repair)
    return np.asarray(estimator.classes_).tolist()  # type: ignore[no-any-return]


def predictions(member: Any, X: Any, name: str | None = None) -> NDArray[Any]:
    """What a member's `predict_proba` says."""
    if not hasattr(member, "predict_proba"):
        raise _without_probabilities(member, name)
    return np.asarray(member.predict_proba(X))


def _without_probabilities(member: Any, name: str | None) -> InvalidInputError:
    what = type(member).__name__ if name is None else f"{name!r}, a {type(member).__name__}"
    rule = "must consist of classifiers with `predict_proba`"
    repair = "Leave it out, or wrap it in CalibratedClassifierCV before fitting."
    return refusal("estimator", rule, f"{what} without it", repair)


def _decoded(classes: Classes, member: Any) -> Classes:
    """Classes of a member that was fitted on positions of the ensemble's."""
    return [classes[int(position)] for position in member.classes_]


def _single(estimator: Any, X: Any) -> Members:
    if not hasattr(estimator, "predict_proba") and hasattr(estimator, "classes_"):
        raise _without_probabilities(estimator, None)
    classes = known_classes(estimator)
    outputs = iter([(classes, predictions(estimator, X))])
    return Members([type(estimator).__name__], classes, outputs)


def _trees(estimator: Any, X: Any, n_stages: int) -> Members:
    classes = known_classes(estimator)
    X = plain(estimator, X, dtype=np.float32)  # once for all trees, which would convert it each
    trees = estimator.estimators_
    outputs = ((_decoded(classes, tree), predictions(tree, X)) for tree in trees)
    return Members(_numbered("tree", trees), classes, outputs)


def _bags(estimator: Any, X: Any, n_stages: int) -> Members:
    classes = known_classes(estimator)
    X = plain(estimator, X)
    bags = estimator.estimators_
    names = _numbered("bag", bags)
    outputs = (
        (_decoded(classes, bag), predictions(bag, X[:, columns], name))
        for name, bag, columns in zip(names, bags, estimator.estimators_features_, strict=True)
    )
    return Members(names, classes, outputs)


def _named(estimator: Any, X: Any, n_stages: int) -> Members:
    """Voting and stacking: the base estimators, whatever votes or is stacked upon them."""
    classes = known_classes(estimator)
    names = [name for name, given in estimator.estimators if not _is_dropped(given)]
    # Models that came fitted know the classes themselves, others were given their positions.
    prefit = getattr(estimator, "cv", None) == "prefit"
    outputs = (
        (
            known_classes(member) if prefit else _decoded(classes, member),
            predictions(member, X, name),
        )
        for name, member in zip(names, estimator.estimators_, strict=True)
    )
    return Members(names, classes, outputs)


def _is_dropped(given: Any) -> bool:
    return isinstance(given, str) and given == "drop"


def _boosted(estimator: Any, X: Any, n_stages: int) -> Members:
    """AdaBoost: the classifier of each stage by itself."""
    X = plain(estimator, X)
    stages = estimator.estimators_
    names = _numbered("stage", stages)
    outputs = (
        (known_classes(stage), predictions(stage, X, name))
        for name, stage in zip(names, stages, strict=True)
    )
    return Members(names, known_classes(estimator), outputs)


def _staged(estimator: Any, X: Any, n_stages: int) -> Members:
    """Gradient boosting: the sum of the first so many trees, for evenly spaced numbers of them."""
    classes = known_classes(estimator)
    last = getattr(estimator, "n_iter_", None) or estimator.n_estimators_
    size = min(n_stages, int(last))
    kept = [-(-(i * int(last)) // size) for i in range(1, size + 1)]
    staged = enumerate(estimator.staged_predict_proba(X), start=1)
    outputs = ((classes, probs) for number, probs in staged if number in kept)
    return Members([f"after {number}" for number in kept], classes, outputs)


def _folds(estimator: Any, X: Any, n_stages: int) -> Members:
    classes = known_classes(estimator)
    folds = estimator.calibrated_classifiers_
    outputs = ((classes, predictions(fold, X)) for fold in folds)
    return Members(_numbered("fold", folds), classes, outputs)


def _last_step(estimator: Any, X: Any, n_stages: int) -> Members:
    transformed = estimator[:-1].transform(X) if len(estimator) > 1 else X
    return members_of(estimator[-1], transformed, n_stages)


def _best(estimator: Any, X: Any, n_stages: int) -> Members:
    return members_of(estimator.best_estimator_, X, n_stages)


def _frozen(estimator: Any, X: Any, n_stages: int) -> Members:
    return members_of(estimator.estimator, X, n_stages)


def _numbered(word: str, members: Any) -> list[str]:
    return [f"{word} {number}" for number in range(len(members))]


#: What each kind of model is made of. The first row that fits counts; a new kind is a new row.
KINDS: list[tuple[Any, Callable[[Any, Any, int], Members]]] = [
    ((RandomForestClassifier, ExtraTreesClassifier), _trees),
    (BaggingClassifier, _bags),
    ((VotingClassifier, StackingClassifier), _named),
    (AdaBoostClassifier, _boosted),
    ((GradientBoostingClassifier, HistGradientBoostingClassifier), _staged),
    (CalibratedClassifierCV, _folds),
    (Pipeline, _last_step),
    ((GridSearchCV, RandomizedSearchCV), _best),
    (FrozenEstimator, _frozen),
]

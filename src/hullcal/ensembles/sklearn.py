"""Which members does a fitted scikit-learn model have, and what do they predict?"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from numbers import Number
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
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from hullcal._validation import InvalidInputError, check_classes, check_integer, refusal
from hullcal.sets import ClassifierSet

Classes = list[Hashable]
#: Name of a member, the classes that it knows, and its predictions.
Member = tuple[str, Classes, NDArray[Any]]


def members_from(
    estimator: Any, X: Any, y: Any = None, *, classes: Any = None, n_stages: int = 10
) -> Any:
    """Take a fitted scikit-learn model apart and let every member predict.

    Members are the trees of a forest, the bags of bagging, the base estimators of voting and stacking
    (not the final estimator), the classifiers of AdaBoost's stages, sums of the first stages of
    gradient boosting, and the folds of CalibratedClassifierCV. A pipeline gives the members of its
    last step, a search those of its best estimator. Any other classifier is one member, and so is
    every element of a list, tuple or dictionary. Weights that a model gives its members are not used.

    Parameters
    ----------
    estimator : fitted classifier, or list, tuple or dictionary of fitted classifiers
        The keys of a dictionary name its members.
    X : array-like of shape (n_samples, n_features)
        Rows that the model was not fitted on.
    y : array-like of shape (n_samples,), optional
        Their labels.
    classes : sequence, optional
        The order of the classes; it may hold some that no member knows. By default the model's
        own, and for several models all of theirs, sorted. A member that never saw a class gives it
        probability 0.
    n_stages : int
        How many stages of gradient boosting become members, evenly spaced, the last among them.

    Returns
    -------
    ClassifierSet, or (ClassifierSet, ndarray of shape (n_samples,))
        With `y` a pair for `hullcal.calibration_test`: the set, and the labels as the set reads
        them, which is as positions of its classes, or as they are where classes are numbers.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(X[::2], y[::2])
    >>> trees, labels = members_from(forest, X[1::2], y[1::2])
    >>> trees
    ClassifierSet(n_samples=75, n_members=5, n_classes=3)
    >>> trees.members[0], trees.classes
    ('tree 0', (0, 1, 2))
    """
    n_stages = check_integer(n_stages, "n_stages", 1)
    if isinstance(estimator, list | tuple | Mapping):
        known, members = _several(estimator, X)
    else:
        known, members = known_classes(estimator), _members_of(estimator, X, n_stages)
    classes = known if classes is None else classes
    order = check_classes(classes, len(classes) if hasattr(classes, "__len__") else 0)
    assert order is not None
    aligned = [(name, _aligned(name, own, probs, order)) for name, own, probs in members]
    names, probs = zip(*aligned, strict=True)
    classifiers = ClassifierSet(probs, classes=order, members=names)
    return classifiers if y is None else (classifiers, _labels(classifiers, y))


def known_classes(estimator: Any) -> Classes:
    """The classes a fitted classifier knows, in the order of its columns."""
    name = type(estimator).__name__
    if not hasattr(estimator, "classes_"):
        if not isinstance(estimator, type) and hasattr(estimator, "fit"):
            check_is_fitted(estimator)
        rule = "must be a fitted classifier, or a list or dictionary of them"
        repair = "Regressors and clusterings have no classes; a search needs `refit=True`."
        raise refusal("estimator", rule, f"{name}, which has no `classes_`", repair)
    several = any(isinstance(each, np.ndarray | list) for each in estimator.classes_)
    if several or getattr(estimator, "multilabel_", False):
        repair = "Fit one model for each output."
        raise refusal("estimator", "must have one output", f"{name} fitted on several", repair)
    return np.asarray(estimator.classes_).tolist()  # type: ignore[no-any-return]


def _members_of(estimator: Any, X: Any, n_stages: int) -> Iterator[Member]:
    """The members of one fitted model; one that is no ensemble is its own only member."""
    classes = known_classes(estimator)  # an unfitted model or one of several outputs ends here

    def decoded(member: Any) -> Classes:
        """Classes of a member that was fitted on positions of the ensemble's classes."""
        return [classes[int(position)] for position in member.classes_]

    match estimator:
        case Pipeline():
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
            yield from _members_of(estimator[-1], X, n_stages)
        case GridSearchCV() | RandomizedSearchCV():
            yield from _members_of(estimator.best_estimator_, X, n_stages)
        case FrozenEstimator():
            yield from _members_of(estimator.estimator, X, n_stages)
        case RandomForestClassifier() | ExtraTreesClassifier():
            # Converted once for all trees, each of which would do it again.
            rows = _plain(estimator, X, dtype=np.float32)
            for number, tree in enumerate(estimator.estimators_):
                yield _member(f"tree {number}", tree, rows, decoded)
        case BaggingClassifier():
            rows = _plain(estimator, X)
            bags = zip(estimator.estimators_, estimator.estimators_features_, strict=True)
            for number, (bag, columns) in enumerate(bags):
                yield _member(f"bag {number}", bag, rows[:, columns], decoded)
        case VotingClassifier() | StackingClassifier():
            given = [(name, each) for name, each in estimator.estimators if each != "drop"]
            # Models that came fitted know the classes themselves, others were given positions.
            prefit = getattr(estimator, "cv", None) == "prefit"
            for (name, _), model in zip(given, estimator.estimators_, strict=True):
                yield _member(name, model, X, known_classes if prefit else decoded)
        case AdaBoostClassifier():
            rows = _plain(estimator, X)
            for number, stage in enumerate(estimator.estimators_):
                yield _member(f"stage {number}", stage, rows)
        case GradientBoostingClassifier() | HistGradientBoostingClassifier():
            last = int(getattr(estimator, "n_iter_", None) or estimator.n_estimators_)
            size = min(n_stages, last)
            kept = {-(-(i * last) // size) for i in range(1, size + 1)}
            for number, probs in enumerate(estimator.staged_predict_proba(X), start=1):
                if number in kept:
                    yield f"after {number}", classes, probs
        case CalibratedClassifierCV():
            for number, fold in enumerate(estimator.calibrated_classifiers_):
                yield _member(f"fold {number}", fold, X, lambda _: classes)
        case _:
            yield _member(type(estimator).__name__, estimator, X)


def _several(models: Any, X: Any) -> tuple[Classes, Iterator[Member]]:
    """Each model as one member; the classes are those of any of them."""
    if not models:
        repair = "Pass at least one fitted classifier."
        raise refusal("estimator", "must hold at least one model", "none", repair)
    if not isinstance(models, Mapping):
        models = {f"model {number}": model for number, model in enumerate(models)}
    known = set().union(*map(known_classes, models.values()))
    try:
        classes: Classes = sorted(known)  # type: ignore[type-var]
    except TypeError as error:
        repair = "Fit all models on labels of one type."
        came = f"classes {reprlib.repr(known)}"
        raise refusal("estimator", "must hold models of one problem", came, repair) from error
    return classes, (_member(str(name), model, X) for name, model in models.items())


def _member(
    name: str, model: Any, X: Any, known: Callable[[Any], Classes] = known_classes
) -> Member:
    if not hasattr(model, "predict_proba"):
        rule = "must consist of classifiers with `predict_proba`"
        came = f"{name!r}, a {type(model).__name__} without it"
        repair = "Leave it out, or wrap it in CalibratedClassifierCV before fitting."
        raise refusal("estimator", rule, came, repair)
    return name, known(model), np.asarray(model.predict_proba(X))


def _plain(estimator: Any, X: Any, *, dtype: Any = None) -> Any:
    """X as an array or a compressed matrix, its columns checked against those the estimator knows."""
    # Members fitted on what was converted have no feature names, and would warn of a data frame.
    taken = {"accept_sparse": ["csr", "csc"], "ensure_all_finite": False}  # members judge NaN
    return validate_data(estimator, X, reset=False, dtype=dtype, **taken)


def _aligned(
    name: str, known: Classes, output: NDArray[Any], order: tuple[Hashable, ...]
) -> NDArray[np.float64]:
    """Predictions of a member on one order of classes, (n_samples, n_classes)."""
    strange = [each for each in known if each not in order]
    if strange:  # also where a base estimator came fitted on another problem
        rule = "must name every class that a member knows"
        came = f"{reprlib.repr(order)}, without {strange[0]!r} of {name!r}"
        raise refusal("classes", rule, came, "Add it, or leave that member out.")
    doubles = output.astype(np.float64)
    if output.shape[1:] != (1,):  # which is of a member that saw one class
        try:
            doubles = ClassifierSet(output).probs[:, 0, :].astype(np.float64)
        except InvalidInputError as error:
            raise InvalidInputError(f"member {name!r} gave no probabilities: {error}") from error
        if output.dtype != np.float64:  # rounding of coarser types is mended while it is known
            doubles /= doubles.sum(axis=1, keepdims=True)
    aligned = np.zeros((len(output), len(order)))
    aligned[:, [order.index(each) for each in known]] = doubles
    return aligned


def _labels(classifiers: ClassifierSet, y: Any) -> NDArray[Any]:
    """Labels checked, in a form that the set reads as the same labels again."""
    try:
        positions = classifiers.labels(y)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"`y` must hold one class per row of `X`, each known to some member: {error}"
        ) from error
    names = classifiers.classes or ()
    if names == tuple(range(len(names))) or not any(isinstance(name, Number) for name in names):
        return positions
    # A set whose classes are numbers takes numbers for their names, not for positions.
    return np.asarray(names)[positions]

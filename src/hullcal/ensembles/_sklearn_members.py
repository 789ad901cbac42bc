"""From a fitted scikit-learn model to a set of classifiers: `members_from`."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Mapping
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hullcal._validation import (
    InvalidInputError,
    check_classes,
    check_integer,
    check_probs,
    refusal,
)
from hullcal.ensembles._sklearn_kinds import Classes, Members, known_classes, members_of
from hullcal.ensembles._sklearn_kinds import predictions as predictions_of
from hullcal.sets import ClassifierSet


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
        found = _several(estimator, X)
    else:
        found = members_of(estimator, X, n_stages)
    order = _order(classes, found.classes)
    probs = _aligned(found, order)
    classifiers = ClassifierSet(probs, classes=order, members=found.names)
    return classifiers if y is None else (classifiers, _labels(classifiers, y))


def _several(models: Any, X: Any) -> Members:
    """Each model as one member; the classes are those of any of them."""
    if not models:
        repair = "Pass at least one fitted classifier."
        raise refusal("estimator", "must hold at least one model", "none", repair)
    if isinstance(models, Mapping):
        names, models = [str(key) for key in models], list(models.values())
    else:
        names = [f"model {number}" for number in range(len(models))]
    known = [known_classes(model) for model in models]
    try:
        classes: Classes = sorted(set().union(*known))  # type: ignore[type-var]
    except TypeError as error:
        came = f"classes {reprlib.repr(set().union(*known))}"
        repair = "Fit all models on labels of one type."
        raise refusal("estimator", "must hold models of one problem", came, repair) from error
    outputs = (
        (known_classes(model), predictions_of(model, X, name))
        for name, model in zip(names, models, strict=True)
    )
    return Members(names, classes, outputs)


def _order(classes: Any, known: Classes) -> tuple[Hashable, ...]:
    if classes is None:
        return tuple(known)
    order = check_classes(classes, len(classes) if hasattr(classes, "__len__") else len(known))
    assert order is not None
    unlisted = [each for each in known if each not in order]
    if unlisted:
        repair = (
            f"The members know {reprlib.repr(known)}; add what is missing, mind type and spelling."
        )
        rule = "must name every class that a member knows"
        raise refusal("classes", rule, f"{reprlib.repr(order)}, without {unlisted[0]!r}", repair)
    return order


def _aligned(found: Members, order: tuple[Hashable, ...]) -> NDArray[np.float64]:
    """Put the predictions of all members on one order of classes: (n_samples, n_members, n_classes)."""
    positions = {each: position for position, each in enumerate(order)}
    aligned: NDArray[np.float64] | None = None
    for m, (known, output) in enumerate(found.outputs):
        if aligned is None:
            aligned = np.zeros((len(output), len(found.names), len(order)))
        columns = [positions.get(each, -1) for each in known]
        if -1 in columns:  # a base estimator that came fitted may know classes of another problem
            came = f"{found.names[m]!r} with {known[columns.index(-1)]!r} among its classes"
            repair = f"Fit it on labels among {reprlib.repr(order)}."
            raise refusal("estimator", "must have members of one problem", came, repair)
        aligned[:, m, columns] = _sums_of_one(output, found.names[m])
    assert aligned is not None  # no fitted model is without members
    return aligned


def _sums_of_one(output: NDArray[Any], name: str) -> NDArray[Any]:
    """Predictions in double precision; rounding of coarser types is mended where it is still known."""
    try:
        checked = check_probs(output).probs[:, 0, :] if output.shape[1:] != (1,) else output
    except InvalidInputError as error:
        raise InvalidInputError(f"member {name!r} gave no probabilities: {error}") from error
    if output.dtype == np.float64:
        return checked
    doubles: NDArray[np.float64] = checked.astype(np.float64)
    doubles /= doubles.sum(axis=1, keepdims=True)
    return doubles


def _labels(classifiers: ClassifierSet, y: Any) -> NDArray[Any]:
    """Labels checked, in a form that the set reads as the same labels again."""
    try:
        positions = classifiers.labels(y)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"`y` must hold one class per row of `X`, each known to some member: {error}"
        ) from error
    names = classifiers.classes
    assert names is not None
    numbers = any(isinstance(name, Number) for name in names)
    if not numbers or names == tuple(range(len(names))):
        return positions
    # A set whose classes are numbers takes numbers for their names, not for positions.
    return np.asarray(names)[positions]

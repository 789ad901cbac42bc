"""An ensemble whose weights are chosen for calibration: `WeightedEnsembleClassifier`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, assert_all_finite, check_random_state, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from hullcal import hull, measures, minimizers, nulls
from hullcal._validation import InvalidInputError, check_fraction, check_integer, refusal
from hullcal.algorithm import calibration_test, minimize
from hullcal.ensembles.sklearn import known_classes, members_from
from hullcal.likelihood import fit_mixture
from hullcal.objectives.chunked import Cases
from hullcal.objectives.opening import LocalSet
from hullcal.results import CalibrationTestResult
from hullcal.sets import ClassifierSet

Floats = NDArray[np.float64]

#: Seeds are drawn below this, which every random_state takes.
_SEEDS = 2**31 - 1


class WeightedEnsembleClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """An ensemble whose members are weighted by a calibration measure on rows kept back.

    `fit` keeps rows back, fits the ensemble on the others, and searches the hull of its members for
    the combination that is best by `objective` on the rows kept back. `predict_proba` is that
    combination. `result_` tests on the same rows whether the hull contains a calibrated classifier.

    The weights are fitted to the rows kept back: expect worse calibration on new rows, and judge the
    ensemble there. The test allows for the fit with the nulls that search their replicates too,
    "stacked" and "recentered".

    Parameters
    ----------
    estimator : classifier, optional
        An ensemble, as `members_from` takes apart; by default a random forest of 10 trees. With
        `prefit`, also a list or dictionary of fitted classifiers.
    objective : str, Measure or callable
        What the weights minimise: a calibration measure, "log_score" or "brier_score".
    minimizer : str or Minimizer
        The search over the hull; the two scores are convex and do without.
    holdout : float
        Share of the rows to be kept back. Shares of the classes are kept where they can be, and a
        class of one row is trained on.
    prefit : bool
        Whether `estimator` is fitted already; then all rows are for the weights. Cloning forgets a
        fit, so within cross-validation wrap the model in scikit-learn's FrozenEstimator instead.
    null, n_resamples, alpha
        How `result_` is made, as in `hullcal.calibration_test`.
    n_stages : int
        Stages of gradient boosting that become members.
    random_state : int, RandomState instance or None
        For the rows kept back, the search, the test, and every `random_state` within `estimator`
        that is None.

    Attributes
    ----------
    estimator_ : classifier
        The fitted ensemble.
    classes_ : ndarray of shape (n_classes,)
    weights_ : ndarray of shape (n_members,)
    members_ : tuple of str
        Names of the members.
    held_out_ : tuple of ClassifierSet and ndarray
        What `members_from` gives for the rows kept back.
    seed_ : int
        Gives the same weights and the same result again, as `rng`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if `X` has names for all columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = WeightedEnsembleClassifier(random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape, len(model.weights_)
    ((150, 3), 10)
    >>> model.result_.n_samples
    75
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        objective: Any = "ece_conf",
        minimizer: Any = "steepest",
        holdout: float = 0.5,
        prefit: bool = False,
        null: Any = None,
        n_resamples: int = 199,
        alpha: float = 0.05,
        n_stages: int = 10,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.objective = objective
        self.minimizer = minimizer
        self.holdout = holdout
        self.prefit = prefit
        self.null = null
        self.n_resamples = n_resamples
        self.alpha = alpha
        self.n_stages = n_stages
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the ensemble and its weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        WeightedEnsembleClassifier
            Itself.
        """
        validate_data(self, X, y, skip_check_array=True)  # notes number and names of the columns
        y = column_or_1d(y, warn=True)
        X, y = indexable(X, y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        test = self._settings()
        random = check_random_state(self.random_state)
        given, classes = self._given(), None
        if self.prefit:
            self.estimator_ = given
        else:
            used, kept = _two_parts(y, check_fraction(self.holdout, "holdout"), random)
            self.estimator_ = _seeded(clone(given), random).fit(_safe_indexing(X, used), y[used])
            # A frozen model may know other classes, and the rows fitted on may lack some.
            classes = np.union1d(np.unique(y), np.asarray(known_classes(self.estimator_)))
            X, y = _safe_indexing(X, kept), y[kept]
        self.seed_ = int(random.randint(_SEEDS))
        self.held_out_ = members, labels = members_from(
            self.estimator_, X, y, classes=classes, n_stages=self.n_stages
        )
        self.classes_ = np.asarray(members.classes) if classes is None else classes
        self.members_ = members.members
        if self.objective in [*_SCORES]:
            self.weights_ = _SCORES[self.objective](members, members.labels(labels))
        else:
            search = {"measure": self.objective, "minimizer": self.minimizer}
            self.weights_ = minimize(members, labels, rng=self.seed_, **search).weights
        # The settings of `fit` hold, whatever is set later.
        self._n_stages, self._test = self.n_stages, test
        self._result: CalibrationTestResult | None = None
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Predictions of the weighted ensemble, (n_samples, n_classes)."""
        check_is_fitted(self)
        members = members_from(self.estimator_, X, classes=self.classes_, n_stages=self._n_stages)
        # Row by row in the order of the members, so that no row depends on its neighbours.
        mixed: Floats = np.einsum("nmk,m->nk", members.probs, self.weights_)
        return mixed

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, the first of several."""
        chosen: NDArray[Any] = self.predict_proba(X).argmax(axis=1)
        return self.classes_[chosen]  # type: ignore[no-any-return]

    @property
    def result_(self) -> CalibrationTestResult:
        """The test of the hull on the rows kept back, run when first asked for.

        Its measure is the objective, or "ece_conf" where that is a score. Its search has the budget
        that searches have in tests, so its weights are not quite `weights_`.
        """
        check_is_fitted(self)
        if self._result is None:
            self._result = calibration_test(*self.held_out_, rng=self.seed_, **self._test)
        return self._result

    def _settings(self) -> dict[str, Any]:
        """The options of the test, checked before any work."""
        measure = "ece_conf" if self.objective in [*_SCORES] else self.objective
        try:
            resolved = measures.resolve(measure)
        except InvalidInputError as error:
            raise InvalidInputError(
                f'`objective` must be "log_score", "brier_score" or a measure: {error}'
            ) from error
        nulls.resolve(self.null or nulls.USUAL).check(resolved, minimizers.resolve(self.minimizer))
        check_integer(self.n_stages, "n_stages", 1)
        return {
            "measure": measure,
            "null": self.null,
            "minimizer": self.minimizer,
            "n_resamples": check_integer(self.n_resamples, "n_resamples", 1),
            "alpha": check_fraction(self.alpha, "alpha"),
        }

    def _given(self) -> Any:
        """The estimator to clone or, if it is fitted, to use."""
        if self.estimator is None and not self.prefit:
            return RandomForestClassifier(n_estimators=10)
        if self.estimator is None or not (self.prefit or hasattr(self.estimator, "fit")):
            rule = "must be a classifier that can be fitted, or be fitted with `prefit=True`"
            repair = "Pass a VotingClassifier of the models, or fit them and pass `prefit=True`."
            raise refusal("estimator", rule, type(self.estimator).__name__, repair)
        return self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = RandomForestClassifier() if self.estimator is None else self.estimator
        if hasattr(inner, "__sklearn_tags__"):  # a list has none
            taken = inner.__sklearn_tags__().input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = taken.sparse, taken.allow_nan
        return tags


def _two_parts(
    y: NDArray[Any], holdout: float, random: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to fit on and rows to keep back, ascending, with the shares of classes if there is room."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    alone = counts[codes] == 1  # fitted on: nothing could be learnt of that class otherwise
    shared = np.flatnonzero(~alone)
    if len(classes) < 2 or len(shared) == 0:
        rule = "must hold two classes or more, one of them with two rows so that one is kept back"
        came = f"one class in n_samples={len(y)}"
        if len(classes) > 1:
            came = f"n_samples={len(y)}, each of its own class"
        raise refusal("y", rule, came, "Pass more rows, or a fitted ensemble with `prefit=True`.")
    size = min(max(round(holdout * len(y)), 1), len(shared) - 1)
    room = min(size, len(shared) - size) >= np.count_nonzero(counts > 1)
    shares = {"stratify": codes[shared] if room else None, "random_state": random.randint(_SEEDS)}
    used, kept = train_test_split(shared, test_size=size, **shares)
    return np.sort(np.concatenate([np.flatnonzero(alone), used])), np.sort(kept)


def _seeded(estimator: Any, random: np.random.RandomState) -> Any:
    """Give every `random_state` within that is None a seed of its own; others are the user's."""
    missing = sorted(
        name
        for name, value in estimator.get_params(deep=True).items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    )
    seeds = {name: int(random.randint(_SEEDS)) for name in missing}
    return estimator.set_params(**seeds) if seeds else estimator


def _least_log_score(members: ClassifierSet, labels: NDArray[np.int32]) -> Floats:
    """Maximum likelihood; rows that every member thinks impossible are left out."""
    data = LocalSet(members, labels)
    return data.distinct.share(fit_mixture(data.passes(1), Cases.data()).weights[0])


def _least_brier_score(members: ClassifierSet, labels: NDArray[np.int32]) -> Floats:
    """The point of the hull nearest to the one-hot labels, all rows taken as one long vector."""
    # Only inner products of the differences matter: a triangular factor stands for all rows.
    differences = members.probs.astype(np.float64)
    differences[np.arange(len(labels)), :, labels] -= 1.0
    rows = differences.transpose(0, 2, 1).reshape(-1, members.n_members)
    factor = np.asarray(np.linalg.qr(rows, mode="r"))
    return hull.nearest(factor.T, np.zeros(len(factor)))


#: Objectives that are no measures of calibration.
_SCORES = {"log_score": _least_log_score, "brier_score": _least_brier_score}

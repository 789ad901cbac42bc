"""An ensemble whose weights are chosen for calibration: `WeightedEnsembleClassifier`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import assert_all_finite, check_random_state, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from hullcal import measures, minimizers, nulls
from hullcal._validation import InvalidInputError, check_fraction, check_integer, refusal
from hullcal.algorithm import calibration_test
from hullcal.ensembles._sklearn_fitting import SEEDS, fit_apart
from hullcal.ensembles._sklearn_input import note_columns
from hullcal.ensembles._sklearn_kinds import known_classes
from hullcal.ensembles._sklearn_members import members_from
from hullcal.ensembles._sklearn_weights import SCORES, best_weights
from hullcal.results import CalibrationTestResult


class WeightedEnsembleClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """An ensemble whose members are weighted by a calibration measure on rows kept back.

    `fit` keeps rows back, fits the ensemble on the others, and searches the hull of its members for
    the combination that is best by `objective` on the rows kept back. `predict_proba` is that
    combination. `result_` tests on the same rows whether the hull contains a calibrated classifier.

    The weights look better on the rows they were chosen on than on others. The test allows for that
    with the nulls that search their replicates too ("recentered", "stacked", "refit"); a measure
    taken of the weighted ensemble on those rows does not. Judge it on new rows.

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
        note_columns(self, X, y)
        y = column_or_1d(y, warn=True)
        X, y = indexable(X, y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        test = self._settings()
        random = check_random_state(self.random_state)
        classes = None
        if self.prefit:
            self.estimator_ = self._given()
        else:
            holdout = check_fraction(self.holdout, "holdout")
            seen = np.unique(y)
            self.estimator_, X, y = fit_apart(self._given(), X, y, holdout=holdout, random=random)
            # A frozen model may know other classes, and the rows fitted on may lack some.
            classes = np.union1d(seen, np.asarray(known_classes(self.estimator_)))
        self.seed_ = int(random.randint(SEEDS))
        members, labels = members_from(
            self.estimator_, X, y, classes=classes, n_stages=self.n_stages
        )
        self.classes_ = np.asarray(members.classes) if classes is None else classes
        self.members_ = members.members
        self.held_out_ = members, labels
        self.weights_ = best_weights(
            members, labels, objective=self.objective, minimizer=self.minimizer, seed=self.seed_
        )
        # What was said at `fit` holds, whatever is set later.
        self._n_stages, self._test = self.n_stages, test
        self._result: CalibrationTestResult | None = None
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predictions of the weighted ensemble, (n_samples, n_classes)."""
        check_is_fitted(self)
        members = members_from(self.estimator_, X, classes=self.classes_, n_stages=self._n_stages)
        # Row by row in the order of the members, so that no row depends on its neighbours.
        mixed: NDArray[np.float64] = np.einsum("nmk,m->nk", members.probs, self.weights_)
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
        scored = isinstance(self.objective, str) and self.objective in SCORES
        measure = "ece_conf" if scored else self._objective()
        search = minimizers.resolve(self.minimizer)
        nulls.resolve(self.null).check(measures.resolve(measure), search)
        check_integer(self.n_stages, "n_stages", 1)
        return {
            "measure": measure,
            "null": self.null,
            "minimizer": self.minimizer,
            "n_resamples": check_integer(self.n_resamples, "n_resamples", 1),
            "alpha": check_fraction(self.alpha, "alpha"),
        }

    def _objective(self) -> Any:
        try:
            measures.resolve(self.objective)
        except InvalidInputError as error:
            raise InvalidInputError(
                f'`objective` must be "log_score", "brier_score" or a measure: {error}'
            ) from error
        return self.objective

    def _given(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        if self.prefit:
            repair = "Pass the fitted ensemble as `estimator`."
            raise refusal("estimator", "must be given with `prefit=True`", "None", repair)
        return RandomForestClassifier(n_estimators=10)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = RandomForestClassifier() if self.estimator is None else self.estimator
        if hasattr(inner, "__sklearn_tags__"):  # a list has none
            taken = inner.__sklearn_tags__().input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = taken.sparse, taken.allow_nan
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """The same for scikit-learn 1.5."""
        inner = RandomForestClassifier() if self.estimator is None else self.estimator
        return {"allow_nan": hasattr(inner, "_get_tags") and inner._get_tags()["allow_nan"]}

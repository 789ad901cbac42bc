"""Members of scikit-learn's models, and the ensemble whose weights are chosen for calibration."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import hullcal as hc
from hullcal.ensembles import WeightedEnsembleClassifier, members_from

X, Y = make_classification(
    n_samples=160, n_features=6, n_informative=4, n_classes=3, flip_y=0.2, random_state=0
)
NAMES = np.array(["pear", "apple", "fig"])[Y]  # sorted: apple, fig, pear
FITTED, NEW = slice(0, 100), slice(100, None)
TWO = np.stack([Y, Y == 0], axis=1)  # two outputs


def fit(estimator, labels=NAMES):
    return estimator.fit(X[FITTED], labels[FITTED])


def small_forest(**options):
    return RandomForestClassifier(n_estimators=4, max_depth=3, random_state=0, **options)


def named_models():
    return [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3, random_state=0))]


TREES = ("tree 0", "tree 1", "tree 2", "tree 3")
SEARCH = GridSearchCV(small_forest(), {"max_depth": [1, 2]}, cv=2)

# Models whose prediction is the mean of their members, and the names of these.
AVERAGED = {
    "random forest": (small_forest(), TREES),
    "extra trees": (ExtraTreesClassifier(n_estimators=4, random_state=0), TREES),
    "bagging": (BaggingClassifier(n_estimators=2, random_state=0), ("bag 0", "bag 1")),
    "bagging of columns": (
        BaggingClassifier(
            GaussianNB(), 2, max_features=0.5, bootstrap_features=True, random_state=0
        ),
        ("bag 0", "bag 1"),
    ),
    "voting": (
        VotingClassifier([*named_models(), ("dropped", "drop")], voting="soft"),
        ("bayes", "tree"),
    ),
    "calibrated": (CalibratedClassifierCV(GaussianNB(), cv=2), ("fold 0", "fold 1")),
    "calibrated on all": (CalibratedClassifierCV(GaussianNB(), ensemble=False), ("fold 0",)),
    "pipeline of one step": (Pipeline([("forest", small_forest())]), TREES),
    "search in a pipeline": (make_pipeline(StandardScaler(), SEARCH), TREES),
    "one model": (GaussianNB(), ("GaussianNB",)),
    "one versus rest": (OneVsRestClassifier(GaussianNB()), ("OneVsRestClassifier",)),
}


@pytest.mark.parametrize("kind", AVERAGED)
def test_the_mean_of_the_members_is_what_the_model_predicts(kind):
    given, names = AVERAGED[kind]
    model = fit(clone(given))
    members = members_from(model, X[NEW])
    assert members.members == names
    if kind in ("random forest", "bagging"):
        sparse = members_from(model, scipy.sparse.coo_matrix(X[NEW])).probs
        np.testing.assert_array_equal(sparse, members.probs)
    assert members.classes == tuple(model.classes_.tolist())
    np.testing.assert_allclose(
        members.probs.mean(axis=1), model.predict_proba(X[NEW]), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("kind", [GradientBoostingClassifier, HistGradientBoostingClassifier])
def test_stages_of_gradient_boosting_are_evenly_spaced_and_end_with_the_model(kind):
    size = {GradientBoostingClassifier: "n_estimators", HistGradientBoostingClassifier: "max_iter"}
    model = fit(kind(random_state=0, **{size[kind]: 9}))
    members = members_from(model, X[NEW], n_stages=4)
    assert members.members == ("after 3", "after 5", "after 7", "after 9")
    every = np.stack(list(model.staged_predict_proba(X[NEW])), axis=1)
    np.testing.assert_allclose(members.probs, every[:, [2, 4, 6, 8]], rtol=0, atol=1e-12)
    assert members_from(model, X[NEW], n_stages=20).n_members == 9
    assert members_from(model, X[NEW], n_stages=1).members == ("after 9",)


def test_stages_of_adaboost_are_its_classifiers():
    model = fit(AdaBoostClassifier(n_estimators=3, random_state=0))
    members = members_from(model, X[NEW])
    assert members.members == ("stage 0", "stage 1", "stage 2")
    for m, stump in enumerate(model.estimators_):
        np.testing.assert_array_equal(members.probs[:, m], stump.predict_proba(X[NEW]))


def test_a_stack_of_models_that_came_fitted_keeps_their_classes():
    rows = Y != 1  # "apple" is missing: positions 0 and 1 of this member are fig and pear
    narrow = GaussianNB().fit(X[rows], NAMES[rows])
    wide = fit(GaussianNB())
    stack = StackingClassifier(
        [("narrow", narrow), ("wide", wide)], LogisticRegression(max_iter=500), cv="prefit"
    )
    members = members_from(fit(stack), X[NEW])
    assert members.members == ("narrow", "wide")  # and not the final estimator
    np.testing.assert_array_equal(members.probs[:, 0, 0], 0)
    np.testing.assert_allclose(
        members.probs[:, 0, 1:], narrow.predict_proba(X[NEW]), rtol=0, atol=1e-12
    )


def test_a_bag_that_never_saw_a_class_gives_it_probability_0():
    # Bags of 6 rows; "b" has 2 rows of 20, so some bag must miss it.
    rows = np.arange(20.0)[:, None]
    labels = np.array(["a"] * 9 + ["b"] * 2 + ["c"] * 9)
    options = {"n_estimators": 8, "max_samples": 6, "bootstrap": False, "random_state": 3}
    model = BaggingClassifier(DecisionTreeClassifier(), **options).fit(rows, labels)
    members = members_from(model, rows)
    blind = [m for m, drawn in enumerate(model.estimators_samples_) if "b" not in labels[drawn]]
    assert blind, "no bag missed the class, so nothing would be tested"
    for m in blind:
        # By hand: the tree says which of two classes, which are the first and the last column.
        told = model.estimators_[m].predict(rows)
        expected = np.zeros((20, 3))
        expected[np.arange(20), np.where(told == model.estimators_[m].classes_[-1], 2, 0)] = 1
        np.testing.assert_array_equal(members.probs[:, m], expected)


class Fixed:
    """A fitted classifier that says the same for every row."""

    def __init__(self, classes, row, dtype="float64"):
        self.classes_ = np.array(classes)
        self.row = np.array([row], dtype=dtype)

    def predict_proba(self, X):
        return np.repeat(self.row, len(X), axis=0)


def test_models_in_a_list_are_put_on_the_sorted_union_of_their_classes():
    models = [Fixed(["dog", "cat"], [0.75, 0.25]), Fixed(["eel"], [1.0])]
    members = members_from(models, np.zeros((2, 1)))
    assert members.classes == ("cat", "dog", "eel")
    assert members.members == ("model 0", "model 1")
    np.testing.assert_array_equal(members.probs[0], [[0.25, 0.75, 0], [0, 0, 1]])


def test_classes_can_be_given_in_any_order_with_more_of_them():
    model = {"pet": Fixed(["dog", "cat"], [0.75, 0.25])}
    members, labels = members_from(
        model, np.zeros((3, 1)), ["cat", "emu", "dog"], classes=["emu", "cat", "dog"]
    )
    assert members.members == ("pet",)
    np.testing.assert_array_equal(members.probs[0], [[0, 0.25, 0.75]])
    np.testing.assert_array_equal(labels, [1, 0, 2])


def test_single_precision_is_mended_before_it_is_taken_for_double():
    row = np.full(30, 1 / 30, dtype="float32")
    row[0] += 2e-5  # more than rounding
    members = members_from([Fixed(range(30), row, "float32")], np.zeros((1, 1)))
    assert members.probs.dtype == np.float64
    np.testing.assert_allclose(members.probs.sum(axis=2), 1, rtol=0, atol=1e-14)
    np.testing.assert_allclose(members.probs[0, 0], row, rtol=3e-5)


@pytest.mark.parametrize("labels", [NAMES, Y, Y + 1, Y * 1.0, -Y, Y == 0], ids=str)
def test_a_set_takes_its_labels_as_they_come(labels):
    """Numbers are names to a set whose classes are numbers; positions would be misread there."""
    model = fit(small_forest(), labels)
    members, read = members_from(model, X[NEW], labels[NEW])
    by_hand = [model.classes_.tolist().index(label) for label in labels[NEW].tolist()]
    np.testing.assert_array_equal(members.labels(read), by_hand)


BOOSTED = AdaBoostClassifier(n_estimators=3, random_state=0)


@pytest.mark.parametrize(
    "given",
    [*(AVERAGED[kind][0] for kind in ("random forest", "bagging of columns", "voting")), BOOSTED],
    ids=lambda given: type(given).__name__,
)
def test_data_frames_are_taken_without_a_warning(given):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("uvwxyz"))
    model = clone(given)
    expected = members_from(fit(model), X[NEW]).probs
    model.fit(frame[FITTED], NAMES[FITTED])
    np.testing.assert_array_equal(members_from(model, frame[NEW]).probs, expected)
    with pytest.raises(ValueError, match="feature names"):
        members_from(model, frame[NEW].rename(columns={"u": "other"}))


def test_a_model_that_is_not_fitted_is_scikit_learns_own_error():
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    for model in (small_forest(), VotingClassifier(named_models()), pipeline, [GaussianNB()]):
        with pytest.raises(NotFittedError):
            members_from(model, X)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RandomForestRegressor(n_estimators=2), "RandomForestRegressor, which has no `classes_`"),
        (make_pipeline(StandardScaler(), LinearRegression()), "Pipeline, which has no `classes_`"),
        (GridSearchCV(GaussianNB(), {}, refit=False, cv=2), "`refit=True`"),
        (BaggingClassifier(LinearSVC(), n_estimators=2), "'bag 0', a LinearSVC without it"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_gives_no_probabilities_is_refused(model, message):
    model.fit(X, Y)
    with pytest.raises(hc.InvalidInputError, match=message):
        members_from(model, X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: members_from(small_forest().fit(X, TWO), X), "`estimator` must have one output"),
        (
            lambda: members_from(OneVsRestClassifier(GaussianNB()).fit(X, np.eye(3)[Y]), X),
            "`estimator` must have one output",
        ),
        (lambda: members_from([], X), "`estimator` must hold at least one model"),
        (lambda: members_from("forest", X), "`estimator` must be a fitted classifier"),
        (
            lambda: members_from([Fixed(["a"], [1.0]), Fixed([1], [1.0])], X),
            "`estimator` must hold models of one problem",
        ),
        (
            lambda: members_from([Fixed(["a", "b"], [3.0, -1.0])], X),
            "member 'model 0' gave no probabilities",
        ),
        (
            lambda: members_from([Fixed(["a", "b"], [0.5, 0.5])], X, classes=["b", "c"]),
            "`classes` must name every class that a member knows; got .*without 'a'",
        ),
        (
            lambda: members_from([Fixed(["a", "b"], [0.5, 0.5])], [[0]], ["z"]),
            "`y` must hold .* known to some member: .*'z' at index 0",
        ),
        (lambda: members_from(Fixed(["a", "b"], [0.5, 0.5]), X, n_stages=0), "`n_stages`"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(hc.InvalidInputError, match=message):
        call()


def test_a_frozen_model_is_its_inner_model():
    frozen = pytest.importorskip("sklearn.frozen").FrozenEstimator(fit(small_forest()))
    assert members_from(frozen, X[NEW]).members == TREES
    model = WeightedEnsembleClassifier(frozen, random_state=0).fit(X[NEW], NAMES[NEW])
    assert clone(model).fit(X[NEW], NAMES[NEW]).weights_.tolist() == model.weights_.tolist()


def test_the_whole_module_is_loaded_late_and_says_what_is_missing():
    code = (
        "import sys, hullcal.ensembles\n"
        "assert 'sklearn' not in sys.modules\n"
        "sys.modules['sklearn'] = None\n"
        "try: hullcal.ensembles.members_from\n"
        "except ImportError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install scikit-learn" in run.stdout


# Few rows make a measure warn, and scikit-learn's checks use few.
@pytest.mark.filterwarnings("ignore::hullcal.HullcalWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [WeightedEnsembleClassifier(BaggingClassifier(LogisticRegression(), 3), random_state=0)]
)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


def weighted(**options):
    options = {"estimator": small_forest(), "random_state": 0, "n_resamples": 39} | options
    return WeightedEnsembleClassifier(**options).fit(X, NAMES)


def test_the_prediction_is_the_weighted_sum_of_the_members():
    model = weighted()
    by_hand = sum(
        weight * tree.predict_proba(X)
        for weight, tree in zip(model.weights_, model.estimator_.estimators_, strict=True)
    )
    np.testing.assert_allclose(model.predict_proba(X), by_hand, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[by_hand.argmax(axis=1)])
    assert model.members_ == TREES
    assert (model.n_features_in_, model.classes_.tolist()) == (6, ["apple", "fig", "pear"])


def test_weights_are_those_of_minimize_and_the_result_that_of_a_test():
    model = weighted(objective=hc.ClasswiseECE(n_bins=5), null="recentered", alpha=0.1)
    members, labels = model.held_out_
    options = {"measure": hc.ClasswiseECE(n_bins=5), "rng": model.seed_}
    found = hc.minimize(members, labels, **options)
    np.testing.assert_array_equal(model.weights_, found.weights)
    direct = hc.calibration_test(
        members, labels, null="recentered", n_resamples=39, alpha=0.1, **options
    )
    assert model.result_ == direct
    assert model.result_ is model.result_, "the test is run once"


def test_rows_kept_back_are_not_fitted_on_and_keep_the_shares_of_the_classes():
    numbered = np.arange(90.0)[:, None]
    labels = np.repeat([0, 1, 2], [60, 24, 6])
    model = WeightedEnsembleClassifier(Recorder(), holdout=1 / 3, random_state=0)
    model.fit(numbered, labels)
    used = set(model.estimator_.rows_)
    assert len(used) == 60
    np.testing.assert_array_equal(np.bincount(model.held_out_[1]), [20, 8, 2])
    kept = np.setdiff1d(np.arange(90), list(used))
    np.testing.assert_array_equal(model.held_out_[1], labels[kept])


class Recorder(GaussianNB):
    """Naive Bayes that remembers its rows."""

    def fit(self, X, y):
        self.rows_ = X[:, 0].astype(int).tolist()
        return super().fit(X, y)


def test_a_class_of_one_row_is_fitted_on():
    labels = np.array(["rare"] + ["a"] * 20 + ["b"] * 20)
    for seed in range(3):
        model = WeightedEnsembleClassifier(Recorder(), random_state=seed)
        model.fit(np.arange(41.0)[:, None], labels)
        assert 0 in model.estimator_.rows_
        assert model.classes_.tolist() == ["a", "b", "rare"]


def test_more_classes_than_room_are_split_without_shares():
    labels = np.repeat(np.arange(8), 2)
    model = WeightedEnsembleClassifier(holdout=0.2, random_state=0)
    with pytest.warns(hc.HullcalWarning, match="3 rows are fewer"):
        model.fit(np.arange(16.0)[:, None], labels)
    assert model.held_out_[0].n_samples == 3
    assert model.predict_proba([[0.0]]).shape == (1, 8)


def slopes(objective, probs, labels, weights):
    """How a score changes with each weight, written out."""
    mixed = np.tensordot(probs, weights, axes=(1, 0))
    if objective == "log_score":
        rows = np.arange(len(labels))
        return -(probs[rows, :, labels] / mixed[rows, labels][:, None]).mean(axis=0)
    return 2 * np.einsum("nk,nmk->m", mixed - np.eye(3)[labels], probs) / len(labels)


@pytest.mark.parametrize("objective", ["log_score", "brier_score"])
@pytest.mark.parametrize("n_members", [2, 30])
def test_weights_of_a_proper_score_reach_its_minimum(objective, n_members):
    """A certificate: a convex score falls to no member faster than by its slope there."""
    bags = BaggingClassifier(GaussianNB(), n_members, max_features=3, random_state=1)
    model = weighted(estimator=bags, objective=objective)
    members, labels = model.held_out_[0].probs, model.held_out_[0].labels(model.held_out_[1])
    slope = slopes(objective, members, labels, model.weights_)
    assert model.weights_ @ slope - slope.min() < 2e-6
    at_mean = slopes(objective, members, labels, np.full(n_members, 1 / n_members))
    assert at_mean.mean() - at_mean.min() > 1e-3, "the mean would have passed too"
    assert model.result_.measure == "ece_conf"


def test_the_log_score_leaves_out_rows_that_no_member_thinks_possible():
    models = [Fixed([0, 1], [1.0, 0.0])] * 2
    model = WeightedEnsembleClassifier(models, prefit=True, objective="log_score", random_state=0)
    for n_impossible in (2, 20):
        model.fit(np.zeros((20, 1)), np.arange(20) < n_impossible)
        np.testing.assert_allclose(model.weights_, [0.5, 0.5])


def test_fitted_models_are_weighted_on_all_rows():
    forest = fit(small_forest())
    model = WeightedEnsembleClassifier(forest, prefit=True, random_state=0).fit(X[NEW], NAMES[NEW])
    assert model.estimator_ is forest
    assert model.held_out_[0].n_samples == 60
    models = {"forest": forest, "bayes": fit(GaussianNB())}
    model = WeightedEnsembleClassifier(models, prefit=True, random_state=0).fit(X[NEW], NAMES[NEW])
    assert model.members_ == ("forest", "bayes")
    assert model.predict_proba(X[NEW]).shape == (60, 3)


def test_a_seed_gives_the_same_model_and_another_seed_another():
    first, again, other = (
        weighted(estimator=RandomForestClassifier(5), random_state=seed) for seed in (7, 7, 8)
    )
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    assert first.result_ == again.result_
    own = weighted(estimator=RandomForestClassifier(3, random_state=42))
    assert own.estimator_.random_state == 42
    assert not np.array_equal(first.predict_proba(X), other.predict_proba(X))


def test_settings_of_fit_hold_when_parameters_change_later():
    model = weighted(estimator=GradientBoostingClassifier(n_estimators=6), n_stages=3)
    before = model.predict_proba(X)
    model.set_params(n_stages=2, n_resamples=19)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert len(model.result_.null_distribution) == 39


def test_it_works_inside_pipelines_and_searches():
    inner = make_pipeline(
        StandardScaler(), WeightedEnsembleClassifier(small_forest(), random_state=0)
    )
    objectives = {"weightedensembleclassifier__objective": ["ece_conf", "log_score", "brier_score"]}
    search = GridSearchCV(inner, objectives, cv=2).fit(X, NAMES)
    assert search.cv_results_["mean_test_score"].min() > 0.4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "logscore"}, '`objective` must be "log_score", "brier_score" or a measure'),
        ({"objective": lambda p, y: 0.1, "null": "recentered"}, "needs a residual vector"),
        ({"holdout": 1.0}, "`holdout` must lie strictly between 0 and 1"),
        ({"n_resamples": 0}, "`n_resamples`"),
        ({"n_stages": 0}, "`n_stages` must be an integer"),
        ({"minimizer": "newton"}, "Unknown minimizer 'newton'"),
        ({"estimator": [GaussianNB()]}, "`estimator` must be a classifier that can be fitted"),
        ({"estimator": None, "prefit": True}, "`estimator` must be a classifier .*got NoneType"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_fitted(options, message):
    class Unfit(RandomForestClassifier):
        def fit(self, X, y):
            raise AssertionError("it was fitted")

    with pytest.raises(hc.InvalidInputError, match=message):
        weighted(**{"estimator": Unfit()} | options)


@pytest.mark.parametrize(
    ("labels", "message"),
    [(["a"] * 4, "got one class"), (["a", "b", "c", "d"], "n_samples=4, each of its own class")],
)
def test_too_few_rows_of_a_class_are_refused(labels, message):
    with pytest.raises(hc.InvalidInputError, match=message):
        WeightedEnsembleClassifier().fit(X[:4], labels)

"""Many classes: looking at a few entries gives what looking at all of them gives."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import hullcal as hc
from hullcal._compiled import streams
from hullcal.engines import entries as entries_of
from hullcal.engines.local import packed_problem
from hullcal.nulls import _passes
from hullcal.nulls.paper import Paper
from hullcal.sets import ClassifierSet
from hullcal.simulation.protocols import RightClosedECE

MEASURES = [
    hc.ConfidenceECE(n_bins=1),
    hc.ConfidenceECE(n_bins=10),
    RightClosedECE(n_bins=5),
    hc.ConfidenceECE(n_bins=10, smooth=True),
    hc.ClasswiseECE(n_bins=5),
    hc.ClasswiseECE(n_bins=10),
]
IDS = [f"{type(one).__name__}({one.n_bins}{', smooth' * one.smooth})" for one in MEASURES]


def many_classes(n_samples=60, n_members=4, n_classes=60, sharpness=2.0, seed=0):
    rng = np.random.default_rng(seed)
    shared = 2 * sharpness * rng.normal(size=(n_samples, 1, n_classes))
    logits = shared + sharpness * rng.normal(size=(n_samples, n_members, n_classes))
    probs = np.exp(logits - logits.max(axis=2, keepdims=True))
    probs /= probs.sum(axis=2, keepdims=True)
    labels = [rng.choice(n_classes, p=p) for p in probs.mean(axis=1)]
    return probs, np.array(labels, dtype=np.int32)


def problem_of(measure, **sizes):
    probs, labels = many_classes(**sizes)
    return packed_problem(ClassifierSet(probs), labels, measure).objective


def both_ways(objective, weights):
    """Values over entries and over all probabilities, case by case."""
    over_entries = [
        part.values(weights, np.full(len(weights), case))
        for part in objective.parts()
        for case in range(part.n_cases)
    ]
    whole = replace(objective, entries=None)
    cases = range(objective.n_cases)
    return over_entries, [whole.values(weights, np.full(len(weights), case)) for case in cases]


@pytest.mark.parametrize("measure", MEASURES, ids=IDS)
@pytest.mark.parametrize("sharpness", [0.8, 2.0, 5.0])
def test_entries_give_the_value_of_the_whole_at_any_weights(measure, sharpness):
    objective = problem_of(measure, sharpness=sharpness)
    assert objective.entries is not None
    assert objective.entries.members.shape[2] < 0.5 * objective.members[0].size
    rng = np.random.default_rng(1)
    weights = np.vstack([np.eye(4), rng.dirichlet(np.ones(4), size=20)])
    np.testing.assert_allclose(*both_ways(objective, weights), rtol=0, atol=1e-15)


@pytest.mark.parametrize("measure", MEASURES, ids=IDS)
def test_entries_follow_other_labels_row_weights_and_offsets(measure):
    objective = problem_of(measure)
    rng = np.random.default_rng(2)
    weights = rng.dirichlet(np.ones(4), size=10)
    labels = rng.integers(60, size=(3, 60)).astype(np.int32)
    np.testing.assert_allclose(*both_ways(objective.with_labels(labels), weights), atol=1e-15)
    moved = replace(objective, offset=rng.normal(size=objective.offset.shape) / 100)
    counts = rng.multinomial(60, np.full(60, 1 / 60), size=11).astype(np.float64)
    np.testing.assert_allclose(*both_ways(moved.with_row_weights(counts), weights), atol=1e-15)


@pytest.mark.parametrize("measure", MEASURES[1:], ids=IDS[1:])
def test_ten_classes_are_enough_where_rows_are_many(measure):
    objective = problem_of(measure, n_samples=2_000, n_classes=10, sharpness=3.0)
    assert objective.entries is not None
    weights = np.random.default_rng(1).dirichlet(np.ones(4), size=5)
    np.testing.assert_allclose(*both_ways(objective, weights), rtol=0, atol=1e-15)
    assert problem_of(measure, n_samples=200, n_classes=10, sharpness=3.0).entries is None


@pytest.mark.parametrize("smooth", [False, True])
def test_confidence_looks_at_the_same_bits(smooth):
    objective = problem_of(hc.ConfidenceECE(smooth=smooth))
    over_entries, whole = both_ways(objective, np.random.default_rng(0).dirichlet(np.ones(4), 50))
    np.testing.assert_array_equal(over_entries, whole)


def test_a_probability_on_the_first_edge_in_one_member_is_looked_at():
    # Two members, one of them with exactly 1/B for class 0: some weights put it into the second bin.
    probs = np.full((200, 2, 60), 0.0)
    probs[:, :, 1] = 1.0
    probs[0, 0, :2] = 0.1, 0.9
    labels = np.zeros(200, dtype=np.int32)
    objective = packed_problem(ClassifierSet(probs), labels, hc.ClasswiseECE(n_bins=10)).objective
    looked_at = set(zip(objective.entries.rows, objective.entries.classes, strict=True))
    assert (0, 0) in looked_at
    assert (1, 0) not in looked_at


def test_smooth_classwise_ece_looks_at_everything():
    # A probability below the first edge is not only added up: it enters squared.
    assert problem_of(hc.ClasswiseECE(smooth=True)).entries is None


@pytest.mark.parametrize("null", ["paper", "recentered", "refit", "stacked"])
@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise", "ece_conf_smooth"])
@pytest.mark.parametrize("n_members", [1, 3])
def test_a_test_is_the_same_with_entries_and_without(null, measure, n_members, monkeypatch):
    probs, labels = many_classes(n_samples=50, n_members=n_members)
    settings = {"measure": measure, "null": null, "n_resamples": 19, "alpha": 0.1, "rng": 3}
    found = hc.calibration_test(probs, labels, **settings)
    on_threads = hc.calibration_test(probs, labels, n_jobs=2, **settings)
    monkeypatch.setattr(entries_of, "MANY_CLASSES", 1_000)
    whole = hc.calibration_test(probs, labels, **settings)
    np.testing.assert_array_equal(found.null_distribution, on_threads.null_distribution)
    np.testing.assert_allclose(found.null_distribution, whole.null_distribution, atol=1e-13)
    np.testing.assert_allclose(found.statistic, whole.statistic, atol=1e-13)
    assert found.n_evaluations == whole.n_evaluations


@pytest.mark.parametrize(
    "measure", ["ece_conf", "ece_cwise", "ece_conf_smooth", "ece_cwise_smooth"]
)
@pytest.mark.parametrize("rows", ["resampled", "permuted"])
def test_passes_over_blocks_of_rows_give_algorithm_1(measure, rows, monkeypatch):
    probs, labels = many_classes(n_samples=300, n_members=4, n_classes=7)
    settings = {"measure": measure, "null": Paper(rows=rows), "n_resamples": 39, "rng": 0}
    at_once = hc.calibration_test(probs, labels, **settings)
    monkeypatch.setattr(_passes, "_LARGE", 1)
    monkeypatch.setattr(_passes, "_MANY_CLASSES", 2)
    monkeypatch.setattr(_passes, "_IN_CACHE", 7 * 64)
    found = hc.calibration_test(probs, labels, **settings)
    on_threads = hc.calibration_test(probs, labels, n_jobs=2, **settings)
    np.testing.assert_allclose(found.null_distribution, at_once.null_distribution, atol=1e-15)
    np.testing.assert_array_equal(found.null_distribution, on_threads.null_distribution)
    assert np.ptp(found.null_distribution) > 0.0


def test_pairs_of_rows_are_never_taken_apart_by_passes(monkeypatch):
    monkeypatch.setattr(_passes, "_LARGE", 1)
    objective = problem_of(hc.SKCE(estimator="ul"))
    assert _passes.work_of(objective) is None
    assert _passes.work_of(problem_of(hc.ClasswiseECE())) is not None


def test_all_predictions_of_a_combination_are_mixed_only_where_rows_are_weighted():
    """They are as large as a member; labels that are drawn anew need only their entries."""
    objective = problem_of(hc.ClasswiseECE())
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    key = streams.key_of(0)
    labels = objective.drawing_labels(weights, key)(0, 5)
    rows = objective.drawing_rows(key)(0, 5)
    for replicates, mixed in ((labels, False), (rows, True)):
        found = replicates.at(weights)
        whole = replace(replicates, entries=None).at(weights)
        np.testing.assert_allclose(found, whole, rtol=0, atol=1e-14)
        assert bool(objective.entries._last) == mixed


class AlwaysHalf(hc.ConfidenceECE):
    """A measure of the user's own that keeps nothing of its parent but the name."""

    value = staticmethod(lambda *arguments: 0.5)


def test_a_subclass_with_a_loop_of_its_own_keeps_it(monkeypatch):
    monkeypatch.setattr(_passes, "_LARGE", 1)
    probs, labels = many_classes()
    for null in ("paper", "refit"):
        result = hc.calibration_test(
            probs, labels, measure=AlwaysHalf(), null=null, n_resamples=9, alpha=0.2, rng=0
        )
        assert result.statistic == 0.5
        assert (result.null_distribution == 0.5).all()


@pytest.mark.parametrize("null", ["paper", "recentered", "refit"])
def test_flat_predictions_need_no_entry_but_sums(null):
    """With a thousand classes that are all unlikely nothing leaves the first bin."""
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.full(300, 5.0), size=(400, 3))
    labels = rng.integers(0, 300, 400)
    measure = hc.ClasswiseECE(n_bins=10)
    objective = packed_problem(ClassifierSet(probs), labels, measure).packed
    assert objective.entries is not None
    assert len(objective.entries.rows) == 1
    options = {"measure": measure, "null": null, "n_resamples": 9, "rng": 0}
    options["minimizer"] = hc.minimizers.Pairwise(max_evaluations=40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hc.HullcalWarning)
        found = hc.calibration_test(probs, labels, **options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(entries_of, "_SOME_CLASSES", 10**9)
            patch.setattr(entries_of, "MANY_CLASSES", 10**9)
            plain = hc.calibration_test(probs, labels, **options)
    np.testing.assert_allclose(found.statistic, plain.statistic, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.null_distribution, plain.null_distribution, rtol=0, atol=1e-14)
    assert found.pvalue == plain.pvalue

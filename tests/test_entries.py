"""Many classes: a few entries give the values of all, and one pass serves many replicates."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal._compiled.streams import key_of
from hullcal.measures.ece_conf import _leave_out_dominated
from hullcal.objectives import entries as entries_of
from hullcal.objectives import lines_2_4_5
from hullcal.objectives.opening import packed
from hullcal.sets import ClassifierSet
from hullcal.simulation.protocols import RightClosedECE
from simulation import judged

MEASURES = [
    hc.ConfidenceECE(n_bins=1),
    hc.ConfidenceECE(n_bins=10),
    RightClosedECE(n_bins=5),
    hc.ConfidenceECE(n_bins=10, smooth=True),
    hc.ClasswiseECE(n_bins=5),
    hc.ClasswiseECE(n_bins=10),
]
IDS = [f"{type(one).__name__}({one.n_bins}{', smooth' * one.smooth})" for one in MEASURES]
every_measure = pytest.mark.parametrize("measure", MEASURES, ids=IDS)
KEY = key_of(4)


def many_classes(n_samples=60, n_members=4, n_classes=60, sharpness=2.0, seed=0):
    rng = np.random.default_rng(seed)
    shared = 2 * sharpness * rng.normal(size=(n_samples, 1, n_classes))
    logits = shared + sharpness * rng.normal(size=(n_samples, n_members, n_classes))
    probs = np.exp(logits - logits.max(axis=2, keepdims=True))
    probs /= probs.sum(axis=2, keepdims=True)
    labels = np.array([rng.choice(n_classes, p=p) for p in probs.mean(axis=1)], dtype=np.int32)
    labels[::7] = n_classes - 1  # which often has no entry
    return probs, labels


def objective_of(measure, **sizes):
    probs, labels = many_classes(**sizes)
    return packed(ClassifierSet(probs), labels, measure)


def combined(objective, weights):
    return np.einsum("m,mkn->nk", weights, objective.members)


def value_of(measure, probs, labels):
    """The measure by its equation."""
    value = getattr(oracles, measure.name)
    if not isinstance(measure, RightClosedECE):
        return value(probs, labels, measure.n_bins)
    top = probs.argmax(axis=1)
    confidence = probs.max(axis=1)
    bins = np.searchsorted(np.arange(1, measure.n_bins) / measure.n_bins, confidence, side="left")
    gaps = np.bincount(bins, (labels == top) - confidence, minlength=measure.n_bins)
    return np.abs(gaps).sum() / len(labels)


# Entries


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


@every_measure
@pytest.mark.parametrize("sharpness", [0.8, 2.0, 5.0])
def test_entries_give_the_value_of_the_whole_at_any_weights(measure, sharpness):
    objective = objective_of(measure, sharpness=sharpness)
    assert objective.entries is not None
    assert objective.entries.members.shape[2] < 0.5 * objective.members[0].size
    rng = np.random.default_rng(1)
    weights = np.vstack([np.eye(4), rng.dirichlet(np.ones(4), size=20)])
    over_entries, whole = both_ways(objective, weights)
    np.testing.assert_allclose(over_entries, whole, rtol=0, atol=1e-15)
    if isinstance(measure, hc.ConfidenceECE):
        np.testing.assert_array_equal(over_entries, whole)
    for point in weights[2:6]:
        expected = value_of(measure, combined(objective, point), objective.labels[0])
        assert objective.at(point)[0] == pytest.approx(expected, abs=1e-13)


@every_measure
def test_entries_follow_other_labels_row_weights_and_offsets(measure):
    objective = objective_of(measure)
    rng = np.random.default_rng(2)
    weights = rng.dirichlet(np.ones(4), size=10)
    labels = rng.integers(60, size=(3, 60)).astype(np.int32)
    np.testing.assert_allclose(*both_ways(objective.with_labels(labels), weights), atol=1e-15)
    moved = replace(objective, offset=rng.normal(size=objective.offset.shape) / 100)
    counts = rng.multinomial(60, np.full(60, 1 / 60), size=11).astype(np.float64)
    np.testing.assert_allclose(*both_ways(moved.with_row_weights(counts), weights), atol=1e-15)


@pytest.mark.parametrize("measure", [hc.ConfidenceECE(n_bins=7), hc.ClasswiseECE(n_bins=4)])
def test_drawn_rows_from_entries_are_recentered_by_the_equation(measure):
    objective = objective_of(measure, n_samples=13, n_members=2, n_classes=50)
    assert objective.entries is not None
    labels, weights, best = objective.labels[0], np.array([0.7, 0.3]), np.array([0.4, 0.6])
    drawn = objective.recentered(best).drawing_rows(KEY)(0, 2)
    residual = getattr(oracles, f"residual_{measure.name}")
    offset = residual(combined(objective, best), labels, measure.n_bins)
    for value, counts in zip(drawn.at(weights), drawn.row_weights, strict=True):
        rows = oracles.repeat_rows(combined(objective, weights), labels, counts.astype(int))
        expected = oracles.recentered_value(measure.name, *rows, offset, measure.n_bins)
        assert value == pytest.approx(expected, abs=1e-13)


def test_a_probability_on_the_first_edge_in_one_member_is_looked_at():
    # Two members, one of them with exactly 1/B for class 0: some weights put it into the second bin.
    probs = np.full((200, 2, 60), 0.0)
    probs[:, :, 1] = 1.0
    probs[0, 0, :2] = 0.1, 0.9
    labels = np.zeros(200, dtype=np.int32)
    entries = packed(ClassifierSet(probs), labels, hc.ClasswiseECE(n_bins=10)).entries
    looked_at = set(zip(entries.rows, entries.classes, strict=True))
    assert (0, 0) in looked_at
    assert (1, 0) not in looked_at


def test_smooth_classwise_ece_looks_at_everything():
    # A probability below the first edge is not only added up: it enters squared.
    assert objective_of(hc.ClasswiseECE(smooth=True)).entries is None


def test_a_class_is_left_out_only_if_another_exceeds_it_in_every_member_that_gives_it_something():
    # Classes by columns, members by rows. The first dominates the second; the third is larger in one
    # member; the fourth has 0 in one member and is smaller in the other; the fifth ties the first.
    members = np.array([[0.3, 0.2, 0.1, 0.0, 0.3], [0.25, 0.1, 0.3, 0.2, 0.25]])[:, :, np.newaxis]
    found = np.ones((5, 1), dtype=bool)
    _leave_out_dominated(members, members.min(axis=0), found)
    np.testing.assert_array_equal(found[:, 0], [True, False, True, False, True])
    np.testing.assert_array_equal(hc.ConfidenceECE().matters(members), found)


@pytest.mark.parametrize("null", ["paper", "recentered", "refit", "stacked"])
@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise", "ece_conf_smooth"])
@pytest.mark.parametrize("n_members", [1, 3])
def test_a_test_is_the_same_with_entries_and_without(null, measure, n_members, monkeypatch):
    probs, labels = many_classes(n_samples=50, n_members=n_members)
    settings = {"measure": measure, "null": null, "n_resamples": 19, "alpha": 0.1, "rng": 3}
    found = judged(probs, labels, **settings)
    on_threads = judged(probs, labels, n_jobs=2, **settings)
    monkeypatch.setattr(entries_of, "MANY_CLASSES", 1_000)
    whole = judged(probs, labels, **settings)
    np.testing.assert_array_equal(found.null_distribution, on_threads.null_distribution)
    np.testing.assert_allclose(found.null_distribution, whole.null_distribution, atol=1e-13)
    np.testing.assert_allclose(found.statistic, whole.statistic, atol=1e-13)
    assert found.n_evaluations == whole.n_evaluations


@pytest.mark.parametrize("null", ["paper", "recentered", "refit"])
def test_flat_predictions_need_no_entry_but_sums(null):
    """With hundreds of classes that are all unlikely nothing leaves the first bin."""
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.full(300, 5.0), size=(400, 3))
    labels = rng.integers(0, 300, 400)
    measure = hc.ClasswiseECE(n_bins=10)
    assert len(packed(ClassifierSet(probs), labels, measure).entries.rows) == 1
    options = {"measure": measure, "null": null, "n_resamples": 9, "rng": 0}
    options["minimizer"] = hc.minimizers.Pairwise(max_evaluations=40)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", hc.HullcalWarning)
        found = judged(probs, labels, **options)
        patch.setattr(entries_of, "_SOME_CLASSES", 10**9)
        patch.setattr(entries_of, "MANY_CLASSES", 10**9)
        plain = judged(probs, labels, **options)
    np.testing.assert_allclose(found.statistic, plain.statistic, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.null_distribution, plain.null_distribution, rtol=0, atol=1e-14)
    assert found.pvalue == plain.pvalue


def test_rows_that_are_weighted_are_added_up_for_the_combination_alone(monkeypatch):
    """Labels that are drawn anew need only their entries, and no sums over rows at all."""
    objective, added = objective_of(hc.ClasswiseECE()), []
    weighted = entries_of.Entries.weighted
    monkeypatch.setattr(
        entries_of.Entries,
        "weighted",
        lambda self, members, weights: (
            added.append(len(members)) or weighted(self, members, weights)
        ),
    )
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    labels = objective.drawing_labels(weights, KEY)(0, 5)
    rows = objective.drawing_rows(KEY)(0, 5)
    for replicates, expected in ((labels, []), (rows, [1])):
        found = replicates.at(weights)
        whole = replace(replicates, entries=None).at(weights)
        np.testing.assert_allclose(found, whole, rtol=0, atol=1e-14)
        assert added == expected


class AlwaysHalf(hc.ConfidenceECE):
    """A measure of the user's own that keeps nothing of its parent but the name."""

    value = staticmethod(lambda *arguments: 0.5)


def test_a_subclass_with_a_loop_of_its_own_keeps_it(monkeypatch):
    monkeypatch.setattr(lines_2_4_5, "_LARGE", 1)
    probs, labels = many_classes()
    for null in ("paper", "refit"):
        result = judged(
            probs, labels, measure=AlwaysHalf(), null=null, n_resamples=9, alpha=0.2, rng=0
        )
        assert result.statistic == 0.5
        assert (result.null_distribution == 0.5).all()


# Passes: lines 4 and 5 of Algorithm 1 for many replicates at once


def some_draws(objective, n_replicates, seed=1):
    """Weights (the first replicate is a vertex, the second has zeros), rows and levels."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(objective.n_members), size=n_replicates)
    weights[0] = np.eye(objective.n_members)[-1]
    weights[1, 1:-1] = 0.0
    weights[1] /= weights[1].sum()
    size = (n_replicates, objective.n_samples)
    rows = rng.integers(objective.n_samples, size=size).astype(np.uint32)
    rows[2] = 7  # more copies of a row than are looked up at once
    return weights, rows, rng.random(size)


def literally(objective, weights, rows, levels):
    """Line 4, label by label, and line 5 by its equation."""
    mixed = combined(objective, weights)[rows]
    running = np.cumsum(mixed, axis=1)
    labels = (running[:, :-1] <= (levels * running[:, -1])[:, np.newaxis]).sum(axis=1)
    return value_of(objective.measure, mixed, labels)


def assert_algorithm_1(objective, draws):
    kept = [part.copy() for part in draws]
    found = lines_2_4_5._in_passes(objective, *draws)
    expected = [literally(objective, *one) for one in zip(*draws, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    for part, before in zip(draws, kept, strict=True):
        np.testing.assert_array_equal(part, before)
    return found


@every_measure
@pytest.mark.parametrize(("n_members", "n_classes"), [(2, 50), (5, 50), (12, 257)])
def test_a_pass_in_several_blocks_of_rows_is_algorithm_1(
    measure, n_members, n_classes, monkeypatch
):
    objective = objective_of(measure, n_samples=40, n_members=n_members, n_classes=n_classes)
    draws = some_draws(objective, 5)
    at_once = assert_algorithm_1(objective, draws)
    assert len(set(at_once)) == 5
    # Blocks of 7 rows, the last of 5.
    monkeypatch.setattr(lines_2_4_5, "_TURNED", 1)
    monkeypatch.setattr(lines_2_4_5, "_FEWEST_ROWS", 7)
    np.testing.assert_array_equal(lines_2_4_5._in_passes(objective, *draws), at_once)


@every_measure
def test_certainty_and_impossibility_are_drawn_as_such(measure):
    # Every member is sure, mostly of the same class: no other label may ever come up.
    rng = np.random.default_rng(3)
    chosen = rng.choice([0, 1, 30, 58, 59], size=(80, 4))
    chosen[:60] = chosen[:60, :1]
    labels = np.zeros(80, dtype=np.int32)
    objective = packed(ClassifierSet(np.eye(60)[chosen]), labels, measure)
    weights, rows, levels = some_draws(objective, 6)
    levels[:, ::7] = 0.0
    # Dyadic weights and levels make every sum exact: a level may equal a running sum.
    weights[3:] = [0.25, 0.25, 0.5, 0.0]
    levels[3:] = rng.integers(8, size=levels[3:].shape) / 8
    assert_algorithm_1(objective, (weights, rows, levels))


def test_a_label_without_an_entry_counts_in_the_first_bin_of_its_class():
    # By hand: class 0 has 0.95 everywhere and 59 others share the rest; all labels are the last class.
    probs = np.full((100, 2, 60), 0.05 / 59)
    probs[:, :, 0] = 0.95
    probs[:, 1, :3] = 0.95, 0.0, 0.1 / 59
    labels = np.zeros(100, dtype=np.int32)
    objective = packed(ClassifierSet(probs), labels, hc.ClasswiseECE(n_bins=10))
    assert set(objective.entries.classes) == {0}
    rows = np.arange(100, dtype=np.uint32)[np.newaxis]
    levels = np.full((1, 100), 0.99999)
    found = lines_2_4_5._in_passes(objective, np.array([[0.5, 0.5]]), rows, levels)
    # Class 0 claims 0.95 too much, the last one 1 - p too little, the others the rest too much.
    claimed = 0.05 / 59
    np.testing.assert_allclose(found, [(0.95 + (1 - claimed) + 0.05 - claimed) / 60], atol=1e-14)


@every_measure
@pytest.mark.parametrize("permuted", [False, True])
def test_replicates_in_passes_are_those_one_by_one(measure, permuted, monkeypatch):
    objective = objective_of(measure, n_samples=100, n_members=6)
    rng = np.random.default_rng(5)
    objective = replace(objective, offset=rng.normal(size=objective.offset.shape) / 100)
    weights, replicates = rng.dirichlet(np.ones(6), size=9), np.arange(3, 12)
    one_by_one = objective.resampled(KEY, replicates, weights, permuted=permuted)
    assert objective.together(None) == 50_000_000 // objective.members.size
    monkeypatch.setattr(lines_2_4_5, "_LARGE", 1)
    monkeypatch.setattr(lines_2_4_5, "_one_by_one", None)
    together = objective.resampled(KEY, replicates, weights, permuted=permuted)
    np.testing.assert_allclose(together, one_by_one, rtol=0, atol=1e-14)
    assert objective.together(None) == 50_000_000 // (64 * 100)
    # A replicate alone, or in another order, has the bits it has among others.
    order = rng.permutation(9)
    alone = [
        objective.resampled(KEY, replicates[[d]], weights[[d]], permuted=permuted) for d in order
    ]
    np.testing.assert_array_equal(np.concatenate(alone), together[order])


def test_passes_are_worth_while_for_many_classes_in_large_data():
    def work(measure, **sizes):
        return lines_2_4_5.work_of_passes(
            objective_of(measure, n_members=2, sharpness=4.0, **sizes)
        )

    assert work(hc.ClasswiseECE(), n_samples=2_100, n_classes=50) == 64 * 2_100
    assert work(hc.ClasswiseECE(), n_samples=1_999, n_classes=50) is None
    assert work(hc.ClasswiseECE(), n_samples=2_200, n_classes=49) is None
    # Pairs of neighbours do not add up row by row.
    assert work(hc.SKCE(estimator="ul"), n_samples=2_100, n_classes=50) is None

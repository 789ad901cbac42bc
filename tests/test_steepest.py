"""Steepest search: to the letter of its definition, and the same whatever the order of the data."""

import itertools
from functools import cache

import numpy as np
import pytest
from sklearn import datasets
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

import hullcal as hc
import oracles
from hullcal._compiled.streams import key_of
from hullcal.objectives.opening import packed

ORDER_FREE = [
    name for name in hc.measures.available() if "ordered" not in hc.measures.resolve(name).traits
]


def searched(probs, labels, measure, budget):
    """What the search finds, with weights in the order of the members as given."""
    classifiers = hc.ClassifierSet(probs)
    objective = packed(
        classifiers, np.asarray(labels, dtype=np.int32), hc.measures.resolve(measure)
    )
    search = hc.minimizers.Steepest(max_evaluations=budget)
    found = search.minimize(objective, key_of(0))
    return found, classifiers.distinct.share(found.weights[0])


def ends_of(g, starts, budget):
    """Where searches end, and their values."""
    return [by_definition(g, len(start), start, budget) for start in starts]


def few_em_steps(chances, steps=12):
    weights = np.full(chances.shape[1], 1 / chances.shape[1])
    for _ in range(steps):
        shares = weights * chances
        shares /= shares.sum(axis=1, keepdims=True)
        weights = shares.mean(axis=0)
    # Further digits depend on the order in which rows are added up.
    weights = np.round(weights, 10)
    weights[weights.argmax()] += 1 - weights.sum()
    return weights


def by_definition(g, n_members, start, budget):
    """One start: evaluate all moves, take the best if it helps, else divide the step by three."""
    weights, step, spent = np.array(start), 0.15, 1
    value = g(weights)
    while step >= 0.004 and spent < budget:
        moves = []
        for m in range(n_members):
            corner = np.eye(n_members)[m]
            if weights[m] < 1:
                moves.append((1 - step) * weights + step * corner)
                away = min(step, weights[m] / (1 - weights[m]))
                if away > 0:
                    moves.append((1 + away) * weights - away * corner)
        values = [g(np.maximum(move, 0)) for move in moves]
        spent += len(moves)
        best = next(i for i, v in enumerate(values) if v <= min(values) + 1e-12)
        if values[best] < value - 1e-12:
            weights, value = np.maximum(moves[best], 0), values[best]
            weights[weights < 1e-15] = 0.0  # what rounding leaves of a member that was taken out
            weights /= weights.sum()
        else:
            step /= 3
    return weights, g(weights)


@pytest.mark.parametrize("budget", [1, 10, 25, 200])
@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise_smooth", "hl_cwise", "skce_uq"])
@pytest.mark.parametrize("n_members", [2, 4])
def test_the_search_is_its_definition(measure, n_members, budget):
    rng = np.random.default_rng([n_members, budget])
    probs = rng.dirichlet(np.ones(3), size=(40, n_members))
    labels = rng.integers(3, size=40)
    at = hc.ClassifierSet(probs).distinct.positions
    numbered = probs[:, at]

    def g(weights):
        return hc.measures.resolve(measure)(oracles.mixture(numbered, weights), labels)

    mean = np.full(n_members, 1 / n_members)
    chances = numbered[np.arange(40), :, labels]
    vertices = np.eye(n_members)
    ends = ends_of(g, [mean, *vertices, *((mean + vertices) / 2)], budget)
    found, weights = searched(probs, labels, measure, budget)
    in_order = sorted(ends, key=lambda end: end[1])
    smaller = in_order[: {2: 2, 4: 3}[n_members]]
    assert found.means[0] == pytest.approx(np.mean([value for _, value in smaller]), abs=1e-10)
    assert found.values[0] == pytest.approx(smaller[0][1], abs=1e-10)
    np.testing.assert_allclose(weights[at], smaller[0][0], atol=1e-9)
    # The data are searched further from there, and from weights of nearly maximum likelihood.
    further = ends_of(g, [few_em_steps(chances), *(end for end, _ in in_order[:6])], 60)
    search = {"max_evaluations": budget, "best_evaluations": 60}
    best = hc.minimize(probs, labels, measure=measure, minimizer=hc.minimizers.Steepest(**search))
    smallest = min(further, key=lambda end: end[1])
    assert best.value == pytest.approx(smallest[1], abs=1e-10)
    np.testing.assert_allclose(best.weights[at], smallest[0], atol=1e-9)


@cache
def forest(data, kind):
    load = {
        "digits": datasets.load_digits,
        "wine": datasets.load_wine,
        "cancer": datasets.load_breast_cancer,
    }[data]
    features, labels = load(return_X_y=True)
    order = np.random.default_rng(3).permutation(len(labels))
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    trees = kind(8, random_state=1).fit(features[train], labels[train]).estimators_
    return np.stack([tree.predict_proba(features[test]) for tree in trees], axis=1), labels[test]


FORESTS = [*itertools.product(("digits", "wine", "cancer"), (RandomForestClassifier,))]
FORESTS += [("wine", ExtraTreesClassifier), ("cancer", ExtraTreesClassifier)]


@pytest.mark.parametrize("measure", ORDER_FREE)
@pytest.mark.parametrize(("data", "kind"), FORESTS)
def test_no_order_of_rows_or_members_changes_what_is_found(data, kind, measure):
    probs, labels = forest(data, kind)
    if measure.startswith("skce") and data == "digits":
        probs, labels = probs[:200], labels[:200]
    found, weights = searched(probs, labels, measure, 10)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows, members = rng.permutation(len(labels)), rng.permutation(probs.shape[1])
        again, other = searched(probs[rows][:, members], labels[rows], measure, 10)
        assert again.means[0] == pytest.approx(found.means[0], abs=1e-9)
        assert again.values[0] == pytest.approx(found.values[0], abs=1e-9)
        np.testing.assert_allclose(other, weights[members], atol=1e-9)


def test_p_values_of_other_orders_differ_by_no_more_than_resampling_explains():
    probs, labels = forest("digits", RandomForestClassifier)
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows, members = rng.permutation(len(labels)), rng.permutation(probs.shape[1])
        given = probs[rows][:, members], labels[rows]
        test = hc.truth_test(*given, measure="ece_conf", n_resamples=199, rng=seed)
        found.append(test.pvalue)
    error = np.sqrt(np.mean(found) * (1 - np.mean(found)) / 199)
    assert np.ptp(found) <= 5 * error + 2 / 200


@pytest.mark.parametrize("budget", [None, 10, 40])
def test_a_test_and_a_search_name_the_same_weights_at_the_same_budget(budget):
    probs, labels = forest("wine", RandomForestClassifier)
    search = hc.minimizers.Steepest(max_evaluations=budget)
    options = {"minimizer": search, "n_resamples": 19, "alpha": 0.1, "rng": 0}
    test = hc.calibration_test(probs, labels, **options)
    found = hc.minimize(probs, labels, minimizer=search)
    np.testing.assert_array_equal(test.weights, found.weights)
    assert test.minimum == found.value
    assert test.minimum <= test.statistic
    best = hc.ClassifierSet(probs).mix(test.weights)
    assert hc.ConfidenceECE()(best, labels) == test.minimum


def test_of_many_members_the_ten_with_the_smallest_value_are_starts():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), size=(30, 35))
    labels = rng.integers(3, size=30)
    classifiers, classes = hc.ClassifierSet.with_labels(probs, labels)
    objective = packed(classifiers, classes, hc.ConfidenceECE())
    starts, numbers = hc.minimizers.Steepest().starts(objective)
    assert starts.shape == (1, 21, 35)
    alone = [hc.ConfidenceECE()(probs[:, m], labels) for m in classifiers.distinct.positions]
    np.testing.assert_array_equal(numbers[0, 1:11], np.argsort(alone, kind="stable")[:10])
    np.testing.assert_array_equal(starts[0, 1:11], np.eye(35)[numbers[0, 1:11]])
    np.testing.assert_allclose(starts[0, 11:], (np.eye(35)[numbers[0, 1:11]] + 1 / 35) / 2)
    # All members once, eleven starts with all moves, ten with those towards others, and an end once more
    # if it is not where it began.
    found, weights = searched(probs, labels, "ece_conf", 10)
    expected = 35 + 11 * (1 + 2 * 35) + 10 * (1 + 34)
    assert expected <= found.n_evaluations[0] <= expected + 21
    assert weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise"])
def test_no_start_loses_what_it_had_where_rounding_decides_ties(measure):
    # In quarters and eighths rows lie on edges and classes tie, whatever the weights: a move, which
    # shifts mixed predictions, may promise a value that its end, mixed afresh, does not have.
    for seed in range(60):
        rng = np.random.default_rng(seed)
        unit = (4, 8)[seed % 2]
        probs = rng.multinomial(unit, np.full(3, 1 / 3), size=(12, 3)) / unit
        labels = rng.integers(3, size=12)
        options = {"measure": measure, "null": "recentered", "n_resamples": 1, "alpha": 0.5}
        test = hc.calibration_test(probs, labels, rng=0, **options)
        assert test.minimum <= test.statistic
        g, classifiers = hc.measures.resolve(measure), hc.ClassifierSet(probs)
        assert g(classifiers.mix(test.weights), labels) == pytest.approx(test.minimum, abs=1e-12)
        starts = [np.eye(3)[m] for m in range(3)] + [np.full(3, 1 / 3)]
        assert test.minimum <= min(g(classifiers.mix(start), labels) for start in starts) + 1e-12


@pytest.mark.parametrize(("n_samples", "n_classes"), [(100, 2), (100, 4)])
def test_no_order_of_rows_or_classes_changes_what_is_found_for_three_that_vote(
    n_samples, n_classes
):
    # Two of three that disagree with the others equally often are told apart by the classes they name.
    for seed in range(30):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, n_classes, n_samples)
        guesses = rng.integers(0, n_classes, (n_samples, 3))
        votes = np.where(rng.random((n_samples, 3)) < 0.7, labels[:, np.newaxis], guesses)
        probs, rows = np.eye(n_classes)[votes], rng.permutation(n_samples)
        classes = rng.permutation(n_classes)
        found, weights = searched(probs, labels, "ece_cwise", 10)
        renamed = np.eye(n_classes)[classes[votes]]
        for again, other in (
            searched(probs[rows], labels[rows], "ece_cwise", 10),
            searched(renamed, classes[labels].astype(np.int32), "ece_cwise", 10),
        ):
            assert again.means[0] == pytest.approx(found.means[0], abs=1e-9)
            np.testing.assert_allclose(other, weights, atol=1e-9)


@pytest.mark.filterwarnings("ignore:6 rows are fewer")
@pytest.mark.parametrize("seed", [23, *range(10)])
def test_of_ends_that_tie_none_is_larger_than_the_statistic(seed):
    # With seed 23 the ends of the second search are larger than those of the first by a rounding.
    rng = np.random.default_rng(seed)
    probs = rng.multinomial(3, [0.5, 0.5], size=(6, 3)) / 3
    options = {"measure": "ece_cwise", "null": "recentered", "n_resamples": 1, "alpha": 0.5}
    test = hc.calibration_test(probs, rng.integers(2, size=6), rng=0, **options)
    assert test.minimum <= test.statistic


@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise", "hl_cwise"])
@pytest.mark.parametrize("unit", [5, 10])
def test_no_order_of_rows_changes_what_is_found_on_the_edges_of_bins(measure, unit):
    # Members agree on many entries, which lie on edges whatever the weights.
    for seed in range(8):
        rng = np.random.default_rng([unit, seed])
        probs = rng.multinomial(unit, np.full(3, 1 / 3), size=(60, 3)) / unit
        probs[::2, 1:] = probs[::2, :1]
        labels = rng.integers(3, size=60)
        found = hc.minimize(probs, labels, measure=measure)
        for _ in range(3):
            rows = rng.permutation(60)
            again = hc.minimize(probs[rows], labels[rows], measure=measure)
            assert again.value == pytest.approx(found.value, abs=1e-9)
            np.testing.assert_allclose(again.weights, found.weights, atol=1e-6)

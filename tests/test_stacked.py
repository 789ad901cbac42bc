"""The null `stacked`: its model of the labels, its worlds, and the largest of their p-values."""

import numpy as np
import pytest
from scipy.optimize import minimize

import hullcal as hc
import oracles
from hullcal._compiled.streams import key_of
from hullcal.engines.local import packed_problem
from hullcal.measures import resolve
from hullcal.nulls._pool import _FLOOR, _RIDGE, pooled
from hullcal.nulls._single import of_combination
from hullcal.nulls._worlds import World
from hullcal.pvalues import monte_carlo
from hullcal.sets import ClassifierSet


def problem_of(probs, labels, measure="ece_conf"):
    classifiers, truth = ClassifierSet.with_labels(probs, labels)
    return packed_problem(classifiers, truth, resolve(measure))


def a_set(seed=0, n=200, m=3, k=4, spread=1.0):
    return oracles.scenario_s1(np.random.default_rng(seed), n, m, k, spread)


def literal_pool(members, average, labels):
    """The penalised likelihood of the pool, written out and given to a general optimiser.

    members (N, M, K), average (N, K); features are scaled to unit root mean square, as the penalty
    is on coefficients of such features.
    """
    n = len(labels)
    base = np.log(np.maximum(average, _FLOOR))
    features = [np.log(np.maximum(members[:, j], _FLOOR)) - base for j in range(members.shape[1])]
    features.append(base)
    features = [f - f.mean(axis=1, keepdims=True) for f in features]
    features = [f / np.sqrt((f**2).mean()) for f in features]

    def probabilities(beta):
        scores = base + sum(b * f for b, f in zip(beta, features, strict=True))
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def loss(beta):
        chosen = probabilities(beta)[np.arange(n), labels]
        return -np.log(chosen).sum() + 0.5 * _RIDGE * (beta**2).sum()

    found = minimize(loss, np.zeros(len(features)), method="BFGS", options={"gtol": 1e-7})
    return probabilities(found.x)


def test_the_pool_is_the_maximum_of_its_penalised_likelihood():
    probs, labels = a_set()
    objective = problem_of(probs, labels).objective
    average = objective.mixed(objective.maximum_likelihood())
    expected = literal_pool(objective.members.transpose(2, 0, 1), average.T, objective.labels[0])
    np.testing.assert_allclose(pooled(objective, average).T, expected, atol=1e-5)


def test_the_pool_learns_that_all_members_are_too_sure():
    rng = np.random.default_rng(3)
    truth = rng.dirichlet(np.ones(3), size=4000)
    sharp = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    noise = rng.dirichlet(np.ones(3), size=4000)
    probs = np.stack([sharp, 0.9 * sharp + 0.1 * noise], axis=1)
    labels = oracles.draw_labels(rng, truth)
    problem = problem_of(probs, labels)
    objective = problem.objective
    average = objective.mixed(objective.maximum_likelihood())
    error = np.abs(pooled(objective, average).T - truth).mean()
    assert error < 0.25 * np.abs(average.T - truth).mean()


def test_many_rows_are_fitted_by_some_of_them_and_all_are_predicted():
    probs, labels = a_set(n=25_000, m=2, k=2)
    objective = problem_of(probs, labels).objective
    model = pooled(objective, objective.mixed(np.array([0.5, 0.5])))
    assert model.shape == (2, 25_000)
    np.testing.assert_allclose(model.sum(axis=0), 1.0)


def a_world(seed=0, n=400, k=4):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(k), size=(2, n))
    return World.of(np.ascontiguousarray(p.T), np.ascontiguousarray((0.8 * p + 0.2 * q).T))


def test_the_departure_has_no_regression_on_the_predictions_left():
    world = a_world()
    p, r = world.calibrated, world.departure
    top = p == p.max(axis=0)
    for curve in (np.ones(p.shape), p, p**2, top, top * p, top * p**2):
        # Not exactly, for coming back to distributions undoes a little of it.
        assert abs((curve * r).mean()) < 1e-3
    np.testing.assert_allclose(r.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(r.sum(axis=1) / p.shape[1], 0.0, atol=1e-3)
    assert np.abs(r).mean() > 0.01


def test_labels_of_a_world_are_calibrated_and_still_know_more_than_the_predictions():
    world = a_world(n=300)
    n_draws = 4000
    labels = world.labels(key_of(1), 0, n_draws)
    frequency = np.stack([(labels == k).mean(axis=0) for k in range(4)])
    # Over rows of like predictions the labels come as often as these say ...
    for k in range(4):
        bins = np.digitize(world.calibrated[k], [0.2, 0.4])
        for j in range(3):
            gap = (frequency - world.calibrated)[k, bins == j].mean()
            assert abs(gap) < 0.01
    # ... and row by row they follow the model's departures, as far as the simplex has room.
    moved, wanted = frequency - world.calibrated, world.departure
    assert np.corrcoef(moved.ravel(), wanted.ravel())[0, 1] > 0.8


def test_a_model_that_says_nothing_beyond_the_predictions_leaves_them_alone():
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=50).T.copy()
    world = World.of(p, p)
    np.testing.assert_allclose(world.law(key_of(0), 5), p, atol=1e-12)


def test_what_the_calibrated_combination_excludes_never_happens():
    p = np.tile([[0.5], [0.5], [0.0]], (1, 80))
    q = np.tile([[0.3], [0.3], [0.4]], (1, 80)) + 0.1 * np.sin(np.arange(80)) * [[1], [0], [-1]]
    assert World.of(p, q).labels(key_of(2), 0, 50).max() == 1


def test_worlds_stay_calibrated_where_the_model_asks_for_more_than_the_simplex_has():
    # Far from p, and p often near its corners: half of all departures are cut.
    rng = np.random.default_rng(4)
    p, other = rng.dirichlet(np.full(4, 0.3), size=(2, 20_000))
    world = World.of(p.T.copy(), (0.5 * p + 0.5 * other).T.copy())
    law = np.mean([world.law(key_of(2), d) for d in range(5)], axis=0).T
    confidence, top = p.max(axis=1), p.argmax(axis=1)
    gap = law[np.arange(len(p)), top] - confidence
    for low in np.arange(0.3, 1.0, 0.1):
        some = (confidence >= low) & (confidence < low + 0.1)
        assert abs(gap[some].mean()) < 0.008
    for k in range(4):
        for low in np.arange(0.0, 1.0, 0.2):
            some = (p[:, k] >= low) & (p[:, k] < low + 0.2)
            assert abs((law - p)[some, k].mean()) < 0.004
    assert np.abs(world.departure).mean() > 0.02


def test_certain_predictions_leave_no_room_for_departures():
    p = np.eye(3)[np.arange(12) % 3].T.copy()
    q = np.random.default_rng(0).dirichlet(np.ones(3), size=12).T.copy()
    np.testing.assert_array_equal(World.of(p, q).law(key_of(0), 3), p)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_laws_are_distributions_even_next_to_zero(k):
    rng = np.random.default_rng(k)
    p = oracles.draw_dirichlet(rng, np.full((200, k), 0.02)).T.copy()
    q = rng.dirichlet(np.ones(k), size=200).T.copy()
    world = World.of(p, q)
    for d in range(20):
        law = world.law(key_of(7), d)
        assert (law >= 0).all()
        np.testing.assert_allclose(law.sum(axis=0), 1.0, atol=1e-9)


def test_labels_of_a_replicate_do_not_depend_on_the_block_it_is_in():
    world = a_world()
    together = world.labels(key_of(3), 0, 6)
    np.testing.assert_array_equal(together[4:], world.labels(key_of(3), 4, 6))
    assert (together[0] != world.labels(key_of(4), 0, 1)[0]).any()


def run(probs, labels, **options):
    options = {"null": "stacked", "n_resamples": 99, "rng": 5} | options
    return hc.calibration_test(probs, labels, **options)


def test_threads_do_not_change_the_result_and_seeds_do():
    probs, labels = a_set()
    one, two, other = run(probs, labels), run(probs, labels, n_jobs=2), run(probs, labels, rng=6)
    np.testing.assert_array_equal(one.null_distribution, two.null_distribution)
    assert (one.null_distribution != other.null_distribution).any()


def test_one_member_is_tested_as_refit_tests_it():
    probs, labels = a_set(m=1)
    stacked_result, refit = run(probs, labels), run(probs, labels, null="refit")
    np.testing.assert_array_equal(stacked_result.null_distribution, refit.null_distribution)


def test_a_measure_without_a_residual_vector_will_do():
    def brier(probs, labels):
        return float(((probs - np.eye(probs.shape[1])[labels]) ** 2).sum(axis=1).mean())

    probs, labels = a_set(n=30, m=2, k=2)
    search = hc.minimizers.Pairwise(max_evaluations=10)
    result = run(probs, labels, measure=brier, minimizer=search, n_resamples=9, alpha=0.2)
    assert 0 < result.pvalue <= 1


def test_labels_that_no_member_allows_are_rejected():
    probs = np.tile([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], (60, 1, 1))
    result = run(probs, np.full(60, 2), measure="hl_cwise")
    assert np.isinf(result.statistic)
    assert result.pvalue == 1 / 100


def test_the_statistic_and_weights_are_those_of_the_search():
    probs, labels = a_set()
    ours, refit = run(probs, labels), run(probs, labels, null="refit")
    assert ours.statistic == refit.statistic
    np.testing.assert_array_equal(ours.weights, refit.weights)
    assert ours.hypothesis == run(probs, labels, null="recentered").hypothesis


def test_progress_rises_to_the_number_of_resamples():
    probs, labels = a_set(n=60)
    told = []
    run(probs, labels, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (99, 99)


def test_the_exact_null_of_one_combination_is_that_of_the_resampling_test():
    probs, labels = a_set(n=40, m=2, k=3)
    problem = problem_of(probs, labels)
    mixed = problem.objective.mixed(np.array([0.3, 0.7]))
    statistic, null = of_combination(problem.objective, mixed, key_of(5), 99)
    classical = hc.classical.resampling_test(
        np.ascontiguousarray(mixed.T), labels, measure="ece_conf", n_resamples=99, rng=5
    )
    assert statistic == pytest.approx(classical.statistic)
    assert monte_carlo(statistic, null) == pytest.approx(classical.pvalue)

"""The null `stacked`: its model of the labels, its worlds, and the largest of their p-values."""

import numpy as np
import pytest
from scipy.optimize import minimize

import hullcal as hc
import oracles
from hullcal._compiled.streams import SIGNS, key_of, uniform
from hullcal.engines.local import packed_problem
from hullcal.measures import resolve
from hullcal.nulls._pool import _RIDGE, FLOOR, pooled
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
    base = np.log(np.maximum(average, FLOOR))
    features = [np.log(np.maximum(members[:, j], FLOOR)) - base for j in range(members.shape[1])]
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


def pool_of(probs, labels):
    """The pool around the likeliest combination, and that combination."""
    objective = problem_of(probs, labels).packed
    average = objective.mixed(objective.maximum_likelihood())
    return objective, average, pooled(objective.members, objective.labels[0], average)


def test_the_pool_is_the_maximum_of_its_penalised_likelihood():
    objective, average, model = pool_of(*a_set())
    expected = literal_pool(objective.members.transpose(2, 0, 1), average.T, objective.labels[0])
    np.testing.assert_allclose(model.T, expected, atol=1e-5)
    assert np.abs(model - average).max() > 0.01


def test_the_pool_does_not_depend_on_the_order_of_rows():
    objective, average, model = pool_of(*a_set())
    order = np.random.default_rng(1).permutation(objective.n_samples)
    again = pooled(
        np.ascontiguousarray(objective.members[:, :, order]),
        objective.labels[0][order],
        np.ascontiguousarray(average[:, order]),
    )
    np.testing.assert_allclose(again, model[:, order], rtol=0, atol=1e-9)


def test_the_pool_learns_that_all_members_are_too_sure():
    rng = np.random.default_rng(3)
    truth = rng.dirichlet(np.ones(3), size=4000)
    sharp = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    noise = rng.dirichlet(np.ones(3), size=4000)
    probs = np.stack([sharp, 0.9 * sharp + 0.1 * noise], axis=1)
    labels = oracles.draw_labels(rng, truth)
    _, average, model = pool_of(probs, labels)
    np.testing.assert_allclose(model.sum(axis=0), 1.0)
    assert np.abs(model.T - truth).mean() < 0.25 * np.abs(average.T - truth).mean()


def test_labels_that_no_member_allows_leave_the_pool_finite():
    probs = np.tile([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], (60, 1, 1))
    _, _, model = pool_of(probs, np.full(60, 2))
    assert np.isfinite(model).all()
    np.testing.assert_allclose(model.sum(axis=0), 1.0)


def rows_of(world):
    return np.repeat(np.arange(len(world.begins) - 1), np.diff(world.begins))


def smoother(world):
    """The matrix of the regression over entries: group means, then a ridge line for every class."""
    same = world.groups[:, None] == world.groups
    means = same / same.sum(axis=1)
    lines = np.zeros(means.shape)
    for k in np.unique(world.classes):
        own = np.flatnonzero(world.classes == k)
        design = np.stack([np.ones(len(own)), world.p[own]], axis=1)
        inverse = np.linalg.inv(design.T @ design + np.eye(2))
        lines[np.ix_(own, own)] = design @ inverse @ design.T
    return means + lines @ (np.eye(len(means)) - means)


def balanced(departure, p, rows):
    """Cut to [-p, p]; in every row the larger side is scaled down to the smaller one."""
    cut = np.clip(departure, -p, p)
    in_row = rows[:, None] == np.arange(rows[-1] + 1)
    up, down = np.maximum(cut, 0) @ in_row, np.maximum(-cut, 0) @ in_row
    smaller = np.minimum(up, down)
    with np.errstate(invalid="ignore"):
        shrink_up = np.where(up > 0, smaller / up, 0.0)
        shrink_down = np.where(down > 0, smaller / down, 0.0)
    return np.where(cut > 0, cut * shrink_up[..., rows], cut * shrink_down[..., rows])


def laws(p, world, key, n_replicates):
    """The law of each replicate's labels, (n_replicates, n_samples, n_classes); p is as wide."""
    rows = rows_of(world)
    signs = np.array(
        [[uniform(key, SIGNS, d, n, 0) for n in range(len(p))] for d in range(n_replicates)]
    )
    signed = np.where(signs < 0.5, -1.0, 1.0)[:, rows] * world.departure
    moved = balanced(world.departure + signed @ smoother(world).T, world.p, rows)
    law = np.repeat(p[np.newaxis], n_replicates, axis=0)
    law[:, rows, world.classes] += moved
    return law


def drawn(p, world, key, first, last):
    """Labels drawn from p and turned into labels of the world."""
    objective = problem_of(p[:, np.newaxis], np.zeros(len(p), dtype=int)).packed
    np.testing.assert_array_equal(objective.mixed(np.ones(1)).T, p)
    labels = objective.drawing_labels(np.ones(1), key)(first, last).labels
    untouched = labels.copy()
    world.turn(labels, key, first)
    return labels, untouched


def world_of(p, q):
    return World.of(np.ascontiguousarray(p.T), np.ascontiguousarray(q.T))


def predictions(seed, n, k, share=0.2, concentration=1.0):
    """Predictions and a model that says something else too."""
    rng = np.random.default_rng(seed)
    p, q = oracles.draw_dirichlet(rng, np.full((2 * n, k), concentration)).reshape(2, n, k)
    p /= p.sum(axis=1, keepdims=True)
    return p, (1 - share) * p + share * q


@pytest.mark.parametrize(("share", "concentration"), [(0.2, 1.0), (0.5, 1.0), (0.5, 0.3)])
def test_a_settled_departure_has_room_adds_up_to_nothing_and_no_regression(share, concentration):
    p, q = predictions(0, 400, 4, share, concentration)
    world = world_of(p, q)
    rows = rows_of(world)
    assert (np.abs(world.departure) <= world.p).all()
    np.testing.assert_allclose(np.bincount(rows, world.departure), 0.0, atol=1e-15)
    regression = smoother(world)
    at_first = np.abs(regression @ (q[rows, world.classes] - world.p)).mean()
    assert np.abs(regression @ world.departure).mean() < 1e-3 * at_first
    assert np.abs(world.departure).mean() > 0.01


def test_labels_follow_the_predictions_and_the_balanced_departure():
    p, q = predictions(1, 40, 4, 0.6)
    p[:6, 2] = 0.0  # which the model does not exclude
    p[6:12, 3] = q[6:12, 3] = 5e-5  # negligible for both
    p, q = (each / each.sum(axis=1, keepdims=True) for each in (p, q))
    world = world_of(p, q)
    assert len(world.p) == 160 - 6
    n_draws = 20_000
    law = laws(p, world, key_of(1), n_draws)
    assert law.min() >= 0.0
    np.testing.assert_allclose(law.sum(axis=2), 1.0, atol=1e-12)
    labels, untouched = drawn(p, world, key_of(1), 0, n_draws)
    frequency = np.stack([(labels == k).sum(axis=0) for k in range(4)], axis=1)
    spread = np.sqrt((law * (1 - law)).sum(axis=0))
    some = spread > 0
    errors = (frequency - law.sum(axis=0))[some] / spread[some]
    assert np.abs(errors).max() < 4.5
    assert 0.7 < (errors**2).mean() < 1.3
    assert (frequency[~some] == 0).all()
    # What both call negligible is left alone.
    np.testing.assert_array_equal((labels == 3)[:, 6:12], (untouched == 3)[:, 6:12])
    # The bounds would tell these laws from p.
    assert (np.abs(n_draws * p - law.sum(axis=0))[some] > 10 * spread[some]).mean() > 0.4
    hits = np.take_along_axis(law, labels[..., None].astype(int), axis=2)[..., 0]
    expected, variance = (law**2).sum(axis=2), (law**3).sum(axis=2) - (law**2).sum(axis=2) ** 2
    assert abs((hits - expected).sum()) < 4.5 * np.sqrt(variance.sum())


def test_every_replicate_has_a_law_of_its_own():
    # Where the law of a replicate differs from the mean law, its labels do.
    p, q = predictions(2, 40, 3, 0.8)
    world = world_of(p, q)
    n_draws = 20_000
    law = laws(p, world, key_of(2), n_draws)
    labels, _ = drawn(p, world, key_of(2), 0, n_draws)
    by_chance = law - law.mean(axis=0)
    chosen = np.take_along_axis(by_chance, labels[..., None].astype(int), axis=2)[..., 0]
    expected = (law * by_chance).sum()
    spread = np.sqrt(((law * by_chance**2).sum(axis=2) - (law * by_chance).sum(axis=2) ** 2).sum())
    assert abs(chosen.sum() - expected) < 4.5 * spread
    assert expected > 10 * spread


def test_labels_of_a_world_are_calibrated_and_still_know_more_than_the_predictions():
    p, q = predictions(0, 300, 4)
    world = world_of(p, q)
    labels, _ = drawn(p, world, key_of(1), 0, 4000)
    moved = np.stack([(labels == k).mean(axis=0) for k in range(4)], axis=1) - p
    # Over rows of like predictions the labels come as often as these say ...
    for k in range(4):
        bins = np.digitize(p[:, k], [0.2, 0.4])
        for j in range(3):
            assert abs(moved[bins == j, k].mean()) < 0.01
    # ... and row by row they follow the model's departures.
    wanted = np.zeros(p.shape)
    wanted[rows_of(world), world.classes] = world.departure
    assert np.corrcoef(moved.ravel(), wanted.ravel())[0, 1] > 0.8


def test_worlds_stay_calibrated_where_the_model_asks_for_more_than_the_simplex_has():
    # Far from p, and p often near its corners: half of all departures are cut.
    p, q = predictions(4, 20_000, 4, 0.5, 0.3)
    world = world_of(p, q)
    departure = np.zeros(p.shape)
    departure[rows_of(world), world.classes] = world.departure
    confidence, top = p.max(axis=1), p.argmax(axis=1)
    gap = departure[np.arange(len(p)), top]
    for low in np.arange(0.3, 1.0, 0.1):
        some = (confidence >= low) & (confidence < low + 0.1)
        assert abs(gap[some].mean()) < 0.008
    for k in range(4):
        for low in np.arange(0.0, 1.0, 0.2):
            some = (p[:, k] >= low) & (p[:, k] < low + 0.2)
            assert abs(departure[some, k].mean()) < 0.004
    assert np.abs(departure).mean() > 0.02


def test_a_model_that_says_nothing_beyond_the_predictions_leaves_them_alone():
    p, _ = predictions(0, 50, 3)
    labels, untouched = drawn(p, world_of(p, p), key_of(0), 0, 50)
    np.testing.assert_array_equal(labels, untouched)


def test_what_the_calibrated_combination_excludes_never_happens():
    p = np.tile([0.5, 0.5, 0.0], (80, 1))
    turned = 0.1 * np.sin(np.arange(80))[:, None]
    q = np.tile([0.3, 0.3, 0.4], (80, 1)) + turned * [1, -0.5, -0.5]
    labels, untouched = drawn(p, world_of(p, q), key_of(2), 0, 200)
    assert labels.max() == 1
    assert (labels != untouched).any()


def test_certain_predictions_leave_no_room_for_departures():
    p = np.eye(3)[np.arange(12) % 3]
    q = np.random.default_rng(0).dirichlet(np.ones(3), size=12)
    world = world_of(p, q)
    np.testing.assert_array_equal(world.departure, 0.0)
    labels, _ = drawn(p, world, key_of(0), 0, 30)
    assert (labels == np.arange(12) % 3).all()


@pytest.mark.parametrize("k", [2, 3, 10, 60])
def test_labels_are_possible_even_next_to_zero(k):
    rng = np.random.default_rng(k)
    p = oracles.draw_dirichlet(rng, np.full((200, k), 0.02))
    p[p < 1e-3] = 0.0
    p /= p.sum(axis=1, keepdims=True)
    q = rng.dirichlet(np.ones(k), size=200)
    labels, _ = drawn(p, world_of(p, q), key_of(7), 0, 20)
    assert (p[np.arange(200), labels] > 0).all()


def test_labels_of_a_replicate_do_not_depend_on_the_block_it_is_in():
    p, q = predictions(0, 400, 4)
    world = world_of(p, q)
    together, _ = drawn(p, world, key_of(3), 0, 6)
    np.testing.assert_array_equal(together[4:], drawn(p, world, key_of(3), 4, 6)[0])
    assert (together[0] != drawn(p, world, key_of(4), 0, 1)[0]).any()


def run(probs, labels, **options):
    options = {"null": "stacked", "n_resamples": 99, "rng": 5} | options
    return hc.calibration_test(probs, labels, **options)


def test_threads_do_not_change_the_result_and_seeds_do():
    probs, labels = a_set()
    one, two, other = run(probs, labels), run(probs, labels, n_jobs=2), run(probs, labels, rng=6)
    np.testing.assert_array_equal(one.null_distribution, two.null_distribution)
    assert (one.null_distribution != other.null_distribution).any()


def test_seeds_change_the_p_value_by_no_more_than_resampling_does():
    probs, labels = a_set(2, n=80)
    results = [run(probs, labels, rng=seed, n_resamples=199) for seed in range(10)]
    pvalues = np.array([each.pvalue for each in results])
    assert len({each.statistic for each in results}) == 1
    mean = pvalues.mean()
    assert 0.05 < mean < 0.95
    assert np.abs(pvalues - mean).max() < 3.5 * np.sqrt(mean * (1 - mean) / 199)


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
    assert told == sorted(set(told))
    assert told[-1] == (99, 99)
    assert told[0][0] > 0


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

"""The null `stacked`: its model of the labels, its worlds, and the largest of their p-values."""

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal._compiled.streams import SIGNS, key_of, uniform
from hullcal.algorithm import lines_1_to_5
from hullcal.minimizers import Pairwise, Steepest
from hullcal.nulls import stacked
from hullcal.nulls.stacked import _PRIOR, FLOOR, World, pooled, turn
from hullcal.resampling import Loop, kept_in
from simulation import objective_of, random_set

SEED = 5
KEY = key_of(SEED)


# The pool


def pool_of(probs, labels):
    """The objective, its likeliest combination, and the pool around that."""
    objective = objective_of(probs, labels)
    average = objective.mixed(objective.maximum_likelihood())
    return objective, average, pooled(objective.members, objective.labels[0], average)


def test_the_pool_is_the_maximum_of_its_penalised_likelihood():
    """The likelihood is concave, so that the only maximum is where the gradient is 0."""
    objective, average, model = pool_of(*random_set(13, 60, 2, 3))
    base = np.log(np.maximum(average, FLOOR))
    features = [np.log(np.maximum(member, FLOOR)) - base for member in objective.members]
    features = np.stack([*features, base])
    features -= features.mean(axis=1, keepdims=True)
    features /= np.sqrt((features**2).mean(axis=(1, 2)))[:, None, None]
    # The coefficients follow from the logarithms of the model, which are linear in them.
    moved = np.log(model) - base
    moved -= moved.mean(axis=0)
    fitted, misfit, *_ = np.linalg.lstsq(features.reshape(3, -1).T, moved.ravel())
    np.testing.assert_allclose(misfit, 0.0, atol=1e-20)
    observed = np.eye(3)[objective.labels[0]].T
    gradient = np.tensordot(features, observed - model, axes=2) - _PRIOR * fitted
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)
    assert np.abs(fitted).max() > 0.1


@pytest.mark.parametrize("held", [1, 6 * 7, 6 * 60])
def test_the_pool_is_fitted_to_all_rows_whatever_is_held_at_a_time(held, monkeypatch):
    objective, average, expected = pool_of(*random_set(17, 60, 2, 3))
    # Two members of three classes are six numbers a row.
    monkeypatch.setattr(stacked, "_HELD", held)
    sizes = [rows.stop - rows.start for rows, *_ in stacked._logarithms(objective.members, average)]
    assert sum(sizes) == 60
    assert max(sizes) == max(1, held // 6)
    again = pooled(objective.members, objective.labels[0], average)
    np.testing.assert_allclose(again, expected, atol=1e-9)


# Worlds


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
    objective = objective_of(p[:, np.newaxis], np.zeros(len(p), dtype=int))
    np.testing.assert_array_equal(objective.mixed(np.ones(1)).T, p)
    labels = objective.drawing_labels(np.ones(1), key)(first, last).labels
    untouched = labels.copy()
    turn(labels, key, first, *world)
    return labels, untouched


def world_of(p, q):
    return World.of(np.ascontiguousarray(p.T), np.ascontiguousarray(q.T))


def predictions(seed, n, k, share=0.2, concentration=1.0):
    """Predictions and a model that says something else too."""
    rng = np.random.default_rng(seed)
    p, q = oracles.draw_dirichlet(rng, np.full((2 * n, k), concentration)).reshape(2, n, k)
    p /= p.sum(axis=1, keepdims=True)
    return p, (1 - share) * p + share * q


def a_world():
    """Predictions, a model (both with entries that are negligible), and the world of them."""
    p, q = predictions(1, 70, 3, 1.0, 0.5)
    p[:20, 0] = q[:20, 0] = 5e-5
    p[20:30, 1] = 5e-5
    p, q = (each / each.sum(axis=1, keepdims=True) for each in (p, q))
    return p, q, world_of(p, q)


def test_entries_are_what_is_not_negligible_in_predictions_or_model():
    p, q, world = a_world()
    expected = [(n, k) for n in range(70) for k in range(3) if max(p[n, k], q[n, k]) >= FLOOR]
    assert 185 < len(expected) < 210
    assert list(zip(rows_of(world), world.classes, strict=True)) == expected
    np.testing.assert_array_equal(world.p, p[rows_of(world), world.classes])


def test_groups_are_cut_at_quantiles_into_at_most_twenty_of_twenty():
    p = np.random.default_rng(0).permutation(np.arange(1000) / 1000)
    groups = stacked._groups(p)
    np.testing.assert_array_equal(np.bincount(groups), np.full(20, 50))
    assert (np.diff(groups[np.argsort(p)]) >= 0).all()
    assert stacked._groups(np.arange(59) / 59).max() == 1
    assert stacked._groups(np.arange(60) / 60).max() == 2
    assert set(stacked._groups(np.arange(5) / 5)) == {0}


def test_predicted_classes_have_groups_of_their_own():
    p, _, world = a_world()
    predicted = world.classes == p.argmax(axis=1)[rows_of(world)]
    assert not set(world.groups[predicted]) & set(world.groups[~predicted])
    for kind in (predicted, ~predicted):
        literal = stacked._groups(world.p[kind])
        np.testing.assert_array_equal(world.groups[kind] - world.groups[kind].min(), literal)


def test_a_balanced_departure_has_room_and_adds_up_to_nothing():
    # By hand. First row: 0.4 is cut to 0.2 and scaled to the 0.15 of the others; second: 0.4 to 0.1.
    for departure, room, expected in (
        ([0.4, -0.1, -0.05], [0.2, 0.3, 0.5], [0.15, -0.1, -0.05]),
        ([0.1, -0.4, 0.3], [0.5, 0.5, 0.0], [0.1, -0.1, 0.0]),
        ([0.0, 0.0], [1.0, 1.0], [0.0, 0.0]),
        ([0.3, 0.2], [0.5, 0.5], [0.0, 0.0]),
    ):
        row = np.array(departure)
        stacked._balance(row, np.array(room))
        np.testing.assert_allclose(row, expected, atol=1e-15)


def test_a_departure_is_settled_by_turns():
    _, q, world = a_world()
    rows, regression = rows_of(world), smoother(world)
    expected = q[rows, world.classes] - world.p
    for _ in range(12):
        expected = balanced(expected - regression @ expected, world.p, rows)
    np.testing.assert_allclose(world.departure, expected, atol=1e-12)


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
    p[:20] = np.eye(3)[np.arange(20) % 3]  # certain: no room for a departure
    turned = 0.1 * np.sin(np.arange(80))[:, None]
    q = np.tile([0.3, 0.3, 0.4], (80, 1)) + turned * [1, -0.5, -0.5]
    world = world_of(p, q)
    labels, untouched = drawn(p, world, key_of(2), 0, 200)
    assert (p[np.arange(80), labels] > 0).all()
    assert (labels != untouched).any()
    assert (world.departure[rows_of(world) < 20] == 0.0).all()


def test_labels_of_a_replicate_do_not_depend_on_the_block_it_is_in():
    p, q = predictions(0, 400, 4)
    world = world_of(p, q)
    together, _ = drawn(p, world, key_of(3), 0, 6)
    np.testing.assert_array_equal(together[4:], drawn(p, world, key_of(3), 4, 6)[0])
    assert (together[0] != drawn(p, world, key_of(4), 0, 1)[0]).any()


# The largest p-value


def run(objective, search, n_resamples, **options):
    """What the search finds, null values and evaluations."""
    best = search.minimize(objective, KEY, of_data=True)
    loop = Loop(n_resamples=n_resamples, seed=SEED, **options)
    return best, *lines_1_to_5(objective, best, hc.nulls.Stacked(), search, loop)


def step_by_step(objective, search, n_resamples):
    """The centres of the worlds and the null values of each."""
    labels, vertices = objective.labels[0], np.eye(objective.n_members)
    likeliest = objective.maximum_likelihood()
    model = pooled(objective.members, labels, objective.mixed(likeliest))
    alone = [hc.ConfidenceECE()(objective.members[m].T, labels) for m in range(len(vertices))]
    mean = vertices.mean(axis=0)
    best = search.minimize(objective, KEY, of_data=True).weights[0]
    centres = {tuple(each): each for each in (best, likeliest, mean, vertices[np.argmin(alone)])}
    values = []
    for weights in centres.values():
        drawn = objective.drawing_labels(weights, KEY)(0, n_resamples).labels
        turn(drawn, KEY, 0, *World.of(objective.mixed(weights), model))
        values.append(search.minimize(objective.with_labels(drawn), KEY).means)
    return list(centres.values()), values


@pytest.mark.parametrize(("seed", "winner"), [(0, 0), (2, 1), (3, 1), (5, 2), (1, 3)])
def test_the_largest_p_value_of_the_centres_counts(seed, winner):
    objective = objective_of(*random_set(seed, 40, 3, 3))
    search = Steepest(max_evaluations=10, best_evaluations=10)
    best, found, _ = run(objective, search, 39)
    centres, values = step_by_step(objective, search, 39)
    assert len(centres) == 4
    exceedances = [(each >= best.means[0] - 1e-12).sum() for each in values]
    assert np.argmax(exceedances) == winner
    np.testing.assert_array_equal(found, values[winner])


def test_stacked_counts_the_evaluations_of_all_searches():
    objective, once = objective_of(*random_set(16, 20, 3, 3)), Pairwise(max_evaluations=1)
    # A search is one evaluation, of two replicates in every world. It ends where it begins, at the
    # mean, which is one centre and not two.
    assert len(step_by_step(objective, once, 2)[0]) == 3
    assert run(objective, once, 2)[2] == 2 * 3


def test_a_journal_keeps_every_world_apart(tmp_path):
    objective = objective_of(*random_set(16, 20, 3, 3))
    search = Steepest(max_evaluations=5, best_evaluations=5)
    _, alone, spent = run(objective, search, 4)
    for _ in range(2):
        with kept_in(tmp_path / "here", {"seed": 5}) as journal:
            _, found, evaluations = run(objective, search, 4, journal=journal)
        np.testing.assert_array_equal(found, alone)
        assert evaluations == spent

"""The steps of the nulls one by one, on cases so small that they can be written out."""

from itertools import pairwise

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal import InvalidInputError
from hullcal._compiled.resampling import leaf_draws
from hullcal._compiled.streams import LABELS, ROWS, key_of, uniform, uniform_weights
from hullcal.engines import local
from hullcal.engines.local import packed_problem
from hullcal.io.journal import Journal
from hullcal.measures import resolve
from hullcal.minimizers import Pairwise, Steepest
from hullcal.nulls import _journal, _pool, _worlds, maximized, paper, stacked
from hullcal.nulls._base import Replicates, Resampling, found
from hullcal.nulls._single import of_combination
from hullcal.nulls.paper import _line_2
from hullcal.sets import ClassifierSet

SEED = 5
KEY = key_of(SEED)
ONCE = Pairwise(max_evaluations=1)


def a_set(seed, n, m, k):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k), size=(n, m)), rng.integers(k, size=n)


def problem_of(probs, labels, measure="ece_conf"):
    return packed_problem(*ClassifierSet.with_labels(probs, labels), resolve(measure))


def seen_by_a_measure(probs, labels, **options):
    """All (predictions, labels) at which a test evaluates its measure, in order; g is always 0."""
    seen = []

    def spy(mixed, drawn):
        seen.append((mixed, drawn))
        return 0.0

    result = hc.calibration_test(probs, labels, measure=spy, rng=SEED, alpha=0.5, **options)
    return seen, result


def labels_at(levels, probs):
    """The class whose share of [0, 1) the level falls into."""
    running = np.cumsum(probs, axis=1)
    return (running[:, :-1] <= np.asarray(levels)[:, None] * running[:, -1:]).sum(axis=1)


def levels_of(replicate, rows):
    """The number of each row's copy."""
    seen, out = {}, []
    for row in rows:
        out.append(uniform(KEY, LABELS, replicate, row, seen.get(row, 0)))
        seen[row] = seen.get(row, 0) + 1
    return out


# paper


def test_a_replicate_of_the_paper_is_lines_2_to_5():
    probs, labels = a_set(0, 5, 2, 3)
    seen, result = seen_by_a_measure(probs, labels, null="paper", n_resamples=12, minimizer=ONCE)
    drawn = set()
    for d, (mixed, y) in enumerate(seen[:12]):
        weights = np.empty(2)
        uniform_weights(KEY, d, weights)
        # Members stand in the order of their predictions.
        order = np.argsort(probs[0, :, 0])
        combined = np.einsum("m,nmk->nk", weights, probs[:, order])
        distance = np.abs(mixed[:, None] - combined[None]).max(axis=2)
        rows = distance.argmin(axis=1)
        assert distance.min(axis=1).max() < 1e-14
        np.testing.assert_array_equal(y, labels_at(levels_of(d, rows), mixed))
        drawn.add(tuple(rows))
    assert len(drawn) == 12
    assert result.n_evaluations == 13
    assert len(seen) == 13
    np.testing.assert_array_equal(seen[12][1], labels)


@pytest.mark.parametrize("rows", ["resampled", "permuted"])
def test_a_pass_over_rows_has_the_replicates_of_predictions_in_memory(rows, monkeypatch):
    probs, labels = a_set(2, 12, 3, 3)
    # A search that passes over rows, too.
    search = Steepest(max_evaluations=1)
    options = {
        "null": hc.nulls.Paper(rows=rows),
        "minimizer": search,
        "n_resamples": 5,
        "rng": SEED,
    }
    # The passes come first, so that no weights of the other way are left where theirs will be.
    with monkeypatch.context() as patch:
        patch.setattr(local, "_MANY_ROWS", 0)
        patch.setattr(local, "_LARGE", 0)
        patch.setattr(local, "packed_problem", None)
        there = hc.calibration_test(probs, labels, alpha=0.5, **options)
    here = hc.calibration_test(probs, labels, alpha=0.5, **options)
    np.testing.assert_allclose(there.null_distribution, here.null_distribution, rtol=0, atol=1e-12)


def test_only_where_order_matters_are_rows_drawn_in_any_order():
    n = 1100  # more than a leaf
    rows, levels = np.empty(n, dtype=np.uint32), np.empty(n)
    draws = leaf_draws(KEY, np.arange(1), n)[0]
    _line_2(KEY, 0, paper._RESAMPLE, draws, rows, levels)
    first = int(draws[0])
    assert rows[:first].max() < 1024 <= rows[first:].min()
    _line_2(KEY, 0, paper._RESAMPLE_IN_ANY_ORDER, draws, rows, levels)
    assert rows[:first].max() >= 1024


def test_permuted_rows_are_shuffled_by_fisher_and_yates():
    probs, labels = a_set(1, 6, 1, 3)
    null = hc.nulls.Paper(rows="permuted")
    seen, _ = seen_by_a_measure(probs, labels, null=null, n_resamples=6)
    for d, (mixed, _) in enumerate(seen[:6]):
        rows = list(range(6))
        for n in (5, 4, 3, 2, 1):
            other = int(uniform(KEY, ROWS, d, n, 1) * (n + 1))
            rows[n], rows[other] = rows[other], rows[n]
        np.testing.assert_allclose(mixed, probs[rows, 0], atol=1e-15)
    with pytest.raises(InvalidInputError, match="`rows`"):
        hc.nulls.Paper(rows="sorted")


def test_copies_of_a_member_get_the_weights_of_all_of_them():
    probs, labels = a_set(2, 4, 2, 2)
    three = probs[:, [0, 1, 0]]
    null = hc.nulls.Paper(rows="permuted")
    seen, _ = seen_by_a_measure(three, labels, null=null, n_resamples=5, minimizer=ONCE)
    copies = [2, 1] if probs[0, 0, 0] < probs[0, 1, 0] else [1, 2]
    members = probs if copies[0] == 2 else probs[:, ::-1]
    for d, (mixed, _) in enumerate(seen[:5]):
        simplex = np.empty(3)
        uniform_weights(KEY, d, simplex)
        weights = np.array([simplex[: copies[0]].sum(), simplex[copies[0] :].sum()])
        combined = np.einsum("m,nmk->nk", weights, members)
        assert np.abs(np.sort(mixed[:, 0]) - np.sort(combined[:, 0])).max() < 1e-14


def test_the_value_of_a_replicate_is_the_measure_of_what_was_drawn():
    probs, labels = a_set(3, 11, 2, 3)
    options = {"null": "paper", "n_resamples": 5, "minimizer": ONCE}
    seen, _ = seen_by_a_measure(probs, labels, **options)
    for measure in ("ece_cwise", "skce_ul"):
        result = hc.calibration_test(probs, labels, measure=measure, rng=SEED, alpha=0.5, **options)
        expected = [getattr(oracles, measure)(mixed, y) for mixed, y in seen[:5]]
        np.testing.assert_allclose(result.null_distribution, expected, atol=1e-13)
        observed = hc.minimize(probs, labels, measure=measure, minimizer=ONCE, rng=SEED)
        assert result.statistic == observed.value
        assert result.converged == observed.converged
        np.testing.assert_array_equal(result.weights, observed.weights)


# refit and recentered


def test_refit_draws_labels_of_fixed_rows_from_the_likeliest_combination():
    probs, labels = a_set(4, 8, 2, 3)
    seen, result = seen_by_a_measure(
        probs, labels, null="refit", n_resamples=4, minimizer=ONCE, n_jobs=1
    )
    likeliest = oracles.mixture(probs, oracles.em_weights(probs, labels))
    for d, (_, y) in enumerate(seen[1:]):
        levels = [uniform(KEY, LABELS, d, n, 0) for n in range(8)]
        np.testing.assert_array_equal(y, labels_at(levels, likeliest))
    assert result.n_evaluations == len(seen) == 5
    assert result.hypothesis == "the convex hull of the members contains the truth"


@pytest.mark.parametrize("null", ["recentered", "stacked"])
def test_one_member_is_tested_by_labels_drawn_from_it(null):
    probs, labels = a_set(6, 12, 1, 3)
    options = {"n_resamples": 9, "rng": SEED, "alpha": 0.2}
    expected = hc.calibration_test(probs, labels, null="refit", **options)
    result = hc.calibration_test(probs, labels, null=null, **options)
    np.testing.assert_array_equal(result.null_distribution, expected.null_distribution)
    assert result.statistic == expected.statistic
    assert result.n_evaluations == expected.n_evaluations == 10
    assert result.notes == ()


def test_the_minimum_of_a_recentered_replicate_is_that_of_its_residuals():
    probs, labels = a_set(7, 10, 2, 3)
    problem = problem_of(probs, labels, hc.ConfidenceECE(n_bins=3))
    resampling = Resampling(n_resamples=4, key=KEY)
    search = Pairwise(max_evaluations=20)
    outcome = hc.nulls.Recentered().run(problem, search, resampling)
    objective = problem.objective
    centered = objective.recentered(outcome.weights)
    again = search.minimize(centered.drawing_rows(KEY)(0, 4), KEY)
    np.testing.assert_array_equal(outcome.distribution, again.values)
    # Made exactly calibrated, the best combination has nothing left on the data themselves.
    assert centered.at(outcome.weights)[0] == pytest.approx(0.0, abs=1e-14)
    data = search.minimize(objective, KEY)
    assert outcome.statistic == data.values[0]
    assert outcome.n_evaluations == data.n_evaluations.sum() + again.n_evaluations.sum()
    assert outcome.converged == data.converged[0]


def test_an_infinite_statistic_is_tested_by_labels_of_the_likeliest_combination():
    probs, labels = a_set(8, 8, 2, 3)
    probs[0] = [1.0, 0.0, 0.0]
    labels[0] = 2
    options = {
        "measure": hc.HosmerLemeshow(n_bins=8),
        "minimizer": Pairwise(max_evaluations=5),
        "n_resamples": 4,
        "rng": SEED,
        "alpha": 0.2,
    }
    probs[1:, :, 2] += 1.0
    probs /= probs.sum(axis=2, keepdims=True)
    result = hc.calibration_test(probs, labels, null="recentered", **options)
    expected = hc.calibration_test(probs, labels, null="refit", **options)
    assert np.isinf(result.statistic)
    np.testing.assert_array_equal(result.null_distribution, expected.null_distribution)


@pytest.mark.parametrize(("n_bins", "noted"), [(10, True), (1, False)])
def test_the_note_of_recentered_states_the_share_of_noise(n_bins, noted):
    probs, _ = a_set(9, 12, 2, 12)
    labels = labels_at(np.random.default_rng(0).random(12), probs.mean(axis=1))
    problem = problem_of(probs, labels, hc.ClasswiseECE(n_bins=n_bins))
    outcome = hc.nulls.Recentered().run(problem, ONCE, Resampling(n_resamples=2, key=KEY))
    objective, best = problem.objective, outcome.weights
    by_rows = objective.recentered(best).drawing_rows(KEY)(0, 40).at(best)
    by_labels = objective.drawing_labels(best, KEY)(0, 40).at(best)
    short = by_labels.mean() - by_rows.mean() > 1.5 * by_labels.std()
    assert short == noted
    assert len(outcome.notes) == int(noted)
    if noted:
        share = by_rows.mean() / by_labels.mean()
        assert f"rows make {share:.2f} of the noise" in outcome.notes[0]


# maximized


def test_the_score_counts_exceedances_and_breaks_ties_by_the_statistic():
    null = np.array([0.1, 0.2, 0.3])
    assert maximized._score(0.2, null) == pytest.approx(0.5 * 0.2 / 1.2 - 2.0)
    assert maximized._score(-0.5, null) == pytest.approx(-0.5 * 0.5 / 1.5 - 3.0)
    assert maximized._score(np.inf, np.array([0.1, np.inf])) == 0.5 - 1.0
    # However large, a statistic breaks ties and no more.
    assert maximized._score(1e12, np.full(3, 2e12)) < maximized._score(0.0, np.full(2, 1.0))


def test_combinations_are_told_in_resamples():
    told = []
    resampling = Resampling(n_resamples=10, key=KEY, progress=lambda *counts: told.append(counts))
    for calls in range(1, 5):
        maximized._report(resampling, calls, 4)
    assert told == [(2, 10), (5, 10), (7, 10)]


def test_progress_is_told_once_a_resample_and_ends_after_the_search():
    told = []
    resampling = Resampling(n_resamples=4, key=KEY, progress=lambda *each: told.append(each))
    for calls in range(1, 11):
        maximized._report(resampling, calls, 10)
    assert told == [(1, 4), (2, 4), (3, 4)]
    maximized._report(Resampling(n_resamples=4, key=KEY), 5, 10)
    told.clear()
    many = Resampling(n_resamples=600, key=KEY, progress=lambda *each: told.append(each))
    for calls in range(1, 1201):
        maximized._report(many, calls, 1200)
    assert told == [(done, 600) for done in range(1, 600)]


def test_maximized_reports_the_null_at_the_weights_it_found():
    probs, labels = a_set(10, 8, 2, 3)
    problem = problem_of(probs, labels)
    told = []
    resampling = Resampling(
        n_resamples=3, key=KEY, progress=lambda done, total: told.append((done, total))
    )
    search = Pairwise(max_evaluations=6)
    outcome = hc.nulls.Maximized().run(problem, search, resampling)
    mixed = problem.packed.mixed(outcome.weights)
    statistic, null = of_combination(problem.packed, mixed, KEY, 3)
    assert outcome.statistic == statistic
    np.testing.assert_array_equal(outcome.distribution, null)
    assert outcome.minimum == statistic
    # First g itself is searched; then a combination is one evaluation of the data and three of labels.
    smallest = search.minimize(problem.objective, KEY)
    ranking = outcome.n_evaluations - smallest.n_evaluations[0]
    assert ranking % 4 == 0
    assert 4 <= ranking <= 24
    assert told[-1] == (3, 3)
    # Where g is smallest the p-value is no larger.
    there = of_combination(problem.packed, problem.packed.mixed(smallest.weights[0]), KEY, 3)
    assert maximized._score(statistic, null) <= maximized._score(*there)
    with pytest.raises(InvalidInputError, match="step function"):
        hc.nulls.Maximized().check(resolve("skce_ul"), hc.minimizers.Slsqp())


def test_labels_of_one_combination_are_drawn_from_its_own_predictions():
    probs, labels = a_set(11, 7, 1, 3)
    objective = problem_of(probs, labels, hc.ConfidenceECE(n_bins=4)).packed
    mixed = objective.mixed(np.ones(1))
    statistic, null = of_combination(objective, mixed, KEY, 3, first=2)
    assert statistic == pytest.approx(oracles.ece_conf(probs[:, 0], labels, 4), abs=1e-14)
    for d, value in enumerate(null, start=2):
        y = labels_at([uniform(KEY, LABELS, d, n, 0) for n in range(7)], probs[:, 0])
        assert value == pytest.approx(oracles.ece_conf(probs[:, 0], y, 4), abs=1e-14)


# stacked


def parts_of_stacked(problem, minimizer, n_resamples):
    """The centres of the worlds and the null values of each, step by step."""
    objective = problem.packed
    labels, n_members = objective.labels[0], objective.n_members
    likeliest = objective.maximum_likelihood()
    model = _pool.pooled(objective.members, labels, objective.mixed(likeliest))
    vertices = np.eye(n_members)
    measure = objective.measure
    alone = [measure.evaluate(objective.mixed(v), labels, objective.parameters) for v in vertices]
    centres = {}
    for weights in (
        minimizer.minimize(objective, KEY).weights[0],
        likeliest,
        np.full(n_members, 1 / n_members),
        vertices[np.argmin(alone)],
    ):
        centres.setdefault(tuple(weights), weights)
    nulls = []
    for weights in centres.values():
        drawn = objective.drawing_labels(weights, KEY)(0, n_resamples).labels
        _worlds.World.of(objective.mixed(weights), model).turn(drawn, KEY, 0)
        nulls.append(minimizer.minimize(objective.with_labels(drawn), KEY).means)
    return list(centres.values()), nulls


@pytest.mark.parametrize(("seed", "winner"), [(0, 0), (2, 1), (3, 1), (7, 2), (1, 3)])
def test_the_largest_p_value_of_the_centres_counts(seed, winner):
    problem = problem_of(*a_set(seed, 40, 3, 3))
    search = Steepest(max_evaluations=10)
    outcome = hc.nulls.Stacked().run(problem, search, Resampling(n_resamples=39, key=KEY))
    data = search.minimize(problem.objective, KEY)
    assert outcome.statistic == data.means[0]
    assert outcome.minimum == data.values[0]
    assert outcome.converged == data.converged[0]
    np.testing.assert_array_equal(outcome.weights, data.weights[0])
    centres, nulls = parts_of_stacked(problem, search, 39)
    assert len(centres) == 4
    exceedances = [(null >= outcome.statistic - 1e-12).sum() for null in nulls]
    assert np.argmax(exceedances) == winner
    np.testing.assert_array_equal(outcome.distribution, nulls[winner])


def test_stacked_counts_the_evaluations_of_all_searches():
    problem = problem_of(*a_set(16, 20, 3, 3))
    outcome = hc.nulls.Stacked().run(problem, ONCE, Resampling(n_resamples=2, key=KEY))
    # A search is one evaluation: of the data, and of two replicates in every world. It ends where it
    # begins, at the mean, which is one centre and not two.
    centres, _ = parts_of_stacked(problem, ONCE, 2)
    assert len(centres) == 3
    assert outcome.n_evaluations == 1 + 2 * 3
    assert len(outcome.distribution) == 2


def test_identical_centres_are_tried_once():
    probs, labels = a_set(12, 10, 3, 3)
    objective = problem_of(probs, labels).packed
    vertices, mean = np.eye(3), np.full(3, 1 / 3)
    alone = vertices[objective.values(vertices, np.zeros(3, dtype=np.int64)).argmin()]
    some, other = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.4, 0.0])
    for best, likeliest, expected in (
        (some, other, [some, other, mean, alone]),
        (some, some, [some, mean, alone]),
        (mean, other, [mean, other, alone]),
        (alone, mean, [alone, mean]),
    ):
        np.testing.assert_array_equal(stacked._centres(objective, best, likeliest), expected)


def test_a_journal_keeps_every_world_apart(tmp_path):
    problem = problem_of(*a_set(16, 20, 3, 3))
    outcomes = []
    for _ in range(2):
        with _journal.kept_in(tmp_path / "here", {"seed": SEED}) as journal:
            resampling = Resampling(n_resamples=4, key=KEY, journal=journal)
            outcomes.append(
                hc.nulls.Stacked().run(problem, Steepest(max_evaluations=5), resampling)
            )
    alone = hc.nulls.Stacked().run(
        problem, Steepest(max_evaluations=5), Resampling(n_resamples=4, key=KEY)
    )
    for outcome in outcomes:
        np.testing.assert_array_equal(outcome.distribution, alone.distribution)
        assert outcome.n_evaluations == alone.n_evaluations


def test_parts_of_the_work_are_told_in_resamples_of_the_whole():
    told = []
    for place in range(3):
        report = stacked._share_of(lambda *each: told.append(each), place, 3)
        for done in range(1, 21):
            report(done, 20)
    # Each once, though 60 replicates are run, and 20 / 3 of them are no whole number.
    assert told == [(each, 20) for each in range(1, 21)]
    assert stacked._share_of(None, 0, 1) is None


def test_groups_are_cut_at_quantiles_into_at_most_twenty_of_twenty():
    p = np.random.default_rng(0).permutation(np.arange(1000) / 1000)
    groups = _worlds._groups(p)
    np.testing.assert_array_equal(np.bincount(groups), np.full(20, 50))
    assert (np.diff(groups[np.argsort(p)]) >= 0).all()
    assert _worlds._groups(np.arange(59) / 59).max() == 1
    assert _worlds._groups(np.arange(60) / 60).max() == 2
    assert set(_worlds._groups(np.arange(5) / 5)) == {0}


def test_a_balanced_departure_has_room_and_adds_up_to_nothing():
    # By hand. First row: 0.4 is cut to 0.2 and scaled to the 0.15 of the others; second: 0.4 to 0.1.
    for departure, room, expected in (
        ([0.4, -0.1, -0.05], [0.2, 0.3, 0.5], [0.15, -0.1, -0.05]),
        ([0.1, -0.4, 0.3], [0.5, 0.5, 0.0], [0.1, -0.1, 0.0]),
        ([0.0, 0.0], [1.0, 1.0], [0.0, 0.0]),
        ([0.3, 0.2], [0.5, 0.5], [0.0, 0.0]),
    ):
        row = np.array(departure)
        _worlds._balance(row, np.array(room))
        np.testing.assert_allclose(row, expected, atol=1e-15)


def a_world(seed=1, n=70, k=3):
    """Predictions, a model (both with entries that are negligible), and the world of them."""
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(k, 0.5), size=(2, n))
    p[:20, 0] = q[:20, 0] = 5e-5
    p[20:30, 1] = 5e-5
    p, q = (each / each.sum(axis=1, keepdims=True) for each in (p, q))
    return p, q, _worlds.World.of(np.ascontiguousarray(p.T), np.ascontiguousarray(q.T))


def test_entries_are_what_is_not_negligible_in_predictions_or_model():
    p, q, world = a_world()
    expected = [(n, k) for n in range(70) for k in range(3) if max(p[n, k], q[n, k]) >= 1e-4]
    assert 190 < len(expected) < 210
    rows = np.repeat(np.arange(70), np.diff(world.begins))
    assert list(zip(rows, world.classes, strict=True)) == expected
    np.testing.assert_array_equal(world.p, p[rows, world.classes])
    assert world.begins[0] == 0
    assert world.begins[-1] == len(expected)


def test_a_fit_is_group_means_and_then_a_ridge_line_for_every_class():
    p, _, world = a_world()
    rows = np.repeat(np.arange(70), np.diff(world.begins))
    predicted = world.classes == p.argmax(axis=1)[rows]
    values = np.random.default_rng(2).normal(size=len(rows))
    fitted = np.empty(len(rows))
    for kind in (predicted, ~predicted):
        number = max(kind.sum() // 20, 1)
        cuts = np.quantile(world.p[kind], np.arange(1, number) / number)
        group = np.searchsorted(cuts, world.p[kind], side="right")
        means = [values[kind][group == g].mean() for g in range(number)]
        fitted[kind] = np.array(means)[group]
    left = values - fitted
    for k in range(3):
        own = world.classes == k
        design = np.stack([np.ones(own.sum()), world.p[own]], axis=1)
        line = np.linalg.solve(design.T @ design + np.eye(2), design.T @ left[own])
        fitted[own] += design @ line
    means, lines = np.empty(len(world.counts)), np.empty((3, 2))
    regressors = world.classes, world.p, world.groups, world.counts, world.moments
    _worlds._fit(values, *regressors, means, lines)
    got = means[world.groups] + lines[world.classes, 0] + lines[world.classes, 1] * world.p
    np.testing.assert_allclose(got, fitted, atol=1e-12)


def test_a_departure_is_settled_by_turns():
    _, q, world = a_world()
    rows = np.repeat(np.arange(70), np.diff(world.begins))
    expected = q[rows, world.classes] - world.p
    means, lines = np.empty(len(world.counts)), np.empty((3, 2))
    regressors = world.classes, world.p, world.groups, world.counts, world.moments
    for _ in range(12):
        _worlds._fit(expected, *regressors, means, lines)
        expected -= means[world.groups] + lines[world.classes, 0]
        expected -= lines[world.classes, 1] * world.p
        for n in range(70):
            row = np.clip(expected[rows == n], -world.p[rows == n], world.p[rows == n])
            up, down = row[row > 0].sum(), -row[row < 0].sum()
            row[row > 0] *= min(up, down) / max(up, 1e-300)
            row[row < 0] *= min(up, down) / max(down, 1e-300)
            expected[rows == n] = row
    np.testing.assert_allclose(world.departure, expected, atol=1e-12)


def test_the_pool_solves_the_equations_of_its_maximum():
    probs, labels = a_set(13, 60, 2, 3)
    objective = problem_of(probs, labels).packed
    average = objective.mixed(np.array([0.5, 0.5]))
    base = np.log(np.maximum(average, 1e-4))
    features = [np.log(np.maximum(member, 1e-4)) - base for member in objective.members]
    features = np.stack([*features, base])
    features -= features.mean(axis=1, keepdims=True)
    features /= np.sqrt((features**2).mean(axis=(1, 2)))[:, None, None]
    model = _pool.pooled(objective.members, objective.labels[0], average)
    # The coefficients follow from the logarithms of the model, which are linear in them.
    moved = np.log(model) - base
    moved -= moved.mean(axis=0)
    fitted, misfit, *_ = np.linalg.lstsq(features.reshape(3, -1).T, moved.ravel())
    np.testing.assert_allclose(misfit, 0.0, atol=1e-20)
    observed = np.eye(3)[objective.labels[0]].T
    gradient = np.tensordot(features, observed - model, axes=2) - 10.0 * fitted
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)
    assert np.abs(fitted).max() > 0.1


@pytest.mark.parametrize("held", [1, 6 * 7, 6 * 60])
def test_the_pool_is_fitted_to_all_rows_whatever_is_held_at_a_time(held, monkeypatch):
    probs, labels = a_set(17, 60, 2, 3)
    objective = problem_of(probs, labels).packed
    arguments = objective.members, objective.labels[0], objective.mixed(np.array([0.5, 0.5]))
    expected = _pool.pooled(*arguments)
    # Two members of three classes are six numbers a row.
    monkeypatch.setattr(_pool, "_HELD", held)
    blocks = [rows for rows, *_ in _pool._blocks(arguments[0], arguments[2])]
    size = max(1, held // 6)
    assert [(b.start, b.stop) for b in blocks] == [
        (first, min(first + size, 60)) for first in range(0, 60, size)
    ]
    np.testing.assert_allclose(_pool.pooled(*arguments), expected, atol=1e-9)


# Replicates and their journal


def test_a_run_stops_before_the_value_that_is_the_last_it_needs():
    resampling = Resampling(n_resamples=9, key=KEY, stop_after=2)
    enough = resampling.enough(1.0)
    assert enough(np.array([0.0, 2.0, 0.5])) is None
    assert enough(np.array([0.0, 2.0, 0.5, 1.0, 3.0])) == 3
    fifth = Resampling(n_resamples=9, key=KEY, stop_after=5).enough(1.0)
    assert fifth(np.array([2.0, 2.0, 0.5, 1.0, 3.0, 0.0, 1.0])) == 6


def test_replicates_are_run_in_waves_and_counted():
    probs, labels = a_set(14, 6, 2, 2)
    objective = problem_of(probs, labels).objective
    sizes = []

    def block(first, last):
        sizes.append((first, last))
        return found(np.arange(first, last, dtype=float), 3)

    replicates = Replicates(ONCE, Resampling(n_resamples=20, key=KEY, stop_after=2))
    values = replicates.run(block, objective, statistic=4.5)
    # Waves of twice the exceedances that are enough; the second to reach 4.5 is 6, which is left out.
    assert [a for a, _ in sizes] == [0, 4]
    np.testing.assert_array_equal(values, np.arange(6))
    assert replicates.n_evaluations == 18
    sizes.clear()
    everything = Replicates(ONCE, Resampling(n_resamples=5, key=KEY))
    np.testing.assert_array_equal(everything.run(block, objective, together=2), np.arange(5))
    assert sizes == [(0, 2), (2, 4), (4, 5)]
    assert all(b == c for (_, b), (c, _) in pairwise(sizes))


def test_a_null_says_which_measures_it_cannot_take():
    def brier(probs, labels):
        return 0.0

    with pytest.raises(InvalidInputError, match="null `recentered` needs a residual vector"):
        hc.nulls.Recentered().check(resolve(brier), ONCE)
    hc.nulls.Refit().check(resolve(brier), ONCE)
    hc.nulls.Recentered().check(resolve("ece_conf"), ONCE)
    assert [hc.nulls.resolve(each).can_stop for each in hc.nulls.available()] == [
        False,
        True,
        True,
        True,
        True,
    ]
    measures = [resolve(each) for each in ("ece_conf", "skce_ul", "skce_b", brier)]
    # A pair of neighbours, or a function of which nothing is known, needs its rows side by side.
    paper = hc.nulls.resolve("paper")
    assert [paper.needs_predictions(each) for each in measures] == [False, True, False, True]


def test_known_replicates_are_not_run_again_and_others_are(tmp_path):
    calls = []

    def block(first, last):
        calls.append((first, last))
        return found(np.arange(first, last) / 3, 2)

    for expected in ([(0, 3)], [(2, 5)]):
        calls.clear()
        with _journal.kept_in(tmp_path / "here", {"seed": 7}) as journal:
            journal.check_data(0.25, np.array([1.0, -3.0]))
            kept = journal.keeping("part", block)
            first, last = expected[0]
            np.testing.assert_array_equal(kept(first, last)[:, 0], np.arange(first, last) / 3)
        assert calls == expected
    with _journal.kept_in(tmp_path / "here", {"seed": 7}) as journal:
        calls.clear()
        known = journal.keeping("part", block)(1, 5)
        np.testing.assert_array_equal(known, found(np.arange(1, 5) / 3, 2))
        assert calls == []
        journal.keeping("another", block)(1, 2)
        assert calls == [(1, 2)]
        with pytest.raises(InvalidInputError, match=r"statistic of 0\.25 and a fingerprint of -3"):
            journal.check_data(0.25, np.array([1.0, -3.001]))
        journal.check_data(0.25 + 1e-14, np.array([1.0, -3.0]))
    assert _journal.kept_seed(tmp_path / "here") == 7
    assert _journal.kept_seed(tmp_path / "elsewhere") is None


def test_a_journal_of_something_else_is_refused(tmp_path):
    with _journal.kept_in(None, {}) as nothing:
        assert nothing is None
    with Journal.open(tmp_path, {"seed": 1}, resume=True) as journal:
        journal.append(("part", 0, 3), {"values": [1.0, 2.0], "evaluations": [1.0, 1.0]})
    with (
        pytest.raises(InvalidInputError, match="another block 'part' from 0"),
        _journal.kept_in(tmp_path, {"seed": 1}),
    ):
        pass
    with (
        pytest.raises(InvalidInputError, match=r"`journal`.* or delete this one\."),
        _journal.kept_in(tmp_path, {"seed": 2}),
    ):
        pass
    (tmp_path / "file").write_text("")
    for wrong, words in ((tmp_path / "file", "must be a folder"), (3, "must be a path")):
        with pytest.raises(InvalidInputError, match=words), _journal.kept_in(wrong, {}):
            pass

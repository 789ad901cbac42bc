"""Each null against its definition: by enumeration, by literal recomputation, by distribution."""

import itertools
import math
import os
from functools import partial

import numpy as np
import pytest
from scipy import stats

import hullcal as hc
import oracles
from hullcal import InvalidInputError
from hullcal._compiled.drawn_rows import draw_counts
from hullcal._compiled.streams import LABELS, ROWS, key_of, uniform, uniform_weights
from hullcal.measures import resolve
from hullcal.minimizers import Pairwise, Random
from hullcal.nulls import maximized
from hullcal.resampling import Loop
from simulation import NULLS, judged, objective_of, random_set
from test_oracles import RESIDUALS

MEASURES = {
    "ece_conf": hc.ConfidenceECE(n_bins=4),
    "ece_cwise": hc.ClasswiseECE(n_bins=3),
    "hl_cwise": hc.HosmerLemeshow(n_bins=2),
    "skce_ul": hc.SKCE(estimator="ul"),
    "skce_uq": hc.SKCE(estimator="uq"),
    "skce_b": hc.SKCE(estimator="b"),
}
N_BINS = {"ece_conf": 4, "ece_cwise": 3, "hl_cwise": 2}
LITERAL = {
    name: partial(getattr(oracles, name), n_bins=N_BINS[name])
    if name in N_BINS
    else getattr(oracles, name)
    for name in MEASURES
}
SEED = 5
KEY = key_of(SEED)
ONCE = Pairwise(max_evaluations=1)
#: Resamples that are compared with an enumeration; fewer where loops run uncompiled, for coverage.
MANY = 199 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 4999


def seen_by_a_measure(probs, labels, n_resamples, **options):
    """Predictions and labels at which a measure of constant 0 is evaluated: data, replicates, result."""
    seen = []

    def spy(mixed, drawn):
        seen.append((mixed, drawn))
        return 0.0

    options = {"rng": SEED, "alpha": 0.5, "minimizer": ONCE} | options
    result = judged(probs, labels, measure=spy, n_resamples=n_resamples, **options)
    return seen[0], seen[-n_resamples:], result


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


def agrees(pvalue, exact, n_resamples):
    """Whether a Monte Carlo p-value is where its binomial law puts it in 99.9 % of runs."""
    count = round(pvalue * (n_resamples + 1)) - 1
    low, high = exact if isinstance(exact, tuple) else (exact, exact)
    return (
        stats.binom.ppf(0.0005, n_resamples, min(low, 1.0))
        <= count
        <= stats.binom.ppf(0.9995, n_resamples, min(high, 1.0))
    )


def test_the_bound_is_narrow_enough_to_notice_an_error():
    assert agrees(0.3, 0.3, 4999)
    assert not agrees(0.33, 0.3, 4999)
    assert not agrees(0.27, 0.3, 4999)


# One member: all labellings --------------------------------------------------------------------


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("n", "k", "seed"), [(6, 2, 0), (5, 3, 1), (4, 3, 2), (6, 2, 3)])
def test_one_member_against_the_enumeration_of_all_labels(measure, n, k, seed):
    probs, labels = random_set(seed, n, 1, k)
    if seed == 3:
        # Equal rows give many labellings the same value, up to rounding: ties count as reached.
        probs[:] = [0.3, 0.7]
    exact = oracles.exact_label_pvalue(probs[:, 0], labels, LITERAL[measure])
    for null in ("refit", "recentered", "maximized", "stacked"):
        result = judged(
            probs, labels, measure=MEASURES[measure], null=null, n_resamples=MANY, rng=SEED
        )
        assert agrees(result.pvalue, exact, MANY), (result.pvalue, exact)


@pytest.mark.parametrize("null", NULLS)
def test_labels_that_no_combination_could_produce_are_rejected_by_every_null(null):
    # Class 0 is impossible for both members, and was observed.
    probs = np.array([[[0.0, 0.5, 0.5], [0.0, 0.3, 0.7]]] * 6)
    labels = [0, 1, 2, 1, 2, 1]
    measure = hc.HosmerLemeshow(n_bins=1)
    result = judged(probs, labels, measure=measure, null=null, n_resamples=19, rng=0)
    assert result.statistic == np.inf
    assert result.pvalue == 1 / 20


def test_a_null_says_which_measures_and_searches_it_cannot_take():
    def brier(probs, labels):
        return 0.0

    with pytest.raises(InvalidInputError, match="null `recentered` needs a residual vector"):
        hc.nulls.Recentered().check(resolve(brier), ONCE)
    hc.nulls.Stacked().check(resolve(brier), ONCE)
    hc.nulls.Recentered().check(resolve("ece_conf"), ONCE)
    for search in ("slsqp", "exact", "pairwise"):
        with pytest.raises(InvalidInputError, match="function of the weights that is no measure"):
            hc.nulls.Maximized().check(resolve("skce_ul"), hc.minimizers.resolve(search))
    one_by_one = [each for each in hc.nulls.available() if hc.nulls.resolve(each).one_by_one]
    assert one_by_one == ["paper", "recentered", "stacked"]
    # A pair of neighbours, or a function of which nothing is known, needs its rows side by side.
    measures = [resolve(each) for each in ("ece_conf", "skce_ul", "skce_b", brier)]
    paper = hc.nulls.resolve("paper")
    assert [paper.needs_predictions(each) for each in measures] == [False, True, False, True]


# refit: all labellings, minimised again --------------------------------------------------------


@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise"])
@pytest.mark.parametrize(("n", "k", "seed"), [(5, 2, 0), (4, 3, 1), (5, 2, 4)])
def test_refit_against_enumeration_with_exact_minima(measure, n, k, seed):
    """Every labelling, its probability under the EM weights, and its minimum in rational arithmetic."""
    probs, labels = random_set(seed, n, 2, k)
    minimum = partial(getattr(oracles, f"exact_minimum_{measure}"), n_bins=N_BINS[measure])
    observed = float(minimum(probs, labels))
    mixed = oracles.mixture(probs, oracles.em_weights(probs, labels))
    above = clear = 0.0
    for vector in itertools.product(range(k), repeat=n):
        chance = math.prod(float(mixed[i, vector[i]]) for i in range(n))
        value = float(minimum(probs, np.array(vector)))
        above += chance * (value >= observed - 1e-10)
        clear += chance * (value > observed + 1e-10)
    # Equal minima are ties: the search stops within 1e-12 of an infimum that is not attained.
    result = judged(
        probs, labels, measure=MEASURES[measure], null="refit", minimizer="exact",
        n_resamples=MANY, rng=SEED,
    )  # fmt: skip
    assert result.statistic == pytest.approx(observed, abs=1e-11)
    assert clear < above
    assert agrees(result.pvalue, above, MANY), (result.pvalue, clear, above)


@pytest.mark.parametrize("measure", ["hl_cwise", "skce_ul", "skce_uq", "skce_b"])
@pytest.mark.parametrize(("n", "k", "seed"), [(5, 2, 0), (4, 3, 1)])
def test_refit_against_enumeration_with_the_same_search(measure, n, k, seed):
    probs, labels = random_set(seed, n, 2, k)
    search = Pairwise(max_evaluations=40)

    def minimise(members, y):
        return hc.minimize(
            members, y, measure=MEASURES[measure], minimizer=search, rng=SEED
        ).weights

    weights = oracles.em_weights(probs, labels)
    exact = oracles.exact_refit_pvalue(probs, labels, LITERAL[measure], minimise, weights)
    result = judged(
        probs, labels, measure=MEASURES[measure], null="refit", minimizer=search,
        n_resamples=MANY, rng=SEED,
    )  # fmt: skip
    assert agrees(result.pvalue, exact, MANY), (result.pvalue, exact)


def test_refit_draws_labels_of_fixed_rows_from_the_likeliest_combination():
    probs, labels = random_set(4, 8, 2, 3)
    (data, observed), replicates, result = seen_by_a_measure(probs, labels, 4, null="refit")
    np.testing.assert_array_equal(observed, labels)
    likeliest = oracles.mixture(probs, oracles.em_weights(probs, labels))
    for d, (mixed, y) in enumerate(replicates):
        np.testing.assert_array_equal(mixed, data)
        np.testing.assert_array_equal(y, labels_at(levels_of(d, range(8)), likeliest))
    assert result.n_evaluations == 5
    assert result.hypothesis == "the convex hull of the members contains the truth"


def test_a_replicate_is_searched_as_the_data_are():
    """The null value of a replicate is what `minimize` gives for its labels: same budget, same draws."""
    probs, labels = random_set(9, 20, 4, 3)
    _, replicates, _ = seen_by_a_measure(probs, labels, 9, null="refit")
    search = {"minimizer": Pairwise(max_evaluations=200), "rng": SEED}
    for measure in ("ece_conf", "skce_ul"):
        result = judged(
            probs, labels, measure=measure, null="refit", n_resamples=9, alpha=0.1, **search
        )
        again = [hc.minimize(probs, y, measure=measure, **search).value for _, y in replicates]
        np.testing.assert_array_equal(result.null_distribution, again)
        assert result.statistic == hc.minimize(probs, labels, measure=measure, **search).value


# recentered ------------------------------------------------------------------------------------


def bootstrap_counts(seed, n_resamples, n_samples, measure):
    """The rows that the package draws for each replicate."""
    out = np.zeros((n_resamples, n_samples))
    draw_counts(key_of(seed), 0, 2 if measure == "skce_ul" else 1, out)
    return out.astype(int)


def observed_residual(measure, mixed, labels):
    """What `oracles.recentered_value` wants subtracted."""
    if measure in N_BINS:
        return RESIDUALS[measure](mixed, labels, N_BINS[measure])
    if measure == "skce_ul":
        return oracles.skce_ul(mixed, labels)
    return mixed, labels


def recentered_value(measure, probs, labels, weights, counts, offset):
    mixed = oracles.mixture(probs, weights)
    if measure == "skce_ul" and len(labels) % 2:
        mixed, labels, counts = mixed[:-1], labels[:-1], counts[:-1]
    star, labels_star = oracles.repeat_rows(mixed, labels, counts)
    if measure == "skce_ul":
        # A pair drawn twice is two pairs, not two copies of one row beside each other.
        pairs = np.repeat(np.arange(len(labels) // 2), counts[::2])
        rows = np.stack([2 * pairs, 2 * pairs + 1], axis=1).ravel()
        star, labels_star = mixed[rows], labels[rows]
    n_bins = N_BINS.get(measure, 10)
    return oracles.recentered_value(measure, star, labels_star, offset, n_bins)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("n", "m", "k", "seed"), [(8, 3, 3, 0), (9, 2, 2, 1), (7, 4, 3, 2)])
def test_a_recentered_value_against_its_literal_transcription(measure, n, m, k, seed):
    probs, labels = random_set(seed, n, m, k)
    rng = np.random.default_rng(seed)
    objective = objective_of(probs, labels, MEASURES[measure])
    # The members of an objective stand in an order of their own.
    members = objective.members.transpose(2, 0, 1)
    center, *points = rng.dirichlet(np.ones(m), size=4)
    counts = bootstrap_counts(seed, 5, n, measure)
    replicates = objective.recentered(center).with_row_weights(counts.astype(float))
    offset = observed_residual(measure, oracles.mixture(members, center), labels)
    for weights in (center, *points):
        values = replicates.values(np.tile(weights, (5, 1)), np.arange(5))
        expected = [
            recentered_value(measure, members, labels, weights, row, offset) for row in counts
        ]
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)
    # In the world of the bootstrap the centre is exactly calibrated: the data themselves give 0.
    ones = objective.recentered(center).with_row_weights(np.ones((1, n)))
    at_center = ones.values(center[np.newaxis], np.zeros(1, dtype=np.int64))[0]
    if measure == "skce_uq":  # without its diagonal, whose mean is subtracted all the same
        literal = recentered_value(measure, members, labels, center, np.ones(n, int), offset)
        assert at_center == pytest.approx(literal, abs=1e-12)
    else:
        assert at_center == pytest.approx(0, abs=1e-12)


def cells_and_grid(probs, n_bins, grid):
    """Weights (s, 1 - s) on a grid, and on both sides of every breakpoint: every cell is visited."""
    points = {a / grid for a in range(grid + 1)}
    for point in oracles._breakpoints(oracles._forecast_lines(probs), n_bins):
        points |= {float(point) - 1e-9, float(point), float(point) + 1e-9}
    return [(s, 1 - s) for s in sorted(points) if 0 <= s <= 1]


@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_whole_recentered_null_against_a_fine_grid(measure, seed):
    probs, labels = random_set(seed, 8, 2, 2)
    result = judged(
        probs, labels, measure=MEASURES[measure], null="recentered", minimizer="exact",
        n_resamples=19, rng=SEED,
    )  # fmt: skip
    mixed = oracles.mixture(probs, result.weights)
    assert result.statistic == pytest.approx(LITERAL[measure](mixed, labels), abs=1e-12)
    offset = observed_residual(measure, mixed, labels)
    points = cells_and_grid(probs, N_BINS[measure], 200)
    for value, counts in zip(
        result.null_distribution, bootstrap_counts(SEED, 19, 8, measure), strict=True
    ):
        lowest = min(
            recentered_value(measure, probs, labels, weights, counts, offset) for weights in points
        )
        # Between neighbours of the grid no measure falls by more than their distance.
        assert lowest - 1 / 200 <= value <= lowest + 1e-8


def test_an_infinite_statistic_is_tested_by_labels_of_the_likeliest_combination_with_a_note():
    probs, labels = random_set(8, 8, 2, 3)
    probs[0] = [1.0, 0.0, 0.0]
    labels[0] = 2
    options = {"minimizer": Pairwise(max_evaluations=5), "n_resamples": 4, "rng": SEED}
    options |= {"measure": hc.HosmerLemeshow(n_bins=8), "alpha": 0.2}
    probs[1:, :, 2] += 1.0
    probs /= probs.sum(axis=2, keepdims=True)
    result = judged(probs, labels, null="recentered", **options)
    expected = judged(probs, labels, null="refit", **options)
    assert np.isinf(result.statistic)
    np.testing.assert_array_equal(result.null_distribution, expected.null_distribution)
    assert [note.code for note in result.notes] == ["impossible", "labels_redrawn"]
    labels[0] = 0
    fine = judged(probs, labels, null="recentered", **options)
    assert np.isfinite(fine.statistic)
    assert not any(note.code == "labels_redrawn" for note in fine.notes)


@pytest.mark.parametrize(
    ("n_classes", "n_samples", "measure", "noted"),
    [(40, 100, "ece_cwise", True), (40, 100, "ece_conf", False), (2, 500, "ece_cwise", False)],
)
def test_recentered_says_where_rows_are_too_few_for_its_cells(n_classes, n_samples, measure, noted):
    sizes = {"n_samples": n_samples, "n_members": 3, "n_classes": n_classes}
    data = hc.simulation.scenario("S1", **sizes, rng=1)
    settings = {"measure": measure, "n_resamples": 19, "alpha": 0.1, "rng": 0}
    found = judged(data.probs, data.labels, null="recentered", **settings)
    assert [note.code for note in found.notes] == ["too_few_rows"] * noted
    # What it warns of: the set is valid, and still the p-value is the smallest there is.
    assert (found.pvalue == 0.05) == noted
    assert judged(data.probs, data.labels, null="stacked", **settings).pvalue > 0.05


# paper -----------------------------------------------------------------------------------------


def rows_behind(mixed):
    """Which row of a tagged set each row of a replicate is: class 0 of row n is 10**-(n + 1)."""
    return np.rint(-np.log10(mixed[:, 0] * 10)).astype(int)


def tagged_set(n, m, k, seed):
    """A set whose rows can be told apart in any mixture; see `rows_behind`."""
    probs, labels = random_set(seed, n, m, k)
    probs[:, :, 0] = 0
    probs *= (1 - 10.0 ** -np.arange(1, n + 1))[:, None, None] / probs.sum(axis=2, keepdims=True)
    probs[:, :, 0] = 10.0 ** -np.arange(1, n + 1)[:, None]
    return probs, labels


def test_lines_1_to_5_to_the_letter():
    n, m, k, n_resamples = 6, 3, 4, 3000
    probs, labels = tagged_set(n, m, k, 0)
    numbered = probs[:, hc.ClassifierSet(probs).distinct.positions]
    (_, observed), seen, result = seen_by_a_measure(probs, labels, n_resamples, null="paper")
    np.testing.assert_array_equal(observed, labels)
    assert result.n_evaluations == n_resamples + 1
    rows = np.array([rows_behind(mixed) for mixed, _ in seen])
    weights = np.empty((n_resamples, m))
    for d, (mixed, y) in enumerate(seen):
        # Line 3: one vector of weights a replicate.
        uniform_weights(KEY, d, weights[d])
        np.testing.assert_allclose(
            mixed, oracles.mixture(numbered[rows[d]], weights[d]), rtol=0, atol=1e-14
        )
        # Line 4: labels from that combination, a new one for every copy of a row.
        np.testing.assert_array_equal(y, labels_at(levels_of(d, rows[d]), mixed))
    # Line 2: rows with replacement, uniformly and independently. Line 3: uniform on the simplex.
    assert stats.chisquare(np.bincount(rows.ravel(), minlength=n)).pvalue > 1e-4
    together = np.zeros((n, n))
    np.add.at(together, (rows[:, 0], rows[:, 1]), 1)
    assert stats.chisquare(together.ravel()).pvalue > 1e-4
    for member in range(m):
        assert stats.kstest(weights[:, member], stats.beta(1, m - 1).cdf).pvalue > 1e-4
    # Line 5: g of those predictions and labels, for every measure from the same draws.
    options = {"null": "paper", "n_resamples": 150, "minimizer": ONCE, "rng": SEED}
    for name, measure in MEASURES.items():
        found = judged(probs, labels, measure=measure, **options)
        literal = [LITERAL[name](mixed, y) for mixed, y in seen[:150]]
        np.testing.assert_allclose(found.null_distribution, literal, rtol=1e-9, atol=1e-12)


def test_permuted_rows_are_shuffled_by_fisher_and_yates():
    probs, labels = random_set(1, 6, 1, 3)
    null = hc.nulls.Paper(rows="permuted")
    _, seen, _ = seen_by_a_measure(probs, labels, 6, null=null)
    for d, (mixed, _) in enumerate(seen):
        rows = list(range(6))
        for n in (5, 4, 3, 2, 1):
            other = int(uniform(KEY, ROWS, d, n, 1) * (n + 1))
            rows[n], rows[other] = rows[other], rows[n]
        np.testing.assert_allclose(mixed, probs[rows, 0], atol=1e-15)


# maximized -------------------------------------------------------------------------------------


def p_at(weights, probs, labels, **options):
    """The test of one combination, from the same random numbers."""
    mixed = hc.ClassifierSet(probs).mix(np.asarray(weights))
    mixed /= mixed.sum(axis=1, keepdims=True)
    return judged(mixed, labels, null="refit", **options)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("m", [2, 3])
def test_the_maximized_result_is_that_of_its_weights(measure, m):
    probs, labels = random_set(6, 20, m, 3)
    options = {"measure": MEASURES[measure], "n_resamples": 39, "rng": SEED}
    result = judged(probs, labels, null="maximized", **options)
    there = p_at(result.weights, probs, labels, **options)
    assert result.statistic == pytest.approx(there.statistic, abs=1e-12)
    np.testing.assert_allclose(result.null_distribution, there.null_distribution, atol=1e-12)
    assert result.pvalue == there.pvalue
    assert result.critical_value == pytest.approx(there.critical_value, abs=1e-12)


OTHER_VALLEY = pytest.mark.xfail(
    reason="`converged` means that no small move helps, not that the maximum is global: "
    "this set has a larger p-value elsewhere, .175 for .1"
)


@pytest.mark.parametrize(
    ("measure", "seed"),
    [
        *itertools.product(MEASURES, (0, 2, 4, 5, 6)),
        pytest.param("hl_cwise", 11, marks=OTHER_VALLEY),
    ],
)
def test_no_combination_has_a_clearly_larger_p_value_when_converged(measure, seed):
    # Labels that fit no member well: p-values are small, and there is a maximum to find.
    probs, labels = random_set(seed, 20, 2, 3)
    labels = np.where(np.arange(20) % 3 == 0, probs[:, 0].argmin(axis=1), labels)
    options = {"measure": MEASURES[measure], "n_resamples": 39, "rng": SEED}
    result = judged(probs, labels, null="maximized", **options)
    assert result.converged
    grid = oracles.simplex_grid(2, 50)
    largest = max(p_at(weights, probs, labels, **options).pvalue for weights in grid)
    assert largest <= result.pvalue + 1 / 40 + 1e-12


def test_a_search_that_was_cut_short_says_so_and_is_no_worse_than_where_g_is_smallest():
    probs, labels = random_set(3, 30, 6, 3)
    options = {"measure": "ece_conf", "n_resamples": 19, "rng": SEED}
    search = Random(max_evaluations=5)
    result = judged(probs, labels, null="maximized", minimizer=search, **options)
    assert not result.converged
    best = hc.minimize(probs, labels, minimizer=search, rng=SEED).weights
    assert p_at(best, probs, labels, **options).pvalue <= result.pvalue
    # g is searched first; then a combination is one evaluation of the data and 19 of labels.
    assert result.n_evaluations == 5 + 5 * 20
    assert [note.code for note in result.notes] == ["largest_pvalue"]


def test_of_equal_counts_the_smaller_statistic_wins_however_large():
    """The score that null `maximized` minimises: exceedances, then g."""
    probs, labels = random_set(10, 12, 2, 3)
    told = []
    loop = Loop(n_resamples=20, seed=SEED, progress=lambda *each: told.append(each))
    for measure in (hc.ConfidenceECE(n_bins=4), hc.HosmerLemeshow(n_bins=2)):
        objective = objective_of(probs, labels, measure)
        rank = maximized._Rank(objective, objective.likeliest(), loop, 8)
        points = np.random.default_rng(0).dirichlet([1, 1], size=4)
        for weights, score in zip(points, rank.values(points, np.zeros(4)), strict=True):
            value = objective.at(weights)[0]
            null = objective.drawing_labels(weights, KEY)(0, 20).at(weights)
            count = (null >= value - 1e-12).sum()
            assert score == pytest.approx(0.5 * value / (1 + abs(value)) - count)
    # Eight combinations are told as twenty resamples, each once, and the last is left to the loop.
    assert told == [(done, 20) for done in (2, 5, 7, 10)]

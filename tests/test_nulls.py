"""Each null against its definition: by enumeration, by literal recomputation, by distribution."""

from __future__ import annotations

import itertools
import math
import os
from functools import partial

import numpy as np
import pytest
from scipy import stats

import hullcal as hc
import oracles
from hullcal._compiled.resampling import draw_counts
from hullcal._compiled.streams import key_of
from hullcal.engines.local import packed_problem
from hullcal.minimizers import Pairwise

MEASURES = {
    "ece_conf": hc.ConfidenceECE(n_bins=4),
    "ece_cwise": hc.ClasswiseECE(n_bins=3),
    "hl_cwise": hc.HosmerLemeshow(n_bins=2),
    "skce_ul": hc.SKCE(estimator="ul"),
    "skce_uq": hc.SKCE(estimator="uq"),
    "skce_b": hc.SKCE(estimator="b"),
}
LITERAL = {
    "ece_conf": partial(oracles.ece_conf, n_bins=4),
    "ece_cwise": partial(oracles.ece_cwise, n_bins=3),
    "hl_cwise": partial(oracles.hl_cwise, n_bins=2),
    "skce_ul": oracles.skce_ul,
    "skce_uq": oracles.skce_uq,
    "skce_b": oracles.skce_b,
}
N_BINS = {"ece_conf": 4, "ece_cwise": 3, "hl_cwise": 2}
SEED = 5
#: Resamples that are compared with an enumeration; fewer where loops run uncompiled, for coverage.
MANY = 199 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 4999


def random_set(seed, n, m, k):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k), size=(n, m)), rng.integers(k, size=n)


def seen_by_a_measure(probs, labels, **options):
    """All (predictions, labels) at which a test evaluates its measure, in order; g is always 0."""
    seen = []

    def spy(mixed, drawn):
        seen.append((mixed, drawn))
        return 0.0

    hc.calibration_test(probs, labels, measure=spy, **options)
    return seen


def agrees(pvalue, exact, n_resamples):
    """Whether a Monte Carlo p-value is where its binomial law puts it in 99.9 % of runs."""
    count = round(pvalue * (n_resamples + 1)) - 1
    low, high = exact if isinstance(exact, tuple) else (exact, exact)
    return (
        stats.binom.ppf(0.0005, n_resamples, min(low, 1.0))
        <= count
        <= stats.binom.ppf(0.9995, n_resamples, min(high, 1.0))
    )


# One member: all labellings --------------------------------------------------------------------


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("n", "k", "seed"), [(6, 2, 0), (5, 3, 1), (4, 3, 2), (6, 2, 3)])
def test_one_member_against_the_enumeration_of_all_labels(measure, n, k, seed):
    probs, labels = random_set(seed, n, 1, k)
    exact = oracles.exact_label_pvalue(probs[:, 0], labels, LITERAL[measure])
    for null in ("refit", "recentered", "maximized"):
        result = hc.calibration_test(
            probs, labels, measure=MEASURES[measure], null=null, n_resamples=MANY, rng=SEED
        )
        assert agrees(result.pvalue, exact, MANY), (result.pvalue, exact)


def test_the_bound_is_narrow_enough_to_notice_an_error():
    # A p-value off by 0.03 would not pass.
    assert agrees(0.3, 0.3, 4999)
    assert not agrees(0.33, 0.3, 4999)
    assert not agrees(0.27, 0.3, 4999)


@pytest.mark.parametrize("measure", MEASURES)
def test_equal_values_count_as_reached(measure):
    """Equal rows give many labellings the same value, up to rounding: ties must count."""
    probs = np.tile([0.3, 0.7], (6, 1, 1))
    labels = np.array([1, 0, 1, 1, 0, 1])
    exact = oracles.exact_label_pvalue(probs[:, 0], labels, LITERAL[measure])
    result = hc.calibration_test(
        probs, labels, measure=MEASURES[measure], n_resamples=MANY, rng=SEED
    )
    assert agrees(result.pvalue, exact, MANY), (result.pvalue, exact)


def test_infinite_equals_infinite():
    # Class 0 is impossible in both rows and was observed: g is infinite, whatever is drawn is not.
    probs = np.array([[[0.0, 1.0]], [[0.0, 1.0]]])
    result = hc.calibration_test(
        probs, [0, 1], measure=hc.HosmerLemeshow(n_bins=1), null="refit", n_resamples=19, rng=0
    )
    assert result.statistic == np.inf
    assert result.pvalue == 1 / 20


def test_an_infinite_statistic_is_not_subtracted_and_that_is_said():
    probs = np.random.default_rng(0).dirichlet([1, 1], size=(40, 2))
    probs[:5] = [1.0, 0.0]
    labels = np.r_[np.ones(5, int), np.zeros(35, int)]
    options = {"measure": "hl_cwise", "null": "recentered", "n_resamples": 19, "rng": 0}
    found = hc.calibration_test(probs, labels, **options)
    assert found.statistic == np.inf
    assert any("drew labels from the maximum-likelihood combination" in n for n in found.notes)
    fine = hc.calibration_test(probs[5:], labels[5:], **options)
    assert not any("drew labels" in note for note in fine.notes)


@pytest.mark.parametrize("null", hc.nulls.available())
def test_labels_that_no_combination_could_produce_are_rejected_by_every_null(null):
    # Class 0 is impossible for both members, and was observed.
    probs = np.array([[[0.0, 0.5, 0.5], [0.0, 0.3, 0.7]]] * 6)
    labels = [0, 1, 2, 1, 2, 1]
    measure = hc.HosmerLemeshow(n_bins=1)
    result = hc.calibration_test(probs, labels, measure=measure, null=null, n_resamples=19, rng=0)
    assert result.statistic == np.inf
    assert result.pvalue == 1 / 20


# refit: all labellings, minimised again --------------------------------------------------------


def exact_minimum(measure):
    infimum = {
        "ece_conf": oracles.exact_minimum_ece_conf,
        "ece_cwise": oracles.exact_minimum_ece_cwise,
    }[measure]
    return lambda probs, labels: float(infimum(probs, labels, n_bins=N_BINS[measure]))


@pytest.mark.parametrize("measure", ["ece_conf", "ece_cwise"])
@pytest.mark.parametrize(("n", "k", "seed"), [(5, 2, 0), (4, 3, 1), (5, 2, 4)])
def test_refit_against_enumeration_with_exact_minima(measure, n, k, seed):
    """Every labelling, its probability under the EM weights, and its minimum in rational arithmetic."""
    probs, labels = random_set(seed, n, 2, k)
    minimum = exact_minimum(measure)
    observed = minimum(probs, labels)
    mixed = oracles.mixture(probs, oracles.em_weights(probs, labels))
    above = clear = 0.0
    for vector in itertools.product(range(k), repeat=n):
        chance = math.prod(float(mixed[i, vector[i]]) for i in range(n))
        value = minimum(probs, np.array(vector))
        above += chance * (value >= observed - 1e-10)
        clear += chance * (value > observed + 1e-10)
    # Equal minima are ties: the search stops within 1e-12 of an infimum that is not attained.
    result = hc.calibration_test(
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
    result = hc.calibration_test(
        probs, labels, measure=MEASURES[measure], null="refit", minimizer=search,
        n_resamples=MANY, rng=SEED,
    )  # fmt: skip
    assert agrees(result.pvalue, exact, MANY), (result.pvalue, exact)


def test_refit_draws_labels_from_the_maximum_likelihood_weights_with_rows_fixed():
    probs, labels = random_set(8, 6, 3, 3)
    search = Pairwise(max_evaluations=1)  # one evaluation a replicate, at the mean
    seen = seen_by_a_measure(
        probs, labels, null="refit", minimizer=search, n_resamples=6000, rng=SEED
    )
    assert len(seen) == 1 + 6000
    (data, observed), *replicates = seen
    np.testing.assert_array_equal(observed, labels)
    for mixed, _ in replicates:
        np.testing.assert_array_equal(mixed, data)  # the same rows, the same weights
    drawn = np.array([y for _, y in replicates])
    expected = oracles.mixture(probs, oracles.em_weights(probs, labels))
    for row in range(6):
        counts = np.bincount(drawn[:, row], minlength=3)
        assert stats.chisquare(counts, 6000 * expected[row] / expected[row].sum()).pvalue > 1e-4


def test_a_replicate_is_searched_as_the_data_are():
    """The null value of a replicate is what `minimize` gives for its labels: same budget, same draws."""
    probs, labels = random_set(9, 20, 4, 3)
    options = {"null": "refit", "n_resamples": 9, "alpha": 0.1, "rng": SEED}
    # One evaluation a search, so that the labels of the data come first, then those of replicates.
    seen = seen_by_a_measure(probs, labels, minimizer=Pairwise(max_evaluations=1), **options)
    search = {"minimizer": Pairwise(max_evaluations=200), "rng": SEED}
    for measure in ("ece_conf", "skce_ul"):
        result = hc.calibration_test(probs, labels, measure=measure, **{**options, **search})
        again = [hc.minimize(probs, y, measure=measure, **search).value for _, y in seen[1:]]
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
    if measure == "ece_conf":
        return oracles.residual_ece_conf(mixed, labels, 4)
    if measure == "ece_cwise":
        return oracles.residual_ece_cwise(mixed, labels, 3)
    if measure == "hl_cwise":
        return oracles.residual_hl(mixed, labels, 2)
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
    problem = packed_problem(hc.ClassifierSet(probs), labels.astype(np.int32), MEASURES[measure])
    # The members of an objective stand in an order of their own.
    members = problem.objective.members.transpose(2, 0, 1)
    center, *points = rng.dirichlet(np.ones(m), size=4)
    counts = bootstrap_counts(seed, 5, n, measure)
    replicates = problem.objective.recentered(center).with_row_weights(counts.astype(float))
    offset = observed_residual(measure, oracles.mixture(members, center), labels)
    for weights in (center, *points):
        values = replicates.values(np.tile(weights, (5, 1)), np.arange(5))
        expected = [
            recentered_value(measure, members, labels, weights, row, offset) for row in counts
        ]
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)
    # In the world of the bootstrap the centre is exactly calibrated: the data themselves give 0.
    ones = problem.objective.recentered(center).with_row_weights(np.ones((1, n)))
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
    result = hc.calibration_test(
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


@pytest.mark.parametrize("measure", ["hl_cwise", "skce_ul", "skce_uq", "skce_b"])
def test_the_whole_recentered_null_is_close_to_a_grid_for_other_measures(measure):
    probs, labels = random_set(3, 8, 2, 2)
    result = hc.calibration_test(
        probs, labels, measure=MEASURES[measure], null="recentered",
        minimizer=Pairwise(max_evaluations=400), n_resamples=9, alpha=0.1, rng=SEED,
    )  # fmt: skip
    mixed = oracles.mixture(probs, result.weights)
    offset = observed_residual(measure, mixed, labels)
    lowest = [
        min(
            recentered_value(measure, probs, labels, weights, counts, offset)
            for weights in oracles.simplex_grid(2, 100)
        )
        for counts in bootstrap_counts(SEED, 9, 8, measure)
    ]
    if measure != "hl_cwise":  # whose cells are too narrow for a grid
        assert (result.null_distribution >= np.array(lowest) - 1e-3).all()
    # A pattern search may end in a valley that is not the deepest, as one of these does (skce_uq:
    # -0.021 at one end of the segment, -0.074 at the other).
    assert (result.null_distribution <= np.array(lowest) + 1e-3).sum() >= 8


def test_recentering_needs_only_calibration_not_the_truth():
    """Its null is that of the rows with their labels: no label is ever drawn from the members."""
    probs, labels = oracles.calibrated_not_truth(np.random.default_rng(0), 100)
    options = {"null": "recentered", "n_resamples": 19, "rng": 0}
    relabelled = hc.calibration_test(probs, labels, **options)
    flipped = hc.calibration_test(probs[:, :, ::-1], 1 - labels, **options)
    assert flipped.pvalue == relabelled.pvalue  # classes by another name


# paper -----------------------------------------------------------------------------------------


def weights_behind(mixed, rows, probs):
    """The weights that mix `probs[rows]` into `mixed`, by least squares."""
    n, m, k = probs.shape
    design = probs[rows].transpose(0, 2, 1).reshape(n * k, m)
    found, *_ = np.linalg.lstsq(design, mixed.ravel(), rcond=None)
    return found


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
    options = {"null": "paper", "n_resamples": n_resamples, "rng": SEED}
    options["minimizer"] = Pairwise(max_evaluations=5)
    seen = seen_by_a_measure(probs, labels, **options)[:n_resamples]
    rows = np.array([rows_behind(mixed) for mixed, _ in seen])
    weights = np.array(
        [weights_behind(mixed, r, probs) for (mixed, _), r in zip(seen, rows, strict=True)]
    )
    drawn = np.array([y for _, y in seen])
    # Line 2: rows with replacement, uniformly and independently.
    assert ((rows >= 0) & (rows < n)).all()
    assert stats.chisquare(np.bincount(rows.ravel(), minlength=n)).pvalue > 1e-4
    together = np.zeros((n, n))
    np.add.at(together, (rows[:, 0], rows[:, 1]), 1)
    assert stats.chisquare(together.ravel()).pvalue > 1e-4
    # Line 3: one vector of weights a replicate, uniform on the simplex.
    for replicate in range(n_resamples):
        mixed = oracles.mixture(probs[rows[replicate]], weights[replicate])
        np.testing.assert_allclose(mixed, seen[replicate][0], atol=1e-9)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-9)
    for member in range(m):
        assert stats.kstest(weights[:, member], stats.beta(1, m - 1).cdf).pvalue > 1e-4
    # Line 4: labels from that combination, a new one for every copy of a row.
    levels = stats.norm.cdf(0)  # the chance that a row is labelled by its likelier half
    hits = np.array([mixed[np.arange(n), y] for (mixed, y) in seen])
    expected = np.array([(mixed**2).sum(axis=1) for mixed, _ in seen])
    spread = math.sqrt(
        sum((mixed**3).sum() - ((mixed**2).sum(axis=1) ** 2).sum() for mixed, _ in seen)
    )
    assert abs((hits - expected).sum()) < 4 * spread * (levels * 2)
    counts = np.array([np.bincount(y, minlength=k) for y in drawn]).sum(axis=0)
    chances = np.array([mixed.sum(axis=0) for mixed, _ in seen]).sum(axis=0)
    assert stats.chisquare(counts, chances / chances.sum() * counts.sum()).pvalue > 1e-4
    # Line 5: g of those predictions and labels, for every measure from the same draws.
    for name, measure in MEASURES.items():
        result = hc.calibration_test(probs, labels, measure=measure, **options)
        literal = [LITERAL[name](mixed, y) for mixed, y in seen[:150]]
        np.testing.assert_allclose(result.null_distribution[:150], literal, rtol=1e-9, atol=1e-12)


def test_copies_of_a_drawn_row_get_labels_of_their_own():
    probs = np.full((2, 2, 2), 0.5)
    probs[:, 1] = [0.4, 0.6]
    seen = seen_by_a_measure(
        probs,
        [0, 1],
        null="paper",
        n_resamples=4000,
        rng=SEED,
        minimizer=Pairwise(max_evaluations=2),
    )[:4000]
    table = np.zeros((2, 2))
    for _, (a, b) in seen:
        table[a, b] += 1
    # If the two copies of a row drawn twice shared a label, they would agree in 3/4 of replicates.
    assert abs((table[0, 0] + table[1, 1]) / 4000 - 0.5) < 0.04


@pytest.mark.parametrize("measure", ["ece_conf", "skce_ul", "hl_cwise"])
def test_the_paper_null_against_algorithm_1_by_distribution(measure):
    probs, labels = random_set(4, 20, 3, 3)
    result = hc.calibration_test(
        probs, labels, measure=MEASURES[measure], null="paper", n_resamples=400, rng=SEED
    )
    literal = oracles.algorithm1(
        probs, labels, LITERAL[measure], 400, lambda *_: result.weights, np.random.default_rng(0)
    )
    assert stats.ks_2samp(result.null_distribution, literal["null"]).pvalue > 1e-3
    assert result.statistic == pytest.approx(literal["statistic"], abs=1e-10)


def test_line_3_draws_from_the_simplex_of_all_members_copies_included():
    probs, labels = tagged_set(6, 2, 3, 1)
    tripled = probs[:, [0, 1, 1, 1]]
    seen = seen_by_a_measure(
        tripled,
        labels,
        null="paper",
        n_resamples=2000,
        rng=SEED,
        minimizer=Pairwise(max_evaluations=2),
    )[:2000]
    weights = np.array([weights_behind(mixed, rows_behind(mixed), probs) for mixed, _ in seen])
    assert stats.kstest(weights[:, 0], stats.beta(1, 3).cdf).pvalue > 1e-4


def test_the_paper_resamples_rows_for_one_member_too():
    probs, labels = tagged_set(6, 1, 3, 2)
    seen = seen_by_a_measure(probs, labels, null="paper", n_resamples=50, rng=SEED)[:50]
    rows = np.array([rows_behind(mixed) for mixed, _ in seen])
    assert len(np.unique(np.sort(rows, axis=1), axis=0)) > 40


# maximized -------------------------------------------------------------------------------------


def p_at(weights, probs, labels, **options):
    """The test of one combination, from the same random numbers."""
    mixed = hc.ClassifierSet(probs).mix(np.asarray(weights))
    mixed /= mixed.sum(axis=1, keepdims=True)
    return hc.calibration_test(mixed, labels, null="refit", **options)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("m", [2, 3])
def test_the_maximized_result_is_that_of_its_weights(measure, m):
    probs, labels = random_set(6, 20, m, 3)
    options = {"measure": MEASURES[measure], "n_resamples": 39, "rng": SEED}
    result = hc.calibration_test(probs, labels, null="maximized", **options)
    there = p_at(result.weights, probs, labels, **options)
    assert result.statistic == pytest.approx(there.statistic, abs=1e-12)
    np.testing.assert_allclose(result.null_distribution, there.null_distribution, atol=1e-12)
    assert result.pvalue == there.pvalue
    assert result.critical_value == pytest.approx(there.critical_value, abs=1e-12)


def set_without_a_good_combination(seed):
    """Labels that fit no member well: p-values are small, and there is a maximum to find."""
    probs, labels = random_set(seed, 20, 2, 3)
    return probs, np.where(np.arange(20) % 3 == 0, probs[:, 0].argmin(axis=1), labels)


def largest_on_a_grid(probs, labels, **options):
    grid = oracles.simplex_grid(2, 50)
    return max(p_at(weights, probs, labels, **options).pvalue for weights in grid)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("seed", [0, 2, 4, 5, 6])
def test_no_combination_has_a_clearly_larger_p_value_when_converged(measure, seed):
    probs, labels = set_without_a_good_combination(seed)
    options = {"measure": MEASURES[measure], "n_resamples": 39, "rng": SEED}
    result = hc.calibration_test(probs, labels, null="maximized", **options)
    assert result.converged
    assert largest_on_a_grid(probs, labels, **options) <= result.pvalue + 1 / 40 + 1e-12


@pytest.mark.xfail(
    reason="`converged` means that no small move helps, not that the maximum is global: "
    "this set has a larger p-value elsewhere, .175 for .1"
)
@pytest.mark.parametrize(("measure", "seed"), [("hl_cwise", 11)])
def test_no_combination_has_a_larger_p_value_in_another_valley(measure, seed):
    probs, labels = set_without_a_good_combination(seed)
    options = {"measure": MEASURES[measure], "n_resamples": 39, "rng": SEED}
    result = hc.calibration_test(probs, labels, null="maximized", **options)
    assert result.converged
    assert largest_on_a_grid(probs, labels, **options) <= result.pvalue + 1 / 40 + 1e-12


def test_of_equal_p_values_the_smaller_statistic_is_reported():
    probs, labels = random_set(9, 20, 2, 3)
    options = {"measure": "skce_ul", "n_resamples": 9, "alpha": 0.1, "rng": SEED}
    result = hc.calibration_test(probs, labels, null="maximized", **options)
    on_grid = [p_at(weights, probs, labels, **options) for weights in oracles.simplex_grid(2, 40)]
    equal = [there.statistic for there in on_grid if there.pvalue == result.pvalue]
    assert len(equal) > 3
    assert result.statistic <= min(equal) + 1e-3
    assert max(equal) > result.statistic + 1e-3  # there was something to choose


def test_a_search_that_was_cut_short_says_so():
    probs, labels = random_set(3, 30, 6, 3)
    result = hc.calibration_test(
        probs,
        labels,
        null="maximized",
        n_resamples=19,
        rng=0,
        minimizer=Pairwise(max_evaluations=5),
    )
    assert not result.converged


def test_the_maximized_p_value_is_never_below_that_of_the_members_or_the_minimum():
    probs, labels = random_set(11, 25, 3, 3)
    options = {"measure": "ece_conf", "n_resamples": 39, "rng": SEED}
    result = hc.calibration_test(
        probs, labels, null="maximized", minimizer=Pairwise(max_evaluations=2000), **options
    )
    best = hc.minimize(probs, labels, rng=SEED).weights
    for weights in (*np.eye(3), np.full(3, 1 / 3), best):
        assert p_at(weights, probs, labels, **options).pvalue <= result.pvalue + 1 / 40


@pytest.mark.parametrize(
    ("n_classes", "n_samples", "measure", "noted"),
    [(40, 100, "ece_cwise", True), (40, 100, "ece_conf", False), (2, 500, "ece_cwise", False)],
)
def test_recentered_says_where_rows_are_too_few_for_its_cells(n_classes, n_samples, measure, noted):
    sizes = {"n_samples": n_samples, "n_members": 3, "n_classes": n_classes}
    data = hc.simulation.scenario("S1", **sizes, rng=1)
    settings = {"measure": measure, "n_resamples": 19, "alpha": 0.1, "rng": 0}
    found = hc.calibration_test(data.probs, data.labels, null="recentered", **settings)
    assert found.doubtful == noted
    assert len(found.notes) == noted
    # What it warns of: the set is valid, and still the p-value is the smallest there is.
    assert (found.pvalue == 0.05) == noted
    assert hc.calibration_test(data.probs, data.labels, null="stacked", **settings).pvalue > 0.05


def test_an_assessment_does_not_say_no_where_it_doubts_the_p_value():
    data = hc.simulation.scenario("S1", n_samples=100, n_members=3, n_classes=40, rng=1)
    settings = {"nulls": ["recentered", "refit"], "n_resamples": 19, "alpha": 0.1, "rng": 0}
    found = hc.assessment.assess(data.probs, data.labels, measures=["ece_cwise"], **settings)
    assert found.rejected("recentered")
    assert found.sentences()[0].startswith("Unclear: the data seem to speak against")
    assert found.sentences()[1].startswith("Perhaps:")


def test_maximized_says_what_its_weights_are():
    probs = np.random.default_rng(0).dirichlet([1, 1], size=(30, 2))
    result = hc.calibration_test(probs, [0, 1] * 15, null="maximized", n_resamples=19, rng=0)
    assert result.notes == (
        "null maximized: weights and statistic are where the p-value is largest",
    )

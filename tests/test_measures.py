"""Every measure against the literal transcription of its equation, and against values by hand."""

import functools
import itertools
import math
import warnings

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal import HullcalWarning
from oracles import repeat_rows

BINNED = {
    "ece_conf": hc.ConfidenceECE,
    "ece_cwise": hc.ClasswiseECE,
    "ece_conf_smooth": functools.partial(hc.ConfidenceECE, smooth=True),
    "ece_cwise_smooth": functools.partial(hc.ClasswiseECE, smooth=True),
    "hl_cwise": hc.HosmerLemeshow,
}
RESIDUALS = {
    "ece_conf": oracles.residual_ece_conf,
    "ece_cwise": oracles.residual_ece_cwise,
    "ece_conf_smooth": functools.partial(oracles.residual_ece_conf, smooth=True),
    "ece_cwise_smooth": functools.partial(oracles.residual_ece_cwise, smooth=True),
    "hl_cwise": oracles.residual_hl,
}
ESTIMATORS = ("ul", "uq", "b")
KERNELS = ("exponential", "gaussian")
ADDITIVE = [
    name for name in hc.measures.available() if hc.measures.resolve(name).accumulate is not None
]


def forecasts(rng, n, k, kind):
    """Rows that are smooth, or full of ties and bin edges, or certain, or all of these."""
    smooth = rng.dirichlet(np.ones(k), size=n)
    if kind == "smooth":
        return smooth
    if kind == "sixteenths":
        return rng.multinomial(16, np.full(k, 1 / k), size=n) / 16
    if kind == "tenths":
        return rng.multinomial(10, np.full(k, 1 / k), size=n) / 10
    if kind == "certain":
        return np.eye(k)[rng.integers(k, size=n)]
    parts = [smooth, forecasts(rng, n, k, "sixteenths"), forecasts(rng, n, k, "certain")]
    return np.stack(parts)[rng.integers(3, size=n), np.arange(n)]


KINDS = ("smooth", "sixteenths", "tenths", "certain", "mixed")


def case(seed, kind, smallest=1):
    """Forecasts and labels; the labels follow the forecasts in half of the cases."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n, k = int(rng.integers(smallest, 61)), int(rng.integers(2, 8))
    probs = forecasts(rng, n, k, kind)
    if seed % 2:
        return rng, probs, rng.integers(k, size=n)
    return rng, probs, oracles.draw_labels(rng, probs)


def value_of(measure, probs, labels):
    """The measure, whatever it has to say about so few rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HullcalWarning)
        return measure(probs, labels)


def packed(probs, labels):
    """What the loops take: (n_classes, n_samples), and labels of 32 bits."""
    return np.ascontiguousarray(np.asarray(probs, dtype=float).T), np.asarray(labels, np.int32)


def same(value, expected, scale=1.0):
    assert not math.isnan(value)
    assert value == pytest.approx(expected, rel=1e-11, abs=1e-13 * scale)


def counts_of(rng, n, unit=1):
    """A bootstrap of units of rows as counts; an odd last row belongs to no unit of two."""
    n_units = n // unit
    drawn = np.bincount(rng.integers(n_units, size=n_units), minlength=n_units)
    return np.append(np.repeat(drawn, unit), np.zeros(n - n_units * unit, dtype=int))


# Against the oracles


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BINNED)
def test_binned_measures_against_the_oracle(name, kind):
    for seed in range(24):
        rng, probs, labels = case(seed, kind)
        n_bins = int(rng.choice([1, 2, 3, 5, 7, 10, 15, 64]))
        expected = getattr(oracles, name)(probs, labels, n_bins)
        same(value_of(BINNED[name](n_bins=n_bins), probs, labels), expected)


@pytest.mark.parametrize("name", BINNED)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9])
def test_binned_measures_with_fewer_rows_than_bins_against_the_oracle(name, n):
    for seed, kind in itertools.product(range(4), KINDS):
        rng = np.random.default_rng(seed)
        k = 2 + seed
        probs, labels = forecasts(rng, n, k, kind), rng.integers(k, size=n)
        for n_bins in (10, 11, 40):
            expected = getattr(oracles, name)(probs, labels, n_bins)
            same(value_of(BINNED[name](n_bins=n_bins), probs, labels), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_skce_against_the_oracle(estimator, kernel, kind):
    oracle = getattr(oracles, f"skce_{estimator}")
    for seed in range(4):
        rng, probs, labels = case(seed, kind, smallest=2)
        probs, labels = probs[:25], labels[:25]
        median = oracles.median_bandwidth(probs) or 1.0
        fixed = float(rng.choice([0.05, 0.8, 1.0, 2.0, 30.0]))
        for given, bandwidth in (("median", median), (fixed, fixed)):
            measure = hc.SKCE(estimator=estimator, bandwidth=given, kernel=kernel)
            same(value_of(measure, probs, labels), oracle(probs, labels, bandwidth, kernel))


def test_the_median_bandwidth_of_a_set_is_that_of_its_average_member():
    rng = np.random.default_rng(0)
    members = rng.dirichlet(np.ones(3), size=(15, 4))
    average = members.mean(axis=1)
    measure = hc.SKCE(estimator="uq", bandwidth="median")
    parameters = measure.parameters(hc.ClassifierSet(members).mean())
    assert parameters[1] == pytest.approx(oracles.median_bandwidth(average))
    labels = rng.integers(3, size=15)
    search = hc.minimizers.Pairwise(max_evaluations=50)
    result = hc.minimize(members, labels, measure=measure, minimizer=search, rng=0)
    mixed = oracles.mixture(members, result.weights)
    same(result.value, oracles.skce_uq(mixed, labels, oracles.median_bandwidth(average)))


def pair_matrix(probs, labels, others, other_labels):
    """h of every row with every other, by broadcasting."""
    errors = probs - np.eye(probs.shape[1])[labels]
    other_errors = others - np.eye(probs.shape[1])[other_labels]
    kernel = np.exp(-0.5 * np.abs(probs[:, None] - others[None]).sum(axis=2))
    return kernel * (errors @ other_errors.T)


@pytest.mark.parametrize("n", [127, 128, 129, 255, 256, 257, 300])
@pytest.mark.parametrize("estimator", ["uq", "b"])
def test_all_pairs_across_the_edges_of_blocks(estimator, n):
    rng = np.random.default_rng(n)
    (probs, there), labels = rng.dirichlet(np.ones(3), size=(2, n)), rng.integers(3, size=n)
    h = pair_matrix(probs, labels, probs, labels)
    expected = {"b": h.mean(), "uq": (h.sum() - np.trace(h)) / (n * (n - 1))}[estimator]
    measure = hc.SKCE(estimator=estimator)
    same(measure(probs, labels), expected)
    # Recentered at other predictions, with rows drawn.
    counts = counts_of(rng, n)
    drawn = repeat_rows(probs, labels, counts)
    parameters = measure.parameters(probs)
    offset = measure.offset_at(*packed(there, labels), parameters)
    found = measure.evaluate(
        *packed(probs, labels), parameters, row_weights=counts.astype(float), offset=offset
    )
    cross = pair_matrix(*drawn, there, labels).mean(axis=1)
    inner = pair_matrix(*drawn, *drawn) - cross[:, None] - cross[None]
    inner += pair_matrix(there, labels, there, labels).mean()
    expected = {"b": inner.mean(), "uq": (inner.sum() - np.trace(inner)) / (n * (n - 1))}
    same(found, expected[estimator])


@pytest.mark.parametrize("k", range(2, 18))
def test_the_top_class_is_found_among_any_number_of_classes(k):
    rng = np.random.default_rng(k)
    probs = np.vstack([np.eye(k), np.full((1, k), 1 / k), rng.dirichlet(np.ones(k), size=40)])
    probs = np.vstack([probs, rng.multinomial(4, np.full(k, 1 / k), size=40) / 4])
    for labels in (rng.integers(k, size=len(probs)), probs.argmax(axis=1)):
        same(hc.ConfidenceECE()(probs, labels), oracles.ece_conf(probs, labels))
        value = hc.ConfidenceECE(smooth=True)(probs, labels)
        same(value, oracles.ece_conf_smooth(probs, labels))


# By hand


def test_confidence_ece_by_hand():
    probs = [[0.75, 0.25], [0.625, 0.375], [0.125, 0.875], [0.5, 0.5]]
    # B = 4. [.5, .75): a miss at .625 and a tie, which predicts class 0, a hit at .5;
    # [.75, 1]: hits at .75 and .875. 2/4 |1/2 - .5625| + 2/4 |1 - .8125|
    assert hc.ConfidenceECE(n_bins=4)(probs, [0, 1, 1, 0]) == 0.125


def test_a_tie_in_the_argmax_goes_to_the_lowest_class():
    third = [[0.25, 0.375, 0.375]]
    one_bin = hc.ConfidenceECE(n_bins=1)
    assert value_of(one_bin, third, [1]) == 0.625
    assert value_of(one_bin, third, [2]) == 0.375


def test_classwise_ece_by_hand():
    probs = [[0.25, 0.75], [0.375, 0.625], [0.875, 0.125]]
    # B = 2, labels 1 0 0. Class 0: |1 - .625| + |1 - .875|; class 1: |0 - .125| + |1 - 1.375|;
    # over N = 3 and K = 2.
    assert hc.ClasswiseECE(n_bins=2)(probs, [1, 0, 0]) == pytest.approx(1 / 6, abs=1e-15)


def test_smooth_confidence_ece_by_hand():
    probs = [[0.75, 0.25], [0.625, 0.375], [0.125, 0.875], [0.5, 0.5]]
    # B = 4, so tops at .5, .75, 1. Hits at .5 and .75: gaps 1/2 and 1/4, whole. A miss at .625, halfway
    # between tops: -5/16 for each. A hit at .875, halfway too: 1/16 for each.
    # Hat 2: 1/2 - 5/16; hat 3: 1/4 - 5/16 + 1/16; hat 4: 1/16.
    measure = hc.ConfidenceECE(n_bins=4, smooth=True)
    assert measure(probs, [0, 1, 1, 0]) == (3 / 16 + 0 + 1 / 16) / 4
    offset = measure.offset_at(*packed(probs, [0, 1, 1, 0]), measure.parameters(None))
    np.testing.assert_array_equal(offset, [0, 0, 3 / 64, 0, 1 / 64])


def test_smooth_classwise_ece_by_hand():
    probs = [[0.25, 0.75], [0.375, 0.625], [0.875, 0.125], [1.0, 0.0]]
    # B = 2, labels 1 0 0 0, tops at 0, .5, 1. Class 0: -1/4 halfway between the first two; 5/8, a
    # quarter to 0; 1/8, a quarter to .5; 0. Class 1 has the same gaps, turned, from the other end.
    gaps = [-1 / 8 + 5 / 32, -1 / 8 + 15 / 32 + 1 / 32, 3 / 32]
    measure = hc.ClasswiseECE(n_bins=2, smooth=True)
    expected = 2 * sum(map(abs, gaps)) / 4 / 2
    assert value_of(measure, probs, [1, 0, 0, 0]) == expected
    offset = measure.offset_at(*packed(probs, [1, 0, 0, 0]), measure.parameters(None))
    np.testing.assert_array_equal(4 * offset, [*gaps, *(-gap for gap in reversed(gaps))])


def test_one_smooth_bin_is_two_hats():
    # 1 - .75 of the gap -.75 is for the hat at 0, .75 of it for that at 1; the class does not matter.
    for kind in (hc.ConfidenceECE, hc.ClasswiseECE):
        assert value_of(kind(n_bins=1, smooth=True), [[0.75, 0.25]], [1]) == 0.75


@pytest.mark.parametrize("kind", [hc.ConfidenceECE, hc.ClasswiseECE])
@pytest.mark.parametrize("excess", [2e-16, 1e-12])
def test_probabilities_that_rounding_has_left_outside_stay_with_the_outer_hats(kind, excess):
    for n_bins in (1, 3, 10):
        measure = kind(n_bins=n_bins, smooth=True)
        mixed = np.array([[1.0 + excess] * 9, [-excess] * 9])
        size = measure.state_size(2)
        # What stands behind the state and the scratch must be left alone.
        state = np.zeros(size + 8)
        scratch = np.zeros(measure.scratch_size(2, 9))
        labels, weights = np.ones(9, np.int32), np.ones(9)
        measure.accumulate(mixed, labels, weights, measure.parameters(None), state[:size], scratch)
        expected = np.zeros((size // (n_bins + 1), n_bins + 1))
        expected[0, -1] = -9.0
        expected[1:, 0] = 9.0
        np.testing.assert_allclose(state[:size], expected.ravel(), atol=1e-9)
        assert not state[size:].any()


@pytest.mark.parametrize("kind", [hc.ConfidenceECE, hc.ClasswiseECE])
def test_a_small_move_changes_a_smooth_ece_by_little_and_one_with_bins_by_a_leap(kind):
    rng = np.random.default_rng(4)
    n_bins, move = 10, 1e-7
    # On the edges of bins, where the largest probability is one class's by far.
    first = rng.integers(6, 10, size=60) / n_bins
    probs = np.stack([first, 1.0 - first], axis=1)
    labels = oracles.draw_labels(rng, probs)
    leaps = {}
    for smooth in (False, True):
        measure = kind(n_bins=n_bins, smooth=smooth)
        here = measure(probs, labels)
        there = []
        for _ in range(20):
            moved = probs[:, 0] + move * rng.uniform(-1, 1, size=60)
            there.append(measure(np.stack([moved, 1.0 - moved], axis=1), labels))
        leaps[smooth] = max(abs(value - here) for value in there)
    # Gaps are at most 1 and change by the move; the two shares of a row change by B times the move.
    bound = (2 * n_bins + 1) * move
    assert 0.0 < leaps[True] <= bound
    assert leaps[False] > 1000 * bound


def test_smooth_is_on_or_off():
    for kind in (hc.ConfidenceECE, hc.ClasswiseECE):
        with pytest.raises(hc.InvalidInputError, match="`smooth` must be True or False"):
            kind(smooth="False")


def test_an_edge_counts_in_the_bin_on_its_right():
    # .5 and .75 share the bin [.5, 1]: |2/2 - 1.25/2|. Were .5 in [0, .5]: (.5 + .25)/2.
    assert hc.ConfidenceECE(n_bins=2)([[0.5, 0.5], [0.75, 0.25]], [0, 0]) == 0.375
    # .25 opens the second bin of class 0: with B = 4, (1 - .25) and (0 - .375) add up there.
    measure = hc.ClasswiseECE(n_bins=4)
    probs = [[0.25, 0.75], [0.375, 0.625]]
    assert value_of(measure, probs, [0, 1]) == pytest.approx((0.375 + 0.75 + 0.375) / 4)


def test_hosmer_lemeshow_by_hand():
    probs = [[0.25, 0.75], [0.5, 0.5], [0.75, 0.25], [1.0, 0.0]]
    # B = 2, labels 1 0 1 0, so o = 1/2 in all four parts; p = 3/8, 7/8 and 1/8, 5/8.
    expected = 1 / 24 + 9 / 56 + 9 / 8 + 1 / 40
    assert hc.HosmerLemeshow(n_bins=2)(probs, [1, 0, 1, 0]) == pytest.approx(expected, rel=1e-14)


def test_hosmer_lemeshow_does_not_score_a_constant_predictor_zero():
    for labels in set(itertools.permutations([0, 0, 0, 1])):
        assert hc.HosmerLemeshow(n_bins=2)([[0.5, 0.5]] * 4, labels) == pytest.approx(0.5)


def test_hosmer_lemeshow_shares_tied_rows_between_parts():
    # Class 0: .125 | .5 .5 .5, cut 2 + 2; the three ties have the mean label 2/3 and put one
    # third of themselves into the first part: o = (0 + 2/3)/2, p = (.125 + .5)/2.
    # Class 1: .5 .5 .5 | .875 likewise: the first part is two thirds of the ties, o = 1/3.
    probs = [[0.5, 0.5], [0.125, 0.875], [0.5, 0.5], [0.5, 0.5]]
    first, second = (1 / 3 - 5 / 16) ** 2 / (5 / 16), (2 / 3 - 1 / 2) ** 2 / (1 / 2)
    third, fourth = (1 / 3 - 1 / 2) ** 2 / (1 / 2), (2 / 3 - 11 / 16) ** 2 / (11 / 16)
    for labels in ([0, 1, 0, 1], [1, 1, 0, 0], [0, 1, 1, 0]):
        value = hc.HosmerLemeshow(n_bins=2)(probs, labels)
        assert value == pytest.approx(first + second + third + fourth, rel=1e-13)


FAR = np.concatenate([np.geomspace(1e-12, 1e-3, 58), [0.0, 1.0]])[::-1]
DISORDER = {
    "falling": np.linspace(0.99, 0.01, 60),
    "crowded at 0": FAR,
    "crowded at 0, in any order": np.random.default_rng(0).permutation(FAR),
    # The two at the ends make buckets so wide that all others share one.
    "in one bucket": np.concatenate([0.5 + 1e-9 * np.arange(118)[::-1], [0.0, 1.0]]),
    "ties at the end": np.append(np.random.default_rng(4).random(200) / 2, np.full(100, 0.75)),
}


@pytest.mark.parametrize("name", DISORDER)
@pytest.mark.parametrize("n_bins", [4, 7])
def test_rows_in_any_disorder_are_sorted(name, n_bins):
    p = DISORDER[name]
    labels = (np.arange(len(p)) % 3 == 0).astype(np.int32)
    probs = np.stack([p, 1 - p], axis=1)
    expected = oracles.hl_cwise(probs, labels, n_bins)
    assert hc.HosmerLemeshow(n_bins=n_bins)(probs, labels) == pytest.approx(expected, rel=1e-9)


def test_the_two_smallest_probabilities_are_put_in_order():
    # So close that they share a bucket, and in falling order. The smallest is drawn twice and fills
    # the first of two bins.
    p = np.array([0.1001, 0.1, 0.5, 0.9])
    probs, counts = np.stack([1 - p, p], axis=1), np.array([1, 2, 1, 0])
    labels = [1, 0, 0, 1]
    measure = hc.HosmerLemeshow(n_bins=2)
    found = measure.evaluate(
        *packed(probs, labels), measure.parameters(probs), row_weights=counts.astype(float)
    )
    same(found, oracles.hl_cwise(*repeat_rows(probs, labels, counts), 2))


def test_skce_by_hand():
    probs = [[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]
    labels = [0, 0, 1]
    # p - y: (-1/4, 1/4), (-3/4, 3/4), (1/2, -1/2). Products: 3/8, -1/4, -3/4; TV: 1/2, 1/4, 1/4.
    near, far = math.exp(-0.25), math.exp(-0.5)
    pairs = 3 / 8 * far - 1 / 4 * near - 3 / 4 * near
    assert hc.SKCE(estimator="ul")(probs, labels) == pytest.approx(3 / 8 * far)
    assert hc.SKCE(estimator="uq")(probs, labels) == pytest.approx(pairs / 3)
    assert hc.SKCE(estimator="b")(probs, labels) == pytest.approx((2 * pairs + 7 / 4) / 9)
    gaussian = hc.SKCE(estimator="ul", bandwidth=2.0, kernel="gaussian")
    assert gaussian(probs, labels) == pytest.approx(3 / 8 * math.exp(-0.125))


# Infinities of Hosmer–Lemeshow


def test_what_was_ruled_out_and_came_true_is_infinite():
    probs = [[1.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
    measure = hc.HosmerLemeshow(n_bins=2)
    assert measure(probs, [0, 0, 0, 1]) == 0.0
    assert measure(probs, [0, 1, 0, 1]) == math.inf


def test_a_part_that_holds_a_positive_probability_beside_zeros_is_finite():
    probs = [[1.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
    # One part: class 0 expects 3/4, class 1 expects 1/4; half of each came.
    value = hc.HosmerLemeshow(n_bins=1)(probs, [0, 1, 0, 1])
    assert value == pytest.approx((1 / 4) ** 2 / (3 / 4) + (1 / 4) ** 2 / (1 / 4))


def test_an_infinite_cell_minus_an_infinite_offset_is_zero_and_never_nan():
    measure = hc.HosmerLemeshow(n_bins=2)
    mixed, labels = packed([[1.0, 0.0], [0.5, 0.5]], [1, 0])
    parameters = measure.parameters(mixed.T)
    offset = measure.offset_at(mixed, labels, parameters)
    assert np.isposinf(offset).sum() == 1
    assert not np.isnan(offset).any()
    assert measure.evaluate(mixed, labels, parameters) == math.inf
    assert measure.evaluate(mixed, labels, parameters, offset=offset) == 0.0
    # An offset that is infinite where the replicate is finite cannot be reached.
    finite = np.array([0, 0], np.int32)
    assert measure.evaluate(mixed, finite, parameters, offset=offset) == math.inf


@pytest.mark.parametrize("seed", range(20))
def test_hosmer_lemeshow_with_many_zeros_is_never_nan(seed):
    rng = np.random.default_rng(seed)
    n, k = 30, 4
    sure, drawn = forecasts(rng, n, k, "certain"), forecasts(rng, n, k, "smooth")
    probs = np.where(rng.random((n, 1)) < 0.6, sure, drawn)
    labels = rng.integers(k, size=n)
    measure = hc.HosmerLemeshow(n_bins=5)
    mixed, y = packed(probs, labels)
    parameters = measure.parameters(probs)
    offset = measure.offset_at(mixed, y, parameters)
    counts = counts_of(rng, n)
    again = measure.evaluate(mixed, y, parameters, row_weights=counts.astype(float), offset=offset)
    expected = oracles.recentered_value(
        "hl_cwise", *repeat_rows(probs, labels, counts), oracles.residual_hl(probs, labels, 5), 5
    )
    same(again, expected)
    assert measure(probs, labels) == math.inf


# Row weights, offsets, blocks


every_measure = pytest.mark.parametrize(
    "measure",
    [BINNED[name](n_bins=n_bins) for name, n_bins in itertools.product(BINNED, (1, 4, 10))]
    + [
        hc.SKCE(estimator=estimator, kernel=kernel, bandwidth=0.5)
        for estimator, kernel in itertools.product(ESTIMATORS, KERNELS)
    ],
    ids=lambda measure: "-".join([measure.name, *map(str, measure.settings().values())]),
)


def oracle_of(measure):
    """The oracle's value of the same measure, as a function of rows and labels."""
    function = getattr(oracles, measure.name)
    if isinstance(measure, hc.SKCE):
        return lambda p, y: function(p, y, measure.bandwidth, measure.kernel)
    return lambda p, y: function(p, y, measure.n_bins)


@every_measure
def test_integer_row_weights_against_rows_that_stand_there_as_often(measure):
    oracle, unit = oracle_of(measure), measure.rows_per_unit
    for seed, kind in itertools.product(range(3), KINDS):
        rng, probs, labels = case(seed, kind, smallest=2)
        probs, labels = probs[:21], labels[:21]
        counts = counts_of(rng, len(labels), unit)
        mixed, y = packed(probs, labels)
        value = measure.evaluate(
            mixed, y, measure.parameters(probs), row_weights=counts.astype(float)
        )
        same(value, oracle(*repeat_rows(probs, labels, counts, unit)))


@pytest.mark.parametrize("name", BINNED)
def test_the_offset_is_the_residual_vector_of_the_data(name):
    for seed, kind in itertools.product(range(4), KINDS):
        _, probs, labels = case(seed, kind)
        measure = BINNED[name](n_bins=4)
        offset = measure.offset_at(*packed(probs, labels), measure.parameters(probs))
        expected = RESIDUALS[name](probs, labels, 4)
        np.testing.assert_allclose(offset, expected, rtol=1e-12, atol=1e-14)


@every_measure
def test_a_recentered_replicate_against_the_oracle(measure):
    unit, name = measure.rows_per_unit, measure.name
    for seed, kind in itertools.product(range(2), KINDS):
        rng, at_hat, labels = case(seed, kind, smallest=2)
        at_hat, labels = at_hat[:13], labels[:13]
        at_lambda = 0.5 * at_hat + 0.5 * forecasts(rng, *at_hat.shape, kind)
        counts = counts_of(rng, len(labels), unit)
        mixed, y = packed(at_lambda, labels)
        parameters = measure.parameters(at_hat)
        offset = measure.offset_at(packed(at_hat, labels)[0], y, parameters)
        value = measure.evaluate(
            mixed, y, parameters, row_weights=counts.astype(float), offset=offset
        )
        rows = repeat_rows(at_lambda, labels, counts, unit)
        if isinstance(measure, hc.SKCE):
            hat = (at_hat, labels)
            if measure.estimator == "ul":
                hat = oracles.skce_ul(at_hat, labels, measure.bandwidth, measure.kernel)
            settings = {"bandwidth": measure.bandwidth, "kernel": measure.kernel}
        else:
            hat = RESIDUALS[name](at_hat, labels, measure.n_bins)
            settings = {"n_bins": measure.n_bins}
        same(value, oracles.recentered_value(name, *rows, hat, **settings))


def test_the_measures_that_add_up_over_blocks_are_these():
    halves = {name: hc.measures.resolve(name) for name in hc.measures.available()}
    assert {*ADDITIVE} >= {*BINNED, "skce_ul"} - {"hl_cwise"}
    assert not {*ADDITIVE} & {"hl_cwise", "skce_uq", "skce_b"}
    assert {name for name, g in halves.items() if g.streams()} == {*ADDITIVE}
    assert not hc.SKCE(bandwidth="median").streams()
    assert not hc.measures.resolve(lambda probs, labels: 0.0).streams()
    assert [each.rows_per_unit for each in hc.SKCE.defaults()] == [2, 1, 1]
    assert ["ordered" in each.traits for each in hc.SKCE.defaults()] == [True, False, False]


@pytest.mark.parametrize("name", ADDITIVE)
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_rows_add_up_to_the_value(name, kind):
    measure = hc.measures.resolve(name)
    for seed in range(6):
        rng, probs, labels = case(seed, kind, smallest=2)
        n, k = probs.shape
        mixed, y = packed(probs, labels)
        parameters = measure.parameters(probs)
        counts = counts_of(rng, n, measure.rows_per_unit).astype(float)
        offset = measure.offset_at(mixed, y, parameters)
        state = np.zeros(measure.state_size(k))
        start = 0
        while start < n:
            stop = min(n, start + 2 * int(rng.integers(1, 8)))
            block = np.ascontiguousarray(mixed[:, start:stop])
            scratch = np.full(measure.scratch_size(k, stop - start), np.nan)
            measure.accumulate(block, y[start:stop], counts[start:stop], parameters, state, scratch)
            start = stop
        value = measure.finish(state, offset, parameters, n)
        whole = measure.evaluate(mixed, y, parameters, row_weights=counts, offset=offset)
        assert value == pytest.approx(whole, abs=1e-14)


LABELLED_TOGETHER = [
    *(hc.SKCE(estimator=e, kernel=k, bandwidth=0.5) for e in ("ul", "uq", "b") for k in KERNELS),
    *(hc.HosmerLemeshow(n_bins=n) for n in (1, 7, 10, 400)),
    *(hc.ConfidenceECE(n_bins=n, smooth=smooth) for n in (1, 10) for smooth in (False, True)),
    *(hc.ClasswiseECE(n_bins=n, smooth=smooth) for n in (1, 10) for smooth in (False, True)),
]


@pytest.mark.parametrize("measure", LABELLED_TOGETHER, ids=repr)
@pytest.mark.parametrize(("n", "k"), [(2, 2), (129, 2), (256, 3), (257, 7), (300, 11)])
def test_labellings_taken_together_have_the_values_that_they_have_alone(measure, n, k):
    rng = np.random.default_rng(n)
    for kind in ("mixed", "tenths", "tiny"):
        probs = forecasts(rng, n, k, "mixed")
        if kind == "tenths":
            probs = rng.multinomial(10, np.full(k, 1 / k), size=n) / 10
        if kind == "tiny":
            probs[:, 0] = 5e-324
        mixed = np.ascontiguousarray(probs.T)
        drawn = rng.integers(k, size=(n, 32)).astype(np.uint16)
        drawn[:, 3] = k - 1  # all rows share a label, and most labels have no row
        together, alone = np.empty(32), np.empty(1)
        loop, parameters = measure.of_labellings(k), measure.parameters(mixed.T)
        loop(mixed, drawn, parameters, together)
        for d in range(5):
            expected = measure.evaluate(mixed, drawn[:, d].astype(np.int32), parameters)
            assert together[d] == pytest.approx(expected, rel=1e-11, abs=1e-14)
            loop(mixed, drawn[:, d : d + 1].copy(), parameters, alone)
            assert alone[0] == together[d]


@pytest.mark.parametrize("test", [hc.calibration_test, hc.truth_test])
def test_a_test_is_the_same_whether_labellings_are_taken_together(test, monkeypatch):
    rng = np.random.default_rng(3)
    probs, labels = rng.dirichlet(np.ones(3), size=(140, 2)), rng.integers(3, size=140)
    options = {"measure": "skce_uq", "n_resamples": 45, "rng": 0}
    together, threads = (test(probs, labels, **options, n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_array_equal(together.null_distribution, threads.null_distribution)
    monkeypatch.setattr(hc.SKCE, "of_labellings", lambda self, n_classes: None)
    alone = test(probs, labels, **options)
    assert together.pvalue == alone.pvalue
    np.testing.assert_allclose(together.null_distribution, alone.null_distribution, atol=1e-13)
    assert not np.array_equal(together.null_distribution, alone.null_distribution)


# What a loop leaves behind must not change what it says next


@every_measure
def test_what_working_memory_held_before_does_not_matter(measure):
    rng = np.random.default_rng(8)
    n, k = 81, 3
    state = np.full(measure.state_size(k), 7.0)
    scratch = np.full(measure.scratch_size(k, n), 9.0)
    ones, nothing = np.ones(n), measure.no_offset(k)
    ascending = np.sort(rng.random(n))
    ramp = np.stack([ascending, 1 - ascending, np.zeros(n)], axis=1)
    # A ramp and its reverse in turn: the longest way for a sort that starts at the last order.
    for probs in (ramp, ramp[::-1], ramp, forecasts(rng, n, k, "mixed"), ramp[:, [2, 1, 0]]):
        mixed, labels = packed(probs, rng.integers(k, size=n))
        parameters = measure.parameters(probs)
        value = measure.value(mixed, labels, ones, parameters, nothing, state, scratch)
        assert value == measure.evaluate(mixed, labels, parameters)


def test_settings_are_given_by_name_and_a_kernel_keeps_its_own():
    for kind in (hc.ConfidenceECE, hc.ClasswiseECE, hc.HosmerLemeshow, hc.SKCE):
        with pytest.raises(TypeError, match="positional"):
            kind(5)
    kernel = hc.kernels.GaussianTV(bandwidth=0.2)
    measure = hc.SKCE(estimator="b", kernel=kernel)
    assert measure.settings() == {"estimator": "b", "bandwidth": 0.2, "kernel": "gaussian"}
    assert hc.SKCE(kernel=kernel, bandwidth=0.2).bandwidth == 0.2
    with pytest.raises(hc.InvalidInputError, match="`bandwidth` must be left out"):
        hc.SKCE(kernel=kernel, bandwidth=0.3)

"""From a statistic and its null values to a decision, against the rules spelled out."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest

import oracles
from hullcal import pvalues


def random_null(seed):
    """Null values with ties, near ties and infinities, on some scale, and levels worth trying."""
    rng = np.random.default_rng(seed)
    d = int(rng.choice([1, 2, 5, 9, 19, 20, 39, 99, 100]))
    scale = float(rng.choice([1e-18, 1e-3, 1.0, 1e6]))
    null = rng.integers(-3, 6, size=d) * scale
    null = null * (1 + rng.integers(-3, 4, size=d) * 2.0**-50)
    null[rng.random(d) < 0.15] = math.inf
    statistics = [*null, *rng.normal(size=5) * scale, math.inf, 0.0]
    statistics += [math.nextafter(t, math.inf) for t in null[:20]]
    statistics += [math.nextafter(t, -math.inf) for t in null[:20]]
    alphas = [*rng.random(8), 0.01, 0.05, 0.1, *(c / (d + 1) for c in range(1, min(d, 12) + 1))]
    alphas += [math.nextafter(alpha, 0.0) for alpha in alphas]
    alphas += [math.nextafter(alpha, 1.0) for alpha in alphas]
    return null, statistics, [alpha for alpha in alphas if 0.0 < alpha < 1.0]


def test_the_pvalue_by_hand():
    assert pvalues.monte_carlo(0.5, np.array([0.1, 0.5, 0.5, 0.7])) == 4 / 5
    assert pvalues.monte_carlo(0.8, np.array([0.1, 0.5, 0.5, 0.7])) == 1 / 5
    assert pvalues.monte_carlo(0.5, np.array([0.5 - 1e-15, 0.5 - 1e-12])) == 2 / 3
    assert pvalues.monte_carlo(math.inf, np.array([math.inf, 1e300, 0.0])) == 2 / 4
    assert pvalues.monte_carlo(1.0, np.array([math.inf, 0.0])) == 2 / 3


def test_a_tie_is_judged_on_the_scale_of_the_statistic_and_of_one():
    eps = 2.0**-52
    # Below 1 the tolerance is 100 eps; above, 100 eps times the statistic.
    assert pvalues.exceeds([1e-20 - 99 * eps, 1e-20 - 101 * eps], 1e-20).tolist() == [True, False]
    assert pvalues.exceeds([1e6 - 9e7 * eps, 1e6 - 2e8 * eps], 1e6).tolist() == [True, False]
    assert pvalues.exceeds([-1e6 - 9e7 * eps, -1e6 - 2e8 * eps], -1e6).tolist() == [True, False]


def test_infinite_equals_infinite_and_nothing_else():
    everything = [-math.inf, -1.0, 0.0, 1e308, math.inf]
    assert pvalues.exceeds(everything, math.inf).tolist() == [False] * 4 + [True]
    assert pvalues.exceeds(everything, -math.inf).tolist() == [True] * 5
    assert pvalues.exceeds(everything, 0.0).tolist() == [False, False, True, True, True]


@pytest.mark.parametrize("seed", range(25))
def test_the_pvalue_against_the_oracle(seed):
    null, statistics, _ = random_null(seed)
    for t in statistics:
        pvalue = pvalues.monte_carlo(t, null)
        assert pvalue == oracles.p_value(t, null)
        assert 1 / (len(null) + 1) <= pvalue <= 1.0
        assert pvalues.exceeds(null, t).tolist() == [oracles.at_least(t0, t) for t0 in null]


def test_the_critical_value_by_hand():
    null = np.array([0.4, 0.1, 0.3, 0.2])  # D + 1 = 5
    assert pvalues.critical_value(null, 0.2) == 0.4
    assert pvalues.critical_value(null, 0.39) == 0.4
    assert pvalues.critical_value(null, 0.4) == 0.3
    assert pvalues.critical_value(null, 0.19) == math.inf
    assert null.tolist() == [0.4, 0.1, 0.3, 0.2]


@pytest.mark.parametrize("seed", range(25))
def test_the_critical_value_is_the_oracles_and_what_is_above_it_is_rejected(seed):
    null, statistics, alphas = random_null(seed)
    for alpha in alphas:
        critical = pvalues.critical_value(null, alpha)
        assert critical == oracles.critical_value(null, alpha)
        for t in statistics:
            rejected = pvalues.monte_carlo(t, null) <= alpha
            assert oracles.is_above(t, critical) == rejected


@pytest.mark.parametrize("n_resamples", [1, 2, 9, 19, 99, 100, 999, 1000])
def test_how_many_ranks_may_be_rejected_is_counted_in_doubles(n_resamples):
    ranks = [c / (n_resamples + 1) for c in range(1, n_resamples + 2)]
    levels = [*ranks[:200], 0.01, 0.05, 0.1, 0.3, 0.999]
    for alpha in {*levels, *(math.nextafter(a, 0) for a in levels)}:
        if alpha < 1.0:
            expected = sum(1 for rank in ranks if rank <= alpha)
            assert pvalues.rejections_allowed(n_resamples, alpha) == expected


@pytest.mark.parametrize(
    "alpha", [0.9, 0.5, 0.49, 1 / 3, 0.3, 0.1, 0.05, 0.01, 0.005, 0.001, *(1 / n for n in (7, 49))]
)
def test_the_smallest_number_of_resamples_that_can_reject(alpha):
    for level in (alpha, math.nextafter(alpha, 0.0), math.nextafter(alpha, 1.0)):
        expected = next(d for d in itertools.count(1) if 1 / (d + 1) <= level)
        assert pvalues.smallest_n_resamples(level) == expected
        assert pvalues.rejections_allowed(expected, level) >= 1


@pytest.mark.parametrize("alpha", [5e-324, 1e-310, 3e-300, 1e-17])
def test_a_level_that_no_test_reaches_still_has_its_number_of_resamples(alpha):
    smallest = pvalues.smallest_n_resamples(alpha)
    assert 1 / (smallest + 1) <= alpha < 1 / smallest


@pytest.mark.parametrize("n_resamples", [2**53, 10**18, 10**30, 10**400])
def test_more_resamples_than_doubles_can_count_have_their_number_of_ranks(n_resamples):
    for alpha in (0.2, 0.13, 1e-300):
        k = pvalues.rejections_allowed(n_resamples, alpha)
        assert k / (n_resamples + 1) <= alpha < (k + 1) / (n_resamples + 1)


@pytest.mark.parametrize("n_resamples", [1, 2, 19, 99, 1000])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_the_interval_against_scipys_clopper_pearson(n_resamples, confidence):
    for count in {0, 1, n_resamples // 20, n_resamples // 2, n_resamples - 1, n_resamples}:
        interval = pvalues.interval(count, n_resamples, confidence)
        expected = binomtest(count, n_resamples).proportion_ci(confidence, method="exact")
        assert interval == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-12)
        assert interval[0] <= count / n_resamples <= interval[1]


def test_holm_by_hand():
    assert pvalues.holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert pvalues.holm([0.5, 0.9, 0.001]) == pytest.approx([1.0, 1.0, 0.003])
    assert pvalues.holm([]).tolist() == []
    assert pvalues.holm([0.2]).tolist() == [0.2]


@pytest.mark.parametrize("seed", range(20))
def test_holm_against_the_oracle(seed):
    rng = np.random.default_rng(seed)
    raw = np.round(rng.random(int(rng.integers(1, 12))) ** 3, 2)  # with ties
    adjusted = pvalues.holm(raw)
    assert adjusted == pytest.approx(oracles.holm(raw.tolist()), rel=1e-14)
    assert np.all((adjusted >= raw) & (adjusted <= 1.0))
    order = rng.permutation(len(raw))
    np.testing.assert_array_equal(pvalues.holm(raw[order]), adjusted[order])

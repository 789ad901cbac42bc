"""Rows drawn with replacement from a tree: every number against the distribution it is said to have.

Seeds are fixed, so a test either always passes or always fails. Every statistical check has level 1e-4;
there are about two hundred of them, so correct code fails one with 2 % of all choices of seeds.
"""

import math

import numpy as np
import pytest
from scipy import stats

from hullcal._compiled import drawn_rows, streams
from hullcal._compiled.drawn_rows import LEAF, draw_counts, leaf_draws
from hullcal.objectives import lines_2_4_5

TINY = 1e-4  # level of each check
SIZES = [LEAF, LEAF + 1, 2 * LEAF, 10 * LEAF + 7]


def plain(function):
    """The Python source of a loop, compiled or not."""
    return getattr(function, "py_func", function)


def uniforms_beside(values, n, p, seed):
    """Numbers that are uniform if and only if the values are Binomial(n, p): no ties are left."""
    values = np.asarray(values)
    share = np.random.default_rng(seed).random(len(values))
    below = stats.binom.cdf(values - 1, n, p)
    return below + share * (stats.binom.cdf(values, n, p) - below)


def assert_binomial(values, n, p, seed=0):
    assert stats.kstest(uniforms_beside(values, n, p, seed), "uniform").pvalue > TINY


def assert_cells(values, n, p):
    """Chi-squared over single values, those of expectation below 8 joined with their outer ones."""
    values = np.asarray(values)
    low, high = (int(v) for v in stats.binom.ppf([1e-9, 1 - 1e-9], n, p))
    inner = np.arange(low, high + 1)
    expected = len(values) * stats.binom.pmf(inner, n, p)
    enough = inner[np.flatnonzero(expected >= 8.0)]
    first, last = int(enough[0]), int(enough[-1])
    clipped = np.clip(values, first, last)
    observed = np.bincount(clipped - first, minlength=last - first + 1)
    expected = stats.binom.pmf(np.arange(first, last + 1), n, p)
    expected[0], expected[-1] = stats.binom.cdf(first, n, p), stats.binom.sf(last - 1, n, p)
    if len(expected) > 1:
        assert stats.chisquare(observed, len(values) * expected).pvalue > TINY


# Binomial numbers ------------------------------------------------------------------------------


def binomials(n, p, n_draws, seed=1, function=drawn_rows._binomial):
    """One number at each of many addresses, over replicates and nodes."""
    key = streams.key_of(seed)
    return np.array([function(n, p, key, i % 97, 1 + i // 97) for i in range(n_draws)])


@pytest.mark.parametrize(
    ("n", "p"),
    [
        (n, p)
        for n in (1, 2, 7, 19, 300, 5_000, 90_000)
        for p in (1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5)
        if n * p < 10
    ],
)
def test_inversion_is_the_quantile_of_its_uniform_number(n, p):
    key = streams.key_of(3)
    for node in range(1, 400):
        level = streams.uniform(key, streams.SPLITS, 5, node, 0)
        found = drawn_rows._few(n, p, key, 5, node)
        below, above = stats.binom.cdf([found - 1, found], n, p)
        assert below - 1e-11 <= level <= above + 1e-11


@pytest.mark.parametrize(
    ("n", "p"),
    [
        # From 19 to 20, 33 to 34, 99 to 101 the mean reaches 10: inversion, then rejection.
        *((n, 0.5) for n in (1, 12, 19, 20, 21, 1_024, 10_247)),
        *((n, p) for n in (33, 34) for p in (0.3, 0.7)),
        *((n, p) for n in (99, 101) for p in (0.1, 0.9)),
        *((n, p) for n in (99_999, 100_001) for p in (1e-4, 1 - 1e-4)),
        *((1, 0.02), (3, 0.9), (2_048, 0.25), (1_025, 1_024 / 1_025), (10_247, 6 / 11)),
    ],
)
def test_binomial_numbers_against_scipy(n, p):
    found = binomials(n, p, 20_000)
    assert found.min() >= 0
    assert found.max() <= n
    assert_cells(found, n, p)
    assert_binomial(found, n, p)


def literal_rejection(n, p, key, replicate, node):
    """Hörmann (1993): transformed rejection without the squeeze, with scipy's chances."""
    spread = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    alpha = (2.83 + 5.1 / b) * spread
    at_mode = stats.binom.logpmf(math.floor((n + 1) * p), n, p)
    for trial in range(1_000):
        u = streams.uniform(key, streams.SPLITS, replicate, node, 2 * trial) - 0.5
        v = streams.uniform(key, streams.SPLITS, replicate, node, 2 * trial + 1)
        beside = 0.5 - abs(u)
        found = math.floor((2 * a / beside + b) * u + n * p + 0.5)
        if not 0 <= found <= n:
            continue
        ratio = math.exp(stats.binom.logpmf(found, n, p) - at_mode)
        if v * alpha / (a / beside**2 + b) <= ratio:
            return found
    raise AssertionError("a thousand trials in vain")


@pytest.mark.parametrize(
    ("n", "p"), [(20, 0.5), (100, 0.1), (100_000, 1.1e-4), (1_500, 0.4), (10**6, 0.5)]
)
def test_the_squeeze_only_spares_time(n, p):
    key = streams.key_of(21)
    for node in range(1, 1_500):
        assert drawn_rows._many(n, p, key, 4, node) == literal_rejection(n, p, key, 4, node)


def test_the_check_would_see_a_share_that_is_a_little_wrong():
    # The control: shares of one unit in a leaf too many are told apart.
    found = binomials(10**6, 1_025 / 2_048, 4_000)
    assert stats.kstest(uniforms_beside(found, 10**6, 0.5, 0), "uniform").pvalue < TINY


# Draws of a leaf -------------------------------------------------------------------------------


def shares(n_units):
    """Of each leaf, in units."""
    return np.array([min(LEAF, n_units - first) for first in range(0, n_units, LEAF)])


def literal_leaves(key, replicate, n_units):
    """The tree in words: half of the leaves to the left, nodes numbered 1, 2 and 3, 4 to 7, ..."""
    sizes = shares(n_units)

    def split(leaves, draws, node):
        if len(leaves) == 1:
            return [draws]
        half = len(leaves) // 2
        share = leaves[:half].sum() / leaves.sum()
        left = drawn_rows._binomial(draws, share, key, replicate, node)
        right = draws - left
        return [*split(leaves[:half], left, 2 * node), *split(leaves[half:], right, 2 * node + 1)]

    return split(sizes, n_units, 1)


@pytest.mark.parametrize("n_units", [*SIZES, 3 * LEAF, 7 * LEAF + 1, 37 * LEAF + 500])
def test_draws_of_leaves_against_the_tree_in_words(n_units):
    key = streams.key_of(8)
    replicates = np.array([0, 3, 17, 2**31])
    expected = [literal_leaves(key, int(d), n_units) for d in replicates]
    np.testing.assert_array_equal(leaf_draws(key, replicates, n_units), expected)


@pytest.mark.parametrize("n_units", [*SIZES, 7 * LEAF + 1])
def test_a_range_of_leaves_has_the_columns_of_all_leaves(n_units):
    key, replicates = streams.key_of(4), np.arange(20)
    whole = leaf_draws(key, replicates, n_units)
    n_leaves = whole.shape[1]
    for first in range(n_leaves + 1):
        for last in range(first, n_leaves + 1):
            part = leaf_draws(key, replicates, n_units, (first, last))
            np.testing.assert_array_equal(part, whole[:, first:last])


@pytest.mark.parametrize("n_units", [LEAF + 1, 2 * LEAF, 3 * LEAF + 512, 10 * LEAF + 7])
def test_draws_of_leaves_are_multinomial(n_units):
    found = leaf_draws(streams.key_of(5), np.arange(3_000), n_units)
    sizes = shares(n_units)
    for leaf, size in enumerate(sizes):
        assert_binomial(found[:, leaf], n_units, size / n_units, seed=leaf)
    # Two leaves together are binomial too, which no other covariance would make them.
    for leaf in range(len(sizes)):
        for other in range(leaf):
            size = sizes[leaf] + sizes[other]
            if size < n_units:
                both = found[:, leaf] + found[:, other]
                assert_binomial(both, n_units, size / n_units, seed=leaf)


# Rows ------------------------------------------------------------------------------------------


def counts(seed, first, n_draws, n_samples, rows_per_unit=1):
    out = np.zeros((n_draws, n_samples))
    draw_counts(streams.key_of(seed), first, rows_per_unit, out)
    return out


def literal_counts(key, replicate, n_units):
    """Leaf by leaf and draw by draw."""
    out = np.zeros(n_units)
    for leaf, draws in enumerate(literal_leaves(key, replicate, n_units)):
        for draw in range(draws):
            level = streams.uniform(key, streams.ROWS, replicate, draw, leaf)
            out[leaf * LEAF + int(level * shares(n_units)[leaf])] += 1
    return out


@pytest.mark.parametrize("n_samples", [2, 3, 1_000, *SIZES, 2 * LEAF + 3])
def test_pairs_stay_together_and_are_drawn_as_the_rows_of_half_the_data(n_samples):
    even = n_samples // 2 * 2
    found = counts(1, 5, 20, n_samples, rows_per_unit=2)
    np.testing.assert_array_equal(found[:, :even:2], counts(1, 5, 20, even // 2))
    np.testing.assert_array_equal(found[:, 1:even:2], found[:, :even:2])
    np.testing.assert_array_equal(found[:, even:], 0.0)


@pytest.mark.parametrize("n_samples", [1, 2, 3, 100, LEAF - 1, *SIZES[:3], 5 * LEAF + 3])
def test_counts_against_leaves_and_draws_in_words(n_samples):
    key = streams.key_of(12)
    expected = [literal_counts(key, d, n_samples) for d in (7, 8)]
    np.testing.assert_array_equal(counts(12, 7, 2, n_samples), expected)


@pytest.mark.parametrize("n_samples", [700, LEAF + 1, 2 * LEAF + 500])
def test_the_count_of_a_row_is_binomial_and_no_row_is_preferred(n_samples):
    found = np.concatenate([counts(13, d, 500, n_samples) for d in range(0, 3_000, 500)])
    for row in (0, n_samples // 2, min(n_samples - 1, LEAF - 1), n_samples - 1):
        assert_cells(found[:, row].astype(int), n_samples, 1 / n_samples)
    assert stats.chisquare(found.sum(axis=0)).pvalue > TINY
    # Rows of one leaf and of two: two rows together are binomial.
    for a, b in [(0, 1), (0, n_samples - 1), (n_samples - 2, n_samples - 1)]:
        assert_cells((found[:, a] + found[:, b]).astype(int), n_samples, 2 / n_samples)


def test_the_marginal_check_would_see_one_row_left_out():
    found = counts(13, 0, 3_000, 700)
    found[:, 0] = 0.0
    assert stats.chisquare(found.sum(axis=0)).pvalue < TINY


def test_only_where_order_matters_are_rows_drawn_in_any_order():
    key, n = streams.key_of(5), LEAF + 76
    rows, levels = np.empty(n, dtype=np.uint32), np.empty(n)
    draws = leaf_draws(key, np.arange(1), n)[0]
    lines_2_4_5._line_2(key, 0, lines_2_4_5._RESAMPLE, draws, rows, levels)
    first = int(draws[0])
    assert rows[:first].max() < LEAF <= rows[first:].min()
    lines_2_4_5._line_2(key, 0, lines_2_4_5._RESAMPLE_IN_ANY_ORDER, draws, rows, levels)
    assert rows[:first].max() >= LEAF


# Addresses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_samples", [LEAF, 5_003, 100_000])
def test_no_two_draws_of_a_replicate_have_the_same_address(n_samples, monkeypatch):
    asked = []

    def uniform(key, purpose, replicate, row, copy):
        asked.append((int(purpose), int(replicate), int(row), int(copy)))
        return streams.uniform(key, purpose, replicate, row, copy)

    # The very source of the loops, uncompiled, over a generator that keeps a record.
    for module in (drawn_rows, lines_2_4_5):
        monkeypatch.setattr(module, "uniform", uniform)
    for name in ("_few", "_many", "_binomial", "_split", "unit_drawn", "draw_rows"):
        monkeypatch.setattr(drawn_rows, name, plain(getattr(drawn_rows, name)))
    monkeypatch.setattr(lines_2_4_5, "draw_rows", drawn_rows.draw_rows)
    key = streams.key_of(18)
    draws = leaf_draws(key, np.array([6]), n_samples)[0]
    rows = np.empty(n_samples, dtype=np.uint32)
    plain(lines_2_4_5._line_2)(key, 6, lines_2_4_5._RESAMPLE, draws, rows, np.empty(n_samples))
    words = {tuple(word % 2**32 for word in address) for address in asked}
    assert len(words) == len(asked)
    assert len(asked) >= 2 * n_samples
    assert {address[1] for address in asked} == {6}
    # It is what the compiled loops draw.
    np.testing.assert_array_equal(
        np.bincount(rows, minlength=n_samples), counts(18, 6, 1, n_samples)[0]
    )

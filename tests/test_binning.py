"""The edge rule, one edge at a time, against rational arithmetic."""

import bisect
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

import oracles
from hullcal import InvalidInputError
from hullcal.binning import bin_index, bin_indices, edges, reliability_table

MANY = [*range(1, 65), 99, 100, 101, 127, 128, 250, 360, 997, 1000, 1024, 4096]


def neighbourhood(n_bins):
    """Every edge with the doubles on both sides of it, as far as they are probabilities."""
    points = [0.0, math.nextafter(0.0, 1.0), math.nextafter(1.0, 0.0), 1.0]
    for j in range(n_bins + 1):
        edge = j / n_bins
        points += [math.nextafter(edge, 0.0), edge, math.nextafter(edge, 1.0)]
    return [p for p in points if 0.0 <= p <= 1.0]


def rational_bin(p, rational_edges):
    """How many of the inner edges j/B (the doubles, as rationals) are at most p."""
    return bisect.bisect_right(rational_edges, Fraction(p))


def binned(points, n_bins):
    out = np.full(len(points), 12345, dtype=np.uint32)
    bin_indices(np.asarray(points, dtype=float), edges(n_bins), out)
    return out.tolist()


@pytest.mark.parametrize("n_bins", MANY)
def test_every_edge_and_its_neighbours_against_rational_arithmetic(n_bins):
    rational_edges = [Fraction(j / n_bins) for j in range(1, n_bins)]
    points = neighbourhood(n_bins)
    expected = [rational_bin(p, rational_edges) for p in points]
    bin_edges = edges(n_bins)
    assert [bin_index(p, bin_edges) for p in points] == expected
    assert binned(points, n_bins) == expected
    # One at a time, the loop without branches decides alone whether an edge is near.
    assert [binned([p], n_bins)[0] for p in points[:600]] == expected[:600]


def test_the_edges_that_linspace_misplaces():
    assert binned([0.3, 0.6, 0.7], 10) == [3, 6, 7]
    assert (np.linspace(0, 1, 11)[[3, 6, 7]] > [0.3, 0.6, 0.7]).all()


def test_the_edges_that_a_product_misplaces():
    misplaced = [j for j in range(100) if int(j / 100 * 100) != j]
    assert misplaced == [29, 57, 58]
    assert binned([j / 100 for j in range(100)], 100) == list(range(100))


def test_edges_are_quotients_and_the_last_bin_is_closed():
    for n_bins in MANY:
        assert edges(n_bins)[:-1].tolist() == [j / n_bins for j in range(n_bins)]
        assert edges(n_bins)[-1] == math.inf


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    st.lists(
        st.one_of(
            st.floats(0.0, 1.0),
            st.fractions(0, 1, max_denominator=120).map(float),
            st.builds(
                lambda f, up: math.nextafter(float(f), float(up)),
                st.fractions(0, 1, max_denominator=60),
                st.integers(0, 1),
            ),
        ),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 120),
)
def test_any_probability_is_put_where_rational_arithmetic_puts_it(points, n_bins):
    rational_edges = [Fraction(j / n_bins) for j in range(1, n_bins)]
    expected = [rational_bin(p, rational_edges) for p in points]
    assert binned(points, n_bins) == expected
    assert [bin_index(p, edges(n_bins)) for p in points] == expected
    assert [oracles.bin_of(p, n_bins) for p in points] == expected


def test_company_does_not_change_the_bin_of_a_probability():
    rng = np.random.default_rng(0)
    for n_bins in (7, 10, 15, 100):
        smooth, on_edges = rng.random(200), rng.integers(0, n_bins + 1, size=200) / n_bins
        alone = binned(smooth, n_bins)
        together = np.stack([smooth, on_edges], axis=1).ravel()
        assert binned(together, n_bins)[::2] == alone
        assert binned(together, n_bins)[1::2] == [
            min(round(e * n_bins), n_bins - 1) for e in on_edges
        ]


@pytest.mark.parametrize("n_bins", [1, 2, 7, 10, 100])
def test_a_zero_that_rounding_made_negative_is_in_the_first_bin(n_bins):
    # Moving weight from one member to another leaves such zeros behind, and one of them beside a
    # probability on an edge must not be counted in a bin before the first.
    for rounding in (-5e-324, -1e-300, -1e-17, -1e-16, -2e-15):
        assert bin_index(rounding, edges(n_bins)) == 0
        assert binned([rounding], n_bins) == [0]
        beside_an_edge = binned([rounding, 0.5, 1.0], n_bins)
        assert beside_an_edge == [0, oracles.bin_of(0.5, n_bins), n_bins - 1]


@pytest.mark.parametrize("n_bins", [1, 2, 7, 10, 100])
@pytest.mark.parametrize("rounding", [2.0**-52, 1e-15, 1e-12])
def test_a_one_that_rounding_made_larger_is_in_the_last_bin(n_bins, rounding):
    assert bin_index(1.0 + rounding, edges(n_bins)) == n_bins - 1
    assert binned([1.0 + rounding], n_bins) == [n_bins - 1]
    assert binned([0.5, 1.0 + rounding], n_bins)[1] == n_bins - 1


# Reliability tables


def literal_table(probs, labels, n_bins):
    counts, confidence, accuracy = [0] * n_bins, [0.0] * n_bins, [0.0] * n_bins
    for p, y in zip(probs, labels, strict=True):
        top = oracles.predicted_class(p)
        j = oracles.bin_of(p[top], n_bins)
        counts[j] += 1
        confidence[j] += float(p[top])
        accuracy[j] += float(y == top)
    for j in range(n_bins):
        confidence[j] = confidence[j] / counts[j] if counts[j] else math.nan
        accuracy[j] = accuracy[j] / counts[j] if counts[j] else math.nan
    return counts, confidence, accuracy


@pytest.mark.parametrize("n_bins", [1, 2, 4, 10, 16, 100])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_reliability_table_against_a_literal_loop(k, n_bins):
    rng = np.random.default_rng([k, n_bins])
    smooth = rng.dirichlet(np.ones(k), size=80)
    edgy = rng.multinomial(10, np.full(k, 1 / k), size=80) / 10
    probs, labels = np.vstack([smooth, edgy, np.eye(k)]), rng.integers(k, size=160 + k)
    table = reliability_table(probs, labels, n_bins=n_bins)
    counts, confidence, accuracy = literal_table(probs, labels, n_bins)
    assert table.counts.tolist() == counts
    np.testing.assert_allclose(table.confidence, confidence, rtol=1e-13)
    np.testing.assert_allclose(table.accuracy, accuracy, rtol=1e-13)
    np.testing.assert_array_equal(table.edges, [j / n_bins for j in range(n_bins + 1)])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_bins", [5, 10, 15])
def test_the_reliability_table_against_scikit_learn(n_bins, seed):
    # Away from the edges, where scikit-learn's bins are closed on the right.
    rng = np.random.default_rng(seed)
    probs, labels = rng.dirichlet(np.ones(3), size=200), rng.integers(3, size=200)
    table = reliability_table(probs, labels, n_bins=n_bins)
    accuracy, confidence = calibration_curve(
        probs.argmax(axis=1) == labels, probs.max(axis=1), n_bins=n_bins, strategy="uniform"
    )
    filled = table.counts > 0
    np.testing.assert_allclose(table.accuracy[filled], accuracy, rtol=1e-13)
    np.testing.assert_allclose(table.confidence[filled], confidence, rtol=1e-13)


def test_an_empty_bin_is_nan_and_nothing_is_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = reliability_table([[0.75, 0.25]], [0], n_bins=4)
    assert table.counts.tolist() == [0, 0, 0, 1]
    assert np.isnan(table.accuracy).tolist() == [True, True, True, False]
    assert np.isnan(table.confidence).tolist() == [True, True, True, False]


def test_the_reliability_table_refuses_what_a_measure_refuses():
    with pytest.raises(InvalidInputError, match="`probs`"):
        reliability_table([[0.5, math.nan]], [0])
    with pytest.raises(InvalidInputError, match="`labels`"):
        reliability_table([[0.5, 0.5]], [2])
    with pytest.raises(InvalidInputError, match="`n_bins`"):
        reliability_table([[0.5, 0.5]], [0], n_bins=0)

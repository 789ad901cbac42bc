"""The simplex: its projection against all faces, and its draws against theory."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from hullcal import InvalidInputError
from hullcal.simplex import dirichlet, normalise, project


def by_enumeration(point):
    """The nearest of the projections onto all faces that lie on the simplex."""
    best, nearest = math.inf, None
    for size in range(1, len(point) + 1):
        for face in map(list, itertools.combinations(range(len(point)), size)):
            weights = np.zeros(len(point))
            weights[face] = point[face] - (point[face].sum() - 1.0) / size
            distance = ((weights - point) ** 2).sum()
            if weights.min() >= 0.0 and distance < best:
                best, nearest = distance, weights
    return nearest


def assert_on_the_simplex(weights):
    assert np.all(weights >= 0.0)
    assert abs(weights.sum() - 1.0) <= 1e-12


def test_projections_by_hand():
    np.testing.assert_allclose(project([0.5, 0.7]), [0.4, 0.6])
    np.testing.assert_array_equal(project([3.0, 0.0]), [1.0, 0.0])
    np.testing.assert_array_equal(project([7.0]), [1.0])
    np.testing.assert_array_equal(project([-5.0, -5.0]), [0.5, 0.5])
    # The largest two stay: their sum exceeds 1 by .5, a quarter each.
    np.testing.assert_allclose(project([0.9, -3.0, 0.6]), [0.65, 0.0, 0.35])


@pytest.mark.parametrize("m", [1, 2, 3, 4, 6])
def test_the_projection_against_all_faces(m):
    rng = np.random.default_rng(m)
    for scale in (0.1, 1.0, 4.0):
        point = np.round(rng.normal(size=m) * scale, 1)  # with ties
        np.testing.assert_allclose(project(point), by_enumeration(point), atol=1e-14)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=6))
@example([1e17, 0.0])
@example([1e16, 1e16, 0.0])
@example([-1e17, -1e17])
def test_a_projection_is_on_the_simplex_and_stays_where_it_is(point):
    weights = project(point)
    assert_on_the_simplex(weights)
    np.testing.assert_allclose(project(weights), weights, atol=1e-14)


def test_a_projection_leaves_its_input_untouched():
    point = np.array([0.5, 0.9, -0.2])
    project(point)
    normalise(point)
    np.testing.assert_array_equal(point, [0.5, 0.9, -0.2])


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9))
def test_normalised_weights_are_on_the_simplex_in_their_old_proportions(point):
    weights = normalise(point)
    assert_on_the_simplex(weights)
    kept = np.maximum(point, 0.0)
    assume(kept.sum() > 1e-6)
    np.testing.assert_allclose(weights * kept.sum(), kept, rtol=1e-12, atol=1e-15)


def test_nothing_to_normalise_gives_the_centre():
    np.testing.assert_array_equal(normalise([0.0, -1.0, 0.0, -3.0]), np.full(4, 0.25))


@pytest.mark.parametrize(("m", "concentration"), [(2, 1.0), (3, 0.5), (6, 3.0)])
def test_a_weight_of_a_draw_has_a_beta_distribution(m, concentration):
    draws = dirichlet(m, 4000, concentration=concentration, rng=np.random.default_rng(m))
    assert np.all(draws >= 0.0)
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, atol=1e-12)
    margin = stats.beta(concentration, (m - 1) * concentration)
    assert min(stats.kstest(column, margin.cdf).pvalue for column in draws.T) > 1e-4


@pytest.mark.parametrize("point", [[math.nan, 1.0, 0.0], [math.inf, 0.0], [], [[0.5, 0.5]]])
def test_what_has_no_nearest_point_is_refused(point):
    with pytest.raises(InvalidInputError, match="`point` must be finite numbers on one axis"):
        project(point)

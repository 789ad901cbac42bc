"""The kernels of SKCE by hand, against the oracle and against scikit-learn."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import laplacian_kernel

import hullcal as hc
import oracles
from hullcal import InvalidInputError
from hullcal.kernels import (
    ExponentialTV,
    GaussianTV,
    Kernel,
    kernel_factor,
    kernel_factors,
    kernel_named,
    median_total_variation,
)

FORMS = {"exponential": ExponentialTV, "gaussian": GaussianTV}


def vectors(seed, n=12, k=3):
    return np.random.default_rng(seed).dirichlet(np.ones(k), size=n)


def test_kernels_by_hand():
    # TV([.75, .25], [.25, .75]) = 1/2
    p, q = [0.75, 0.25], [0.25, 0.75]
    assert ExponentialTV()(p, q) == math.exp(-0.5)
    assert ExponentialTV(bandwidth=0.25)(p, q) == math.exp(-2.0)
    assert GaussianTV()(p, q) == math.exp(-0.25)
    assert GaussianTV(bandwidth=2.0)(p, q) == math.exp(-0.125)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bandwidth", [0.05, 0.5, 1.0, 2.0, 40.0])
def test_kernels_against_the_oracle(form, bandwidth):
    kernel = FORMS[form](bandwidth=bandwidth)
    for k in (2, 3, 7):
        rows = vectors(k, k=k)
        for p, q in itertools.pairwise(rows):
            expected = oracles.kernel_value(p, q, bandwidth, form)
            assert kernel(p, q) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 5.0])
def test_the_exponential_kernel_against_scikit_learns_laplacian(bandwidth):
    rows = vectors(1)
    kernel = ExponentialTV(bandwidth=bandwidth)
    gram = [[kernel(p, q) for q in rows] for p in rows]
    np.testing.assert_allclose(gram, laplacian_kernel(rows, gamma=0.5 / bandwidth), rtol=1e-12)
    assert np.linalg.eigvalsh(gram).min() > 0.0


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.integers(2, 6).flatmap(
        lambda k: st.tuples(*[st.lists(st.integers(0, 9), min_size=k, max_size=k)] * 2)
    ),
    st.sampled_from(sorted(FORMS)),
    st.floats(0.01, 100.0),
)
def test_a_kernel_is_symmetric_and_at_most_one_where_the_vectors_are_the_same(pair, form, nu):
    p, q = (np.array(v) + 1.0 for v in pair)
    p, q = p / p.sum(), q / q.sum()
    kernel = FORMS[form](bandwidth=nu)
    assert kernel(p, p) == 1.0
    assert kernel(p, q) == kernel(q, p)
    # Total variation is at most 1.
    assert math.exp(-1.0 / nu) * (1 - 1e-12) <= kernel(p, q) <= 1.0


@pytest.mark.parametrize("form", [0.0, 1.0])
@pytest.mark.parametrize("bandwidth", [1e-300, 1e-3, 1 / 700, 0.05, 1.0, 2.0, 1e3])
def test_many_factors_at_once_are_the_factors_one_by_one(form, bandwidth):
    rng = np.random.default_rng(0)
    distances = np.concatenate(
        [[0.0, 1.0, 0.5, 1e-300, 5e-324], rng.random(500), rng.random(50) ** 9]
    )
    for size in (1, 2, 3, 17, len(distances)):
        factors = distances[:size].copy()
        kernel_factors(factors, form, bandwidth, np.full(size, np.nan))
        expected = [kernel_factor(tv, form, bandwidth) for tv in distances[:size]]
        np.testing.assert_allclose(factors, expected, rtol=1e-15, atol=1e-307)
        assert factors[0] == 1.0
        assert np.all((factors >= 0.0) & (factors <= 1.0))


# Settings


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "bandwidth", [0.0, -1.0, math.inf, math.nan, "mean", None, True, [1.0], 1j]
)
def test_a_bandwidth_that_is_none_is_refused(form, bandwidth):
    with pytest.raises(InvalidInputError, match="`bandwidth`"):
        FORMS[form](bandwidth=bandwidth)


@pytest.mark.parametrize("form", FORMS)
def test_a_kernel_has_a_name(form):
    kernel = kernel_named(form, 0.5)
    assert type(kernel) is FORMS[form]
    assert kernel.bandwidth == 0.5
    assert kernel.name == form
    # A value brings its own bandwidth.
    assert kernel_named(kernel, 3.0) is kernel


@pytest.mark.parametrize("kernel", ["rbf", "", None, 1.0, ["exponential"]])
def test_a_kernel_that_is_none_is_refused_with_those_there_are(kernel):
    with pytest.raises(InvalidInputError, match=r"Unknown kernel .*exponential.*gaussian"):
        kernel_named(kernel, 1.0)


def test_a_kernel_without_a_form_is_refused_when_a_measure_is_made():
    with pytest.raises(InvalidInputError, match="Unknown kernel"):
        hc.SKCE(kernel=Kernel())


# The median heuristic


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 3), (10, 2), (25, 5)])
def test_the_median_against_the_oracle_and_scipy(n, k):
    for rows in (vectors(n, n, k), np.round(vectors(n, n, k), 1)):
        median = median_total_variation(rows)
        assert median == pytest.approx(oracles.median_bandwidth(rows) or 1.0, rel=1e-13)
        assert median == pytest.approx(np.median(pdist(rows, "cityblock")) / 2 or 1.0, rel=1e-13)


def test_the_median_of_many_rows_depends_on_no_order_of_rows_or_classes():
    rows = vectors(3, n=2500)
    median = median_total_variation(rows)
    assert median == pytest.approx(np.median(pdist(rows, "cityblock")) / 2, rel=0.02)
    rng = np.random.default_rng(0)
    for _ in range(5):
        again = rows[rng.permutation(2500)][:, rng.permutation(3)]
        assert median_total_variation(again) == pytest.approx(median, rel=1e-13)


@pytest.mark.parametrize("rows", [np.full((1, 3), 1 / 3), np.full((9, 2), 0.5)])
def test_the_median_of_a_constant_predictor_is_one(rows):
    assert median_total_variation(rows) == 1.0


@pytest.mark.parametrize("form", FORMS)
def test_the_median_is_known_only_once_there_are_data(form):
    kernel = FORMS[form](bandwidth="median")
    with pytest.raises(InvalidInputError, match='`bandwidth="median"`'):
        kernel([1.0, 0.0], [0.0, 1.0])
    rows = vectors(5)
    assert kernel.parameters(rows)[1] == median_total_variation(rows)
    fixed = FORMS[form](bandwidth=0.25)
    assert fixed.parameters(rows) == (kernel.parameters(rows)[0], 0.25)


def test_a_kernel_derived_from_ours_is_one_of_ours():
    class Own(ExponentialTV):
        """A name of one's own."""

    probs, labels = [[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]], [0, 1, 0]
    assert hc.SKCE(kernel=Own())(probs, labels) == hc.SKCE()(probs, labels)

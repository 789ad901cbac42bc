"""The oracles against values worked by hand, and against each other."""

import math
from fractions import Fraction

import numpy as np
import pytest

import oracles
from simulation import random_set

BINNED = {
    "ece_conf": oracles.ece_conf,
    "ece_cwise": oracles.ece_cwise,
    "hl_cwise": oracles.hl_cwise,
}
RESIDUALS = {
    "ece_conf": oracles.residual_ece_conf,
    "ece_cwise": oracles.residual_ece_cwise,
    "hl_cwise": oracles.residual_hl,
}


# Bins


def test_rows_that_tie_across_a_cut_are_shared():
    # Sorted: .1 | .2 .2 .2, cut 2 + 2. One of the three tied places is in the first part.
    parts = oracles.equal_frequency_parts([0.2, 0.1, 0.2, 0.2], 2)
    assert parts[0] == {1: 1, 0: Fraction(1, 3), 2: Fraction(1, 3), 3: Fraction(1, 3)}
    assert parts[1] == {0: Fraction(2, 3), 2: Fraction(2, 3), 3: Fraction(2, 3)}


def test_median_bandwidth_by_hand():
    probs = np.array([[1.0, 0.0], [0.75, 0.25], [0.0, 1.0], [0.25, 0.75]])
    # TV: 01 .25, 02 1, 03 .75, 12 .75, 13 .5, 23 .25; sorted .25 .25 .5 .75 .75 1: .625
    assert oracles.median_bandwidth(probs) == pytest.approx(0.625)
    assert oracles.median_bandwidth(probs[:3]) == pytest.approx(0.75)


# Residuals and recentering


@pytest.mark.parametrize("measure", BINNED)
@pytest.mark.parametrize("seed", range(5))
def test_the_norm_of_the_residual_is_the_measure(measure, seed):
    probs3d, labels = random_set(seed, n=12)
    probs = probs3d[:, 0]
    counts = np.random.default_rng(seed).multinomial(12, np.full(12, 1 / 12))
    for weights in (None, counts):
        rows = oracles.repeat_rows(probs, labels, weights)
        residual = RESIDUALS[measure](probs, labels, 4, weights)
        nothing = np.zeros_like(residual)
        expected = BINNED[measure](*rows, 4)
        assert oracles.recentered_value(measure, *rows, nothing, 4) == pytest.approx(expected)
        assert oracles.recentered_value(measure, *rows, residual, 4) == 0.0


@pytest.mark.parametrize("kernel", ["exponential", "gaussian"])
def test_recentering_in_the_rkhs_against_explicit_features(kernel):
    # Any finite set of points has explicit features: the rows of a square root of its Gram matrix,
    # with the sign of the eigenvalue in the inner product (exp(-TV^2/h) is indefinite for K > 2).
    probs3d, labels = random_set(3, n=7)
    at_lambda = oracles.mixture(probs3d, [0.2, 0.5, 0.3])
    at_hat = oracles.mixture(probs3d, [0.6, 0.1, 0.3])
    rows = np.random.default_rng(4).integers(7, size=7)
    points = np.concatenate([at_lambda[rows], at_hat])
    gram = np.array([[oracles.kernel_value(p, q, 0.5, kernel) for q in points] for p in points])
    values, vectors = np.linalg.eigh(gram)
    phi, sign = vectors * np.sqrt(np.abs(values)), np.repeat(np.sign(values), 3)
    y = np.eye(3)[np.concatenate([labels[rows], labels])]
    f = np.einsum("ad,ak->adk", phi, points - y).reshape(14, -1)
    g = f[:7] - f[7:].mean(axis=0)
    inner = (g * sign) @ g.T
    expected = {"skce_b": inner.mean(), "skce_uq": (inner.sum() - np.trace(inner)) / 42}
    for measure, value in expected.items():
        recentered = oracles.recentered_value(
            measure, at_lambda[rows], labels[rows], (at_hat, labels), 10, 0.5, kernel
        )
        assert recentered == pytest.approx(value, abs=1e-12)


# Weights


def test_em_leaves_out_rows_that_no_member_allows():
    probs = np.zeros((5, 2, 3))
    probs[:, 0, 0] = probs[:, 1, 1] = 1.0
    np.testing.assert_allclose(oracles.em_weights(probs, np.array([0, 0, 1, 0, 2])), [0.75, 0.25])
    np.testing.assert_allclose(oracles.em_weights(probs, np.full(5, 2)), [0.5, 0.5])


@pytest.mark.parametrize("seed", range(5))
def test_em_finds_the_maximum_of_the_likelihood(seed):
    probs, labels = random_set(seed, n=30, m=2)
    found = oracles.log_likelihood(probs, labels, oracles.em_weights(probs, labels))
    grid = [oracles.log_likelihood(probs, labels, w) for w in oracles.simplex_grid(2, 400)]
    assert found >= max(grid) - 1e-5


# The test and its exact nulls


def test_the_exact_null_of_one_row_by_hand():
    probs = np.array([[0.75, 0.25]])
    # Label 0 has ECE_conf 1/4 and probability 3/4; label 1 has ECE_conf 3/4.
    assert oracles.exact_label_null(probs, oracles.ece_conf) == [(0.25, 0.75), (0.75, 0.25)]
    assert oracles.exact_label_pvalue(probs, np.array([1]), oracles.ece_conf) == 0.25
    assert oracles.exact_label_pvalue(probs, np.array([0]), oracles.ece_conf) == 1.0


def test_the_exact_refit_pvalue_of_one_row_by_hand():
    probs = np.array([[[0.75, 0.25], [0.5, 0.5]]])

    def minimise(p, y):
        return oracles.brute_force_minimum(p, y, oracles.ece_conf, 4)[1]

    # Class 0 is always predicted. Label 0: 1 - conf is least at member 0, 1/4. Label 1: conf is
    # least at member 1, 1/2. Labels from weights (1/2, 1/2): probability of class 1 is 3/8.
    arguments = (oracles.ece_conf, minimise, [0.5, 0.5])
    assert oracles.exact_refit_pvalue(probs, np.array([1]), *arguments) == pytest.approx(3 / 8)
    assert oracles.exact_refit_pvalue(probs, np.array([0]), *arguments) == pytest.approx(1.0)


def test_algorithm_1_with_one_member_and_one_row_against_the_exact_null():
    # One row: resampling rows changes nothing, so the null is the exact label null.
    probs = np.array([[[0.75, 0.25]]])
    outcome = oracles.algorithm1(
        probs,
        np.array([1]),
        oracles.ece_conf,
        4000,
        lambda p, y: np.array([1.0]),
        np.random.default_rng(0),
    )
    assert outcome["statistic"] == 0.75
    share = oracles.p_value(outcome["statistic"], outcome["null"])
    assert abs(share - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 4000)


# Minima


def test_an_infimum_that_is_not_attained_by_hand():
    # Two hits at confidence 1/2 and a miss whose confidence c runs from 1/2 to 7/8. B = 4.
    # c < 3/4: one bin, |2 - 1 - c|/3, falling to 1/12 as c rises to 3/4.
    # c >= 3/4: two bins, (1 + c)/3.
    half = [0.5, 0.5]
    probs = np.array([[half, half], [half, half], [[0.875, 0.125], half]])
    labels = np.array([0, 0, 1])
    assert oracles.exact_minimum_ece_conf(probs, labels, 4) == Fraction(1, 12)
    reached, _ = oracles.brute_force_minimum(
        probs, labels, lambda p, y: oracles.ece_conf(p, y, 4), 256
    )
    # The grid's last point before 3/4 is lambda = 170/256: c = 191.75/256.
    assert reached == pytest.approx((1 - 191.75 / 256) / 3)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("exact", "g"),
    [
        (oracles.exact_minimum_ece_conf, oracles.ece_conf),
        (oracles.exact_minimum_ece_cwise, oracles.ece_cwise),
    ],
)
def test_no_grid_goes_below_the_exact_infimum(exact, g, seed):
    probs, labels = random_set(seed, n=4, m=2)
    infimum = exact(probs, labels, 5)
    reached, weights = oracles.brute_force_minimum(probs, labels, lambda p, y: g(p, y, 5), 1000)
    assert g(oracles.mixture(probs, weights), labels, 5) == reached
    # Slopes are at most 1, so a grid of 1,000 comes close unless the infimum's piece is tiny.
    assert float(infimum) - 1e-12 <= reached <= float(infimum) + 5e-3


# Scenarios


def test_dirichlet_draws_have_the_right_moments():
    a = np.array([0.05, 0.2, 1.5, 0.0])
    draws = oracles.draw_dirichlet(np.random.default_rng(1), np.tile(a, (40000, 1)))
    mean = a / a.sum()
    variance = mean * (1 - mean) / (a.sum() + 1)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * 0.5 / 200)
    np.testing.assert_allclose(draws.var(axis=0), variance, atol=0.005)
    assert np.all(draws[:, 3] == 0)


def test_the_truth_of_s3_is_outside_the_hull_where_its_centre_is_inside():
    drawn = oracles.scenario_s3_draws(np.random.default_rng(3), 60, 8, 3, 1.0)
    checked = 0
    for i in range(60):
        members, truth, boundary = drawn["probs"][i], drawn["truth"][i], drawn["boundary"][i]
        if not oracles.in_hull(drawn["p_e"][i], members):
            np.testing.assert_array_equal(boundary, drawn["p_e"][i])
            continue
        assert oracles.in_hull(boundary, members)
        if np.abs(truth - boundary).max() > 1e-4:
            assert not oracles.in_hull(truth, members)
            checked += 1
    assert checked > 15
    assert np.all(drawn["truth"] >= 0)
    np.testing.assert_allclose(drawn["truth"].sum(axis=-1), 1.0, atol=1e-12)


def test_the_boundary_against_the_line_search_of_algorithm_2():
    drawn = oracles.scenario_s3_draws(np.random.default_rng(4), 25, 6, 3, 0.3)
    for i in range(25):
        p_0, corner, members = drawn["p_e"][i], drawn["corner"][i], drawn["probs"][i]
        boundary = p_0
        for step in np.linspace(0, 1, 101):
            point = (1 - step) * p_0 + step * corner
            if not oracles.in_hull(point, members):
                break
            boundary = point
        assert np.abs(boundary - drawn["boundary"][i]).max() <= 0.01 + 1e-6


@pytest.mark.parametrize("u", [1.0, 0.1, 0.01])
@pytest.mark.parametrize(("m", "k"), [(2, 2), (3, 3), (4, 5), (10, 10), (6, 3)])
def test_the_fast_boundary_agrees_with_the_linear_program(m, k, u):
    slow = oracles.scenario_s3_draws(np.random.default_rng(5), 60, m, k, u)
    fast = oracles.scenario_s3_draws(
        np.random.default_rng(5), 60, m, k, u, boundaries=oracles.find_boundaries_fast
    )
    np.testing.assert_array_equal(slow["probs"], fast["probs"])
    np.testing.assert_allclose(slow["boundary"], fast["boundary"], atol=1e-5)


def test_member_a_of_the_calibrated_case_is_calibrated_and_b_is_not():
    probs, labels = oracles.calibrated_not_truth(np.random.default_rng(6), 20000)
    assert np.all(probs >= 0)
    np.testing.assert_allclose(probs.sum(axis=-1), 1.0, atol=1e-12)
    assert oracles.ece_cwise(probs[:, 0], labels) < 0.02
    assert oracles.ece_cwise(probs[:, 1], labels) > 0.1

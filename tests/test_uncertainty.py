"""The size of a set: every measure of it against its definition, by hand, and its laws."""

import math
import warnings

import numpy as np
import pytest

import hullcal as hc
import oracles_uncertainty as oracle
from hullcal import uncertainty

SIZES = ("mutual_information", "generalized_hartley", "tv_diameter", "interval_width")
BOUNDS = ("lower_entropy", "upper_entropy")
LOG2 = math.log(2)


def members(seed, n=12, m=4, k=4, concentration=1.0):
    return np.random.default_rng([seed, n, m, k]).dirichlet(np.full(k, concentration), size=(n, m))


def coarse(seed, n=12, m=4, k=4, parts=4):
    """Members in quarters: ties, exact zeros and ones, and members that coincide."""
    return np.random.default_rng([seed, n, m, k]).multinomial(
        parts, np.full(k, 1 / k), size=(n, m)
    ) / float(parts)


def all_of(probs, **options):
    """Every measure by its name, the two entropies apart."""
    values = {name: getattr(uncertainty, name)(probs, **options) for name in SIZES}
    values["lower_entropy"], values["upper_entropy"] = uncertainty.entropy_bounds(probs, **options)
    return values


# Against the oracles


@pytest.mark.parametrize("draw", [members, coarse])
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(("m", "k"), [(2, 2), (6, 3), (5, 6)])
def test_sizes_against_the_oracle(name, draw, m, k):
    probs = draw(1, n=6, m=m, k=k)
    expected = [getattr(oracle, name)(instance) for instance in probs]
    values = getattr(uncertainty, name)(probs)
    assert values.dtype == np.float64
    assert values.shape == (6,)
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("k", [7, 16])
def test_hartley_of_many_classes_against_the_sum_over_lower_probabilities(k):
    for concentration in (0.1, 1.0):
        probs = members(2, n=3, m=5, k=k, concentration=concentration)
        expected = [oracle.generalized_hartley_by_coefficients(p) for p in probs]
        values = uncertainty.generalized_hartley(probs)
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("draw", [members, coarse])
@pytest.mark.parametrize(("m", "k"), [(1, 3), (2, 2), (4, 10), (8, 3), (6, 6), (4, 40)])
def test_entropy_bounds_against_the_members_and_a_certificate(m, k, draw):
    probs = draw(4, n=5, m=m, k=k)
    for instance, low, high in zip(probs, *uncertainty.entropy_bounds(probs), strict=True):
        # Entropy is concave: no combination has less than every member.
        assert low == pytest.approx(min(oracle.entropy(p) for p in instance), abs=1e-12)
        attained, bound = oracle.upper_entropy(instance)
        assert bound - attained < 5e-9  # the oracle is worth something
        assert attained - 1e-8 <= high <= bound + 1e-8


# By hand


def test_two_classes_have_one_interval_and_three_names_for_it():
    # Class 1 has probability .125 to .625: Hartley has m({0, 1}) = 1 - .375 - .125.
    probs = np.array([[[0.875, 0.125], [0.375, 0.625], [0.5, 0.5]]])
    for name in ("generalized_hartley", "tv_diameter", "interval_width"):
        assert getattr(uncertainty, name)(probs) == pytest.approx([0.5], abs=1e-14)
    lower, upper = uncertainty.entropy_bounds(probs)
    assert upper == pytest.approx([LOG2], abs=1e-8)  # the hull holds the fair coin
    assert lower == pytest.approx([-0.875 * math.log(0.875) - 0.125 * math.log(0.125)])


def test_hartley_of_three_classes_by_hand():
    # nu: {0} .25, {1} .25, {2} 0, {0,1} .75, {0,2} .25, {1,2} .5.
    # m: {0,1} .75 - .5 = .25, {0,2} .25 - .25 = 0, {1,2} .5 - .25 = .25, all three 1 - .5 - .5 = 0.
    probs = np.array([[[0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]])
    assert uncertainty.generalized_hartley(probs) == pytest.approx([0.25 + 0.25], abs=1e-14)
    # Without the last two: {2} .25, {0,1} .75, {0,2} .5, {1,2} .5; only {0,1} has a mass, .25.
    assert uncertainty.generalized_hartley(probs[:, :2]) == pytest.approx([0.25], abs=1e-14)


@pytest.mark.parametrize("k", [2, 7, 16])
def test_the_vacuous_set_is_as_large_as_can_be(k):
    values = all_of(np.eye(k)[None])
    assert values["generalized_hartley"] == pytest.approx([math.log2(k)], abs=1e-10)
    assert values["mutual_information"] == pytest.approx([math.log(k)])
    assert values["tv_diameter"] == pytest.approx([1.0])
    assert values["interval_width"] == pytest.approx([1.0])
    assert values["lower_entropy"] == pytest.approx([0.0], abs=1e-15)
    assert values["upper_entropy"] == pytest.approx([math.log(k)], abs=1e-8)


# Laws


@pytest.mark.parametrize("draw", [members, coarse])
def test_one_member_and_its_copies_are_a_point(draw):
    probs = draw(12, m=1)
    values, flat, copies = all_of(probs), all_of(probs[:, 0]), all_of(probs.repeat(5, axis=1))
    for name in SIZES:
        np.testing.assert_allclose(values[name], 0, atol=1e-12)
        np.testing.assert_allclose(copies[name], 0, atol=1e-12)
    np.testing.assert_allclose(copies["upper_entropy"], copies["lower_entropy"], atol=1e-8)
    for name in (*SIZES, *BOUNDS):
        np.testing.assert_array_equal(values[name], flat[name])
    expected = [oracle.entropy(p) for p in probs[:, 0]]
    np.testing.assert_allclose(values["lower_entropy"], expected, atol=1e-12)


@pytest.mark.parametrize(("draw", "k"), [(members, 9), (coarse, 4)])
def test_a_further_member_never_makes_the_set_smaller(draw, k):
    probs = draw(14, n=20, m=7, k=k)
    before = all_of(probs[:, :1])
    for m in range(2, 8):
        after = all_of(probs[:, :m])
        for name in ("generalized_hartley", "tv_diameter", "interval_width"):
            assert np.all(after[name] >= before[name] - 1e-12)
        assert np.all(after["upper_entropy"] >= before["upper_entropy"] - 1e-8)
        assert np.all(after["lower_entropy"] <= before["lower_entropy"] + 1e-12)
        before = after


@pytest.mark.parametrize("draw", [members, coarse])
def test_the_names_of_members_and_classes_do_not_matter(draw):
    probs = draw(16, n=15, m=5, k=6)
    rng = np.random.default_rng(0)
    values = all_of(probs)
    for renamed in (probs[:, rng.permutation(5)], probs[:, :, rng.permutation(6)]):
        other = all_of(renamed)
        for name in (*SIZES, *BOUNDS):
            atol = 1e-8 if name == "upper_entropy" else 1e-12
            np.testing.assert_allclose(values[name], other[name], atol=atol)


# Input


@pytest.mark.parametrize("k", [2, 5])
def test_certainty_never_gives_what_is_not_a_number(k):
    certain = np.eye(k)[np.random.default_rng(0).integers(k, size=(20, 3))]
    tiny = np.tile([[1.0, *[0.0] * (k - 1)], [*[5e-324] * (k - 1), 1.0]], (20, 1, 1))
    for probs in (certain, tiny, np.concatenate([certain, tiny], axis=1)):
        for value in all_of(probs).values():
            assert np.all(np.isfinite(value))


def test_containers_types_and_neighbours_do_not_matter():
    probs = members(18, n=9, k=5)
    copy, values = probs.copy(), all_of(probs)
    forms = {
        "set": (hc.ClassifierSet(probs), 0),
        "layout": (np.asfortranarray(probs), 1e-13),
        "float32": (probs.astype(np.float32), 2e-6),
    }
    for form, tolerance in forms.values():
        for name, value in all_of(form).items():
            assert value.dtype == np.float64
            np.testing.assert_allclose(value, values[name], rtol=0, atol=tolerance)
    for i in range(9):
        for name, value in all_of(probs[i : i + 1]).items():
            np.testing.assert_allclose(value, values[name][i : i + 1], rtol=0, atol=1e-14)
    np.testing.assert_array_equal(probs, copy)
    assert probs.flags.writeable


def test_the_number_of_workers_changes_nothing():
    probs = members(22, n=3001, m=5, k=6)  # two blocks
    one, several = all_of(probs), all_of(probs, n_jobs=2)
    for name in (*SIZES, *BOUNDS):
        np.testing.assert_array_equal(one[name], several[name])
    assert dict(uncertainty.summary(probs)) == dict(uncertainty.summary(probs, n_jobs=-1))


@pytest.mark.parametrize("name", [*SIZES, "entropy_bounds", "summary"])
def test_what_is_no_set_is_refused(name):
    with pytest.raises(hc.InvalidInputError, match="`probs`"):
        getattr(uncertainty, name)(np.full((4, 2, 3), 0.5))


# More than sixteen classes


def test_sixteen_classes_are_exact_and_seventeen_are_said_not_to_be():
    assert uncertainty.summary(members(23, n=2, k=16)).approximated is False
    with pytest.warns(hc.ApproximationWarning):
        assert uncertainty.summary(members(23, n=2, k=17)).approximated is True
    assert issubclass(hc.ApproximationWarning, hc.HullcalWarning)


def approximate_hartley(probs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hc.ApproximationWarning)
        return uncertainty.generalized_hartley(probs)


@pytest.mark.parametrize("k", [17, 45])
def test_the_rarest_classes_are_merged_into_one(k):
    probs = members(25, n=4, m=4, k=k, concentration=0.3)
    expected = [oracle.generalized_hartley_by_coefficients(oracle.merged(p)) for p in probs]
    np.testing.assert_allclose(approximate_hartley(probs), expected, rtol=1e-9, atol=1e-10)


def test_ties_among_the_rarest_classes_go_to_the_lowest_index():
    probs = coarse(26, n=6, m=4, k=19, parts=32)
    lowest, highest = (
        [
            oracle.generalized_hartley_by_coefficients(oracle.merged(p, lowest_first=first))
            for p in probs
        ]
        for first in (True, False)
    )
    assert np.any(np.abs(np.subtract(lowest, highest)) > 1e-3)  # the rule matters here
    np.testing.assert_allclose(approximate_hartley(probs), lowest, rtol=1e-9, atol=1e-10)


# The summary


def test_the_summary_averages_every_measure():
    probs = members(29, n=25)
    summary = uncertainty.summary(probs)
    for name, value in all_of(probs).items():
        assert getattr(summary, name) == pytest.approx(value.mean(), rel=1e-12)
        assert isinstance(summary[name], float)
        assert dict(summary)[name] == summary[name] == getattr(summary, name)
    with pytest.raises(AttributeError):
        summary.tv_diameter = 0.0
    with pytest.raises(KeyError):
        summary["diameter"]


def test_the_hartley_measure_of_members_that_nearly_agree_has_digits_left():
    # It is homogeneous in the difference of two members, so that shares of it are known.
    rng = np.random.default_rng(0)
    first = rng.dirichlet(np.ones(16))
    change = rng.normal(size=16)
    change = (change - change.mean()) * first.min()
    shares = np.array([1e-3, 1e-6, 1e-9])
    pairs = np.stack([np.tile(first, (3, 1)), first + shares[:, None] * change], axis=1)
    sizes = uncertainty.generalized_hartley(pairs) / shares
    np.testing.assert_allclose(sizes, sizes[0], rtol=1e-3)

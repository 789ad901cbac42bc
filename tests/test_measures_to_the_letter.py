"""The loops of the measures against their equations, on cases so small that every step shows."""

import math

import numpy as np
import pytest

import hullcal as hc
import oracles
from hullcal import HullcalWarning, InvalidInputError
from hullcal.kernels import GaussianTV
from hullcal.measures import _all_pairs

BINNED = {"ece_conf": hc.ConfidenceECE, "ece_cwise": hc.ClasswiseECE, "hl_cwise": hc.HosmerLemeshow}
RESIDUALS = {
    "ece_conf": oracles.residual_ece_conf,
    "ece_cwise": oracles.residual_ece_cwise,
    "hl_cwise": oracles.residual_hl,
}


def a_case(seed, n, k, tied=False):
    """Predictions, labels and counts of a bootstrap that leaves rows out."""
    rng = np.random.default_rng(seed)
    if tied:
        probs = rng.multinomial(4, np.full(k, 1 / k), size=n) / 4
    else:
        probs = rng.dirichlet(np.full(k, 0.7), size=n)
    counts = np.bincount(rng.integers(n, size=n), minlength=n)
    return probs, rng.integers(k, size=n).astype(np.int32), counts


def evaluated(measure, probs, labels, **options):
    mixed = np.ascontiguousarray(probs.T)
    return measure.evaluate(mixed, labels, measure.parameters(probs), **options)


def pair_matrix(probs, labels, others=None, other_labels=None, *, kernel="exponential", nu=1.0):
    """h of every row with every other, from the definition."""
    others = probs if others is None else others
    other_labels = labels if other_labels is None else other_labels
    errors = probs - np.eye(probs.shape[1])[labels]
    other_errors = others - np.eye(probs.shape[1])[other_labels]
    tv = 0.5 * np.abs(probs[:, None] - others[None]).sum(axis=2)
    factors = np.exp(-tv / nu) if kernel == "exponential" else np.exp(-(tv**2) / nu)
    return factors * (errors @ other_errors.T)


# Binned measures


@pytest.mark.parametrize("name", BINNED)
@pytest.mark.parametrize(("n", "k", "n_bins"), [(1, 2, 1), (7, 2, 3), (17, 5, 4), (9, 6, 10)])
@pytest.mark.filterwarnings("ignore::hullcal.HullcalWarning")
def test_a_binned_value_is_its_equation(name, n, k, n_bins):
    for tied in (False, True):
        probs, labels, _ = a_case(n + k, n, k, tied)
        expected = getattr(oracles, name)(probs, labels, n_bins)
        assert BINNED[name](n_bins=n_bins)(probs, labels) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", range(2, 12))
def test_the_largest_probability_is_found_wherever_it_stands(k):
    # Row r is sure of class r, by 0.6; the label is right in the even rows.
    probs = np.full((k, k), 0.4 / (k - 1))
    np.fill_diagonal(probs, 0.6)
    labels = np.arange(k)
    labels[1::2] -= 1
    hits = len(labels[::2])
    found = hc.ConfidenceECE(n_bins=1)(probs, labels)
    assert found == pytest.approx(abs(hits / k - 0.6), abs=1e-14)


@pytest.mark.parametrize("name", BINNED)
@pytest.mark.parametrize("n_bins", [1, 4])
def test_drawn_rows_less_the_residual_of_the_data_are_the_definition(name, n_bins):
    for tied in (False, True):
        probs, labels, counts = a_case(3, 13, 3, tied)
        measure = BINNED[name](n_bins=n_bins)
        mixed = np.ascontiguousarray(probs.T)
        offset = measure.offset_at(mixed, labels, measure.parameters(probs))
        residual = RESIDUALS[name](probs, labels, n_bins)
        np.testing.assert_allclose(offset, residual, atol=1e-13)
        weights = counts.astype(float)
        found = evaluated(measure, probs, labels, row_weights=weights, offset=offset)
        drawn = oracles.repeat_rows(probs, labels, counts)
        expected = oracles.recentered_value(name, *drawn, residual, n_bins)
        assert found == pytest.approx(expected, abs=1e-12)


def test_rows_in_any_disorder_are_sorted():
    # One class in falling order, then with many values close to 0, where the buckets are uneven.
    n = 60
    falling = np.linspace(0.99, 0.01, n)
    crowded = np.concatenate([np.geomspace(1e-12, 1e-3, n - 2), [0.0, 1.0]])[::-1]
    for p in (falling, crowded, np.random.default_rng(0).permutation(crowded)):
        labels = (np.arange(n) % 3 == 0).astype(np.int32)
        probs = np.stack([p, 1 - p], axis=1)
        for n_bins in (4, 7):
            expected = oracles.hl_cwise(probs, labels, n_bins)
            assert hc.HosmerLemeshow(n_bins=n_bins)(probs, labels) == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore::hullcal.HullcalWarning")
def test_parts_without_rows_count_nothing():
    probs = np.array([[0.25, 0.75], [0.5, 0.5], [0.0, 1.0]])
    labels = np.array([0, 1, 1], dtype=np.int32)
    expected = oracles.hl_cwise(probs, labels, 5)
    assert hc.HosmerLemeshow(n_bins=5)(probs, labels) == pytest.approx(expected, rel=1e-12)


def test_the_first_part_is_the_larger_one():
    # Five rows in two parts, three and two: of class 1 in the order of the rows, of class 0 backwards.
    p = np.array([0.1, 0.2, 0.3, 0.7, 0.9])
    labels = np.array([0, 1, 0, 1, 1], dtype=np.int32)
    observed = [(1 / 3, 0.6 / 3), (1.0, 1.6 / 2), (1 / 3, 1.1 / 3), (1 / 2, 1.7 / 2)]
    expected = sum((o - mean) ** 2 / mean for o, mean in observed)
    found = hc.HosmerLemeshow(n_bins=2)(np.stack([1 - p, p], axis=1), labels)
    assert found == pytest.approx(expected, rel=1e-12)


def test_rows_that_all_fall_into_one_bucket_are_sorted_all_the_same():
    # The two at the ends make buckets so wide that all others share one, in falling order.
    n = 120
    p = np.concatenate([0.5 + 1e-9 * np.arange(n - 2)[::-1], [0.0, 1.0]])
    labels = (np.arange(n) % 3 == 0).astype(np.int32)
    probs = np.stack([1 - p, p], axis=1)
    expected = oracles.hl_cwise(probs, labels, 7)
    assert hc.HosmerLemeshow(n_bins=7)(probs, labels) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", [*BINNED.values(), hc.SKCE])
def test_settings_are_said_by_name(kind):
    with pytest.raises(TypeError, match="positional"):
        kind(5)


def test_the_two_smallest_probabilities_are_put_in_order():
    # So close that they share a bucket, and in falling order. The smallest is drawn twice and fills
    # the first of two bins.
    p = np.array([0.1001, 0.1, 0.5, 0.9])
    labels = np.array([1, 0, 0, 1], dtype=np.int32)
    probs = np.stack([1 - p, p], axis=1)
    counts = np.array([1, 2, 1, 0])
    expected = oracles.hl_cwise(*oracles.repeat_rows(probs, labels, counts), 2)
    found = evaluated(hc.HosmerLemeshow(n_bins=2), probs, labels, row_weights=counts.astype(float))
    assert found == pytest.approx(expected, rel=1e-12)


def test_hundreds_of_rows_that_end_in_ties_are_shared():
    rng = np.random.default_rng(4)
    p = np.concatenate([rng.random(200) / 2, np.full(100, 0.75)])
    labels = (rng.random(300) < p).astype(np.int32)
    probs = np.stack([1 - p, p], axis=1)
    expected = oracles.hl_cwise(probs, labels, 7)
    assert hc.HosmerLemeshow(n_bins=7)(probs, labels) == pytest.approx(expected, rel=1e-10)


def test_blocks_of_rows_add_up_and_the_state_before_is_kept():
    probs, labels, _ = a_case(5, 19, 5)
    for measure in (hc.ConfidenceECE(n_bins=4), hc.ClasswiseECE(n_bins=4), hc.SKCE()):
        parameters = measure.parameters(probs)
        state = np.zeros(measure.state_size(5))
        for rows in (slice(0, 8), slice(8, 10), slice(10, 19)):
            mixed = np.ascontiguousarray(probs[rows].T)
            n = mixed.shape[1]
            scratch = np.full(measure.scratch_size(5, n), 9.0)
            measure.accumulate(mixed, labels[rows], np.ones(n), parameters, state, scratch)
        found = measure.finish(state, measure.no_offset(5), parameters, 19)
        assert found == pytest.approx(measure(probs, labels), abs=1e-14)


ALL = [hc.measures.resolve(name) for name in hc.measures.available()]


@pytest.mark.parametrize("n", [10, 11, 13])
@pytest.mark.parametrize("measure", ALL, ids=lambda measure: measure.name)
def test_what_working_memory_held_before_does_not_matter(measure, n):
    probs, labels, _ = a_case(n, n, 3)
    mixed, parameters = np.ascontiguousarray(probs.T), measure.parameters(probs)
    state = np.full(measure.state_size(3), 7.0)
    scratch = np.full(measure.scratch_size(3, n), 9.0)
    ones, nothing = np.ones(n), measure.no_offset(3)
    found = measure.value(mixed, labels, ones, parameters, nothing, state, scratch)
    assert found == pytest.approx(getattr(oracles, measure.name)(probs, labels), abs=1e-13)


# SKCE


@pytest.mark.parametrize(("n", "k"), [(2, 2), (3, 5), (6, 4), (9, 6), (5, 11)])
@pytest.mark.parametrize("kernel", ["exponential", "gaussian"])
def test_the_kernel_estimators_are_their_equations(n, k, kernel):
    probs, labels, _ = a_case(n * k, n, k)
    h = pair_matrix(probs, labels, kernel=kernel, nu=0.5)
    pairs = [h[2 * i, 2 * i + 1] for i in range(n // 2)]
    expected = {
        "ul": np.mean(pairs),
        "uq": (h.sum() - np.trace(h)) / (n * (n - 1)),
        "b": h.mean(),
    }
    for estimator, value in expected.items():
        measure = hc.SKCE(estimator=estimator, kernel=kernel, bandwidth=0.5)
        assert measure(probs, labels) == pytest.approx(value, abs=1e-13), estimator


@pytest.mark.parametrize("estimator", ["uq", "b"])
@pytest.mark.parametrize(("n", "k"), [(7, 2), (8, 6)])
def test_drawn_rows_are_recentered_by_kernel_algebra(estimator, n, k):
    probs, labels, counts = a_case(n, n, k)
    there, _, _ = a_case(n + 1, n, k)
    measure = hc.SKCE(estimator=estimator)
    parameters = measure.parameters(probs)
    offset = measure.offset_at(np.ascontiguousarray(there.T), labels, parameters)
    found = evaluated(measure, probs, labels, row_weights=counts.astype(float), offset=offset)
    drawn, drawn_labels = oracles.repeat_rows(probs, labels, counts)
    inner = pair_matrix(drawn, drawn_labels)
    cross = pair_matrix(drawn, drawn_labels, there, labels).mean(axis=1)
    inner = inner - cross[:, None] - cross[None] + pair_matrix(there, labels).mean()
    same_draw = np.eye(n, dtype=bool)
    expected = inner[~same_draw].sum() / (n * (n - 1)) if estimator == "uq" else inner.mean()
    assert found == pytest.approx(expected, abs=1e-13)


def test_rows_beyond_the_first_block_are_paired_with_all_others():
    probs, labels, counts = a_case(1, 133, 2)
    h = pair_matrix(probs, labels)
    assert hc.SKCE(estimator="b")(probs, labels) == pytest.approx(h.mean(), abs=1e-13)
    there, _, _ = a_case(2, 133, 2)
    measure = hc.SKCE(estimator="b")
    mixed = np.ascontiguousarray(there.T)
    offset = measure.offset_at(mixed, labels, measure.parameters(probs))
    found = evaluated(measure, probs, labels, row_weights=counts.astype(float), offset=offset)
    drawn, drawn_labels = oracles.repeat_rows(probs, labels, counts)
    cross = pair_matrix(drawn, drawn_labels, there, labels).mean()
    expected = pair_matrix(drawn, drawn_labels).mean() - 2 * cross
    assert found == pytest.approx(expected + pair_matrix(there, labels).mean(), abs=1e-13)


def test_packed_blocks_of_128_rows_have_classes_136_apart_twice():
    assert [_all_pairs.packed_size(3, n) for n in (1, 128, 129, 256)] == [816, 816, 1632, 1632]


@pytest.mark.parametrize("n", [5, 300])
def test_terms_of_some_rows_with_all_rows_are_those_of_the_matrix(n):
    probs, labels, _ = a_case(4, n, 2)
    error = (probs - np.eye(2)[labels]).T.copy()
    out = np.empty((2, n))
    scratch = np.empty(3 * _all_pairs.BLOCK)
    parameters = hc.SKCE(bandwidth=0.3).parameters(probs)
    _all_pairs.pair_terms(probs.T.copy(), error, 2, parameters, out, scratch)
    np.testing.assert_allclose(out, pair_matrix(probs, labels, nu=0.3)[2:4], atol=1e-14)


def test_the_settings_of_a_kernel_are_those_that_were_given():
    kernel = GaussianTV(bandwidth=0.2)
    measure = hc.SKCE(estimator="b", kernel=kernel)
    assert measure.bandwidth == 0.2
    assert measure.settings() == {"estimator": "b", "bandwidth": 0.2, "kernel": "gaussian"}
    assert hc.SKCE(kernel=kernel, bandwidth=0.2).bandwidth == 0.2
    with pytest.raises(InvalidInputError, match="`bandwidth` must be left out"):
        hc.SKCE(kernel=kernel, bandwidth=0.3)
    with pytest.raises(InvalidInputError, match="`estimator`"):
        hc.SKCE(estimator="u")
    assert [each.rows_per_unit for each in hc.SKCE.defaults()] == [2, 1, 1]
    assert [each.order_matters for each in hc.SKCE.defaults()] == [True, False, False]


# What a measure refuses and warns of


def test_too_few_rows_are_refused_and_few_rows_are_warned_of():
    with pytest.raises(InvalidInputError, match=r"`skce_ul` needs at least 2 rows; got 1\."):
        hc.SKCE().check(1)
    hc.SKCE().check(2)
    hc.ConfidenceECE(n_bins=7).check(7)
    with pytest.warns(HullcalWarning, match="6 rows are fewer than the 7 that"):
        hc.ConfidenceECE(n_bins=7).check(6)
    # With one bin, two rows are still the fewest that say much.
    with pytest.warns(HullcalWarning, match="1 rows are fewer than the 2 that"):
        hc.ConfidenceECE(n_bins=1).check(1)


def test_a_function_as_a_measure_is_given_rows_and_must_give_a_number():
    seen = []

    def accuracy(probs, labels):
        seen.append((probs, labels))
        return np.float32(0.5)

    probs, labels, _ = a_case(1, 4, 3)
    measure = hc.measures.resolve(accuracy)
    assert measure(probs, labels) == 0.5
    np.testing.assert_array_equal(seen[0][0], probs)
    np.testing.assert_array_equal(seen[0][1], labels)
    assert seen[0][0].flags.c_contiguous
    assert (measure.name, measure.notion) == ("accuracy", "custom")
    assert measure.settings() == {"function": "accuracy"}
    assert measure.order_matters
    assert not measure.has_residual
    with pytest.raises(InvalidInputError, match="returned NaN"):
        hc.measures.resolve(lambda probs, labels: math.nan)(probs, labels)
    with pytest.raises(InvalidInputError, match="raised ZeroDivisionError"):
        hc.measures.resolve(lambda probs, labels: 1 / 0)(probs, labels)


def test_which_measures_stream_and_which_have_what_it_takes():
    assert hc.ConfidenceECE().streams()
    assert hc.SKCE().streams()
    assert not hc.SKCE(bandwidth="median").streams()
    assert not hc.SKCE(estimator="uq").halves_agree()
    assert not hc.HosmerLemeshow().streams()
    assert not hc.SKCE(estimator="b").streams()
    assert not hc.measures.resolve(lambda probs, labels: 0.0).streams()
